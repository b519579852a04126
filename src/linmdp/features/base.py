"""What a feature map is, and the checks for maps that users provide."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol, runtime_checkable

import numpy as np

from linmdp.errors import InvalidData
from linmdp.types import Array, IntArray, State

NORM_SLACK = 1e-9
"""Rounding allowed on a feature's norm before it counts as over its bound."""


@runtime_checkable
class FeatureMap(Protocol):
    """phi(s, a) in R^d for every action at once.

    `bound` is the largest norm that any phi(s, a) may have (1 in the theory); `nbytes` counts the arrays
    that the map holds.
    """

    A: int
    d: int
    bound: float

    @property
    def nbytes(self) -> int:
        """Bytes of the arrays that the map holds."""

    def phi(self, state: State) -> Array:
        """Features of `state`, (A, d)."""

    def batch(self, states: Array) -> Array:
        """Features of n states, (n, A, d)."""


@runtime_checkable
class Indexed(Protocol):
    """What a map of unit vectors has that are not written out."""

    def index(self, state: State) -> IntArray:
        """Which entry of phi(state, a) is 1, for every action, (A,)."""


def check_phi(phi: Array, A: int, d: int, bound: float, *, where: str | Callable[[], str]) -> Array:
    """`phi` (..., A, d) if it is finite, of that shape and within the bound; else `InvalidData`.

    `where` may be a function: formatting a large state takes longer than checking it.
    """
    phi = np.asarray(phi)
    rule = got = ""
    if phi.shape[-2:] != (A, d) or phi.ndim < 2:
        rule, got = f"have shape (..., {A}, {d})", str(phi.shape)
    elif not np.isfinite(phi).all():
        rule, got = "be finite", str(phi[~np.isfinite(phi)][0])
    elif (norm := float(np.sqrt(np.einsum("...d,...d->...", phi, phi).max(initial=0.0)))) > bound * (1 + NORM_SLACK):
        rule, got = f"have norm at most {bound:g}", f"{norm:g}"
    if rule:
        raise InvalidData(f"Features {where if isinstance(where, str) else where()} must {rule}. Got {got}.")
    return phi


class CheckedFeatures:
    """A feature map that a user provides, with every phi checked."""

    def __init__(self, inner: FeatureMap) -> None:
        self.inner = inner
        self.A, self.d, self.bound = inner.A, inner.d, inner.bound

    @property
    def nbytes(self) -> int:
        """Bytes of the map inside."""
        return self.inner.nbytes

    def phi(self, state: State) -> Array:
        """Checked features of `state`, (A, d)."""
        return check_phi(self.inner.phi(state), self.A, self.d, self.bound, where=lambda: f"of state {state!r}")

    def batch(self, states: Array) -> Array:
        """Checked features of n states, (n, A, d)."""
        return check_phi(self.inner.batch(states), self.A, self.d, self.bound, where="of a batch of states")
