"""Feature maps made of one block for each action: phi(s, a) = e_a (x) psi(s), so that d = A * p."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import ClassVar

import numpy as np

from linmdp.errors import InvalidParameter
from linmdp.types import Array, State

LARGEST_D = 2048
"""The largest d that is accepted: agents invert d x d matrices."""


class BlockFeatures(ABC):
    """phi(s, a) is psi(s), of norm at most 1, in the block of action a, and zero in the other blocks.

    Attributes
    ----------
    A, p, d : actions, length of psi, and d = A * p
    """

    name: ClassVar[str]
    bound = 1.0

    def __init__(self, A: int, p: int) -> None:
        if A * p > LARGEST_D:
            raise InvalidParameter(
                f"The features of {self.name} must have d = A * p at most {LARGEST_D}. Got {A} * {p} = {A * p}."
            )
        self.A, self.p, self.d = A, p, A * p

    @abstractmethod
    def psi(self, states: np.ndarray) -> Array:
        """The state part of n states, (n, p); each row has norm at most 1."""

    @property
    def nbytes(self) -> int:
        """Bytes of the arrays that the map holds, its scaling among them."""
        return sum(int(getattr(part, "nbytes", 0)) for part in vars(self).values())

    def phi(self, state: State) -> Array:
        """Features of `state`, (A, d)."""
        phi: Array = self.batch(np.asarray(state)[None])[0]
        return phi

    def batch(self, states: np.ndarray) -> Array:
        """Features of n states, (n, A, d)."""
        n, each = len(states), np.arange(self.A)
        blocks = np.zeros((n, self.A, self.A, self.p))
        blocks[:, each, each] = self.psi(states)[:, None]
        return blocks.reshape(n, self.A, self.d)
