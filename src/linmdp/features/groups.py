"""Sparse features with several ones: groups of cells, from coarse to fine, of which a state has one in each."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import ClassVar

import numpy as np

from linmdp.errors import InvalidParameter
from linmdp.features.unit import LARGEST_DENSE
from linmdp.types import Array, IntArray, State

MOST_SLOTS = 1 << 16
"""The most cells of one group: their numbers are kept in two bytes."""


class GroupFeatures(ABC):
    """phi(s, a) has two ones in each of G groups, times `scale`: one of the cell, and one of the cell and the action.

    Group g has `sizes[g]` cells, and a state is in one of them. Actions of one class share their weights. The weights
    lie in a table with a row for each cell of each group, (cells, 1 + C): that of the cell, then those of the classes.

    Attributes
    ----------
    A, d : actions, and d = cells * (1 + C)
    sizes : (G,) cells of each group, from the coarsest to the finest
    classes : (A,) the class of each action; there are C
    clock : whether the last number of a state is the step of the episode, so that an episode ends where it is cut
    passes : times that a regression goes through all groups
    trace : how much of what came replaces what was expected, while actions are greedy: the lambda of Watkins's Q
    scale : 1 / sqrt(2 G): phi has norm 1
    """

    bound = 1.0
    clock: ClassVar[bool] = False
    passes: ClassVar[int] = 1
    trace: ClassVar[float] = 0.0

    def __init__(self, sizes: Sequence[int], classes: IntArray) -> None:
        self.sizes, self.classes = np.asarray(sizes, dtype=np.int64), np.asarray(classes, dtype=np.int64)
        self.A, self.C, self.G = len(self.classes), int(self.classes.max()) + 1, len(self.sizes)
        if not (self.sizes.min() > 0 and self.sizes.max() <= MOST_SLOTS):
            raise InvalidParameter(f"A group must have 1 to {MOST_SLOTS} cells. Got {self.sizes.tolist()}.")
        self.cells, self.scale = int(self.sizes.sum()), 1 / math.sqrt(2 * self.G)
        self.first = np.cumsum(self.sizes) - self.sizes
        self.d = self.cells * (1 + self.C)
        self._kept = list[tuple[bytes, IntArray]]()

    @property
    def nbytes(self) -> int:
        """Bytes of the arrays that the map holds."""
        return sum(int(getattr(part, "nbytes", 0)) for part in vars(self).values())

    @abstractmethod
    def active(self, states: np.ndarray) -> IntArray:
        """The cell of each group, counted from the first of the group, of n states, (n, G)."""

    def cells_of(self, state: State) -> IntArray:
        """The cells of one state, counted over all groups, (G,). The last two are remembered: agents ask thrice."""
        state = np.asarray(state)
        key = state.tobytes()
        for known, kept in self._kept:
            if known == key:
                return kept
        cells: IntArray = self.active(state[None])[0] + self.first
        self._kept = [*self._kept[-1:], (key, cells)]
        return cells

    def phi(self, state: State) -> Array:
        """Features of `state`, (A, d)."""
        phi: Array = self.batch(np.asarray(state)[None])[0]
        return phi

    def batch(self, states: np.ndarray) -> Array:
        """Features of n states, (n, A, d)."""
        if self.d > LARGEST_DENSE:
            raise InvalidParameter(
                f"Features of cells can be written out up to d = {LARGEST_DENSE}; beyond, use storage=stagewise. "
                f"Got {self.d}."
            )
        n, rows = len(states), self.active(states) + self.first
        phi = np.zeros((n, self.A, self.cells, 1 + self.C))
        at, actions = np.arange(n)[:, None, None], np.arange(self.A)[:, None]
        phi[at, actions, rows[:, None], 0] = self.scale
        phi[at, actions, rows[:, None], 1 + self.classes[:, None]] = self.scale
        return phi.reshape(n, self.A, self.d)
