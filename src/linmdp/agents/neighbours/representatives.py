"""Representative states, and distances to them in units of what is seen."""

from __future__ import annotations

from typing import Any

import numpy as np

from linmdp.agents.base import Component
from linmdp.agents.neighbours.inputs import Moments
from linmdp.errors import check_int
from linmdp.types import Array, BoolArray, IntArray, Task

USUAL_M = 300
MOST_STATES = 1000
"""Finite states up to which each of them is a representative."""
APART = 1e6
"""The squared distance of two different finite states: beyond every kernel."""
FEW = 64
"""Transitions that are gathered before they are learned from, or an episode: one product serves them all."""


class Representatives(Component):
    """At most M states, no two of them closer than `spacing`.

    The distance of two arrays is the root of the mean of their squared differences, each coordinate in units of its
    standard deviation so far. Two finite states are the same or far apart.

    Attributes
    ----------
    Z : (M, size) the states; the first m are there
    """

    _arrays = ("Z",)
    _counters = ("m",)

    def __init__(self, size: int, M: int, spacing: float, *, finite: bool) -> None:
        self.Z, self.m = np.zeros((M, size), dtype=np.float32), 0
        self._spacing, self._finite = spacing, finite

    def squared(self, X: Array, seen: Moments) -> Array:
        """Squared distances of n vectors (n, size) to the representatives, (n, m)."""
        Z = self.Z[: self.m]
        if self._finite:
            same: BoolArray = (X.astype(np.float32)[:, None] == Z).all(axis=2)
            return np.where(same, 0.0, APART)
        scale = np.sqrt(seen.variance * X.shape[1])
        weight = np.divide(1.0, scale, out=np.zeros_like(scale), where=scale > 0)
        X, Z = (X - seen.mean) * weight, (Z - seen.mean) * weight
        products = np.einsum("nk,nk->n", X, X)[:, None] - 2 * X @ Z.T + np.einsum("mk,mk->m", Z, Z)
        return np.asarray(np.maximum(products, 0.0))

    def nearest(self, X: Array, seen: Moments) -> IntArray:
        """The closest representative of each vector, (n,)."""
        found: IntArray = self.squared(X, seen).argmin(axis=1)
        return found

    def admit(self, X: Array, seen: Moments) -> None:
        """Take up those of the vectors, in their order, that are far from all representatives, while there is room."""
        if self.m == 0 and len(X):
            self.Z[0], self.m = X[0], 1
        for i in (self.squared(X, seen).min(axis=1) > self._spacing**2).nonzero()[0]:
            if self.m == len(self.Z):
                break
            if self.squared(X[i : i + 1], seen).min() > self._spacing**2:
                self.Z[self.m] = X[i]
                self.m += 1


def most_representatives(owner: str, M: Any, task: Task) -> int:
    """How many there may be: as given, else one for each state where that is possible."""
    usual = task.S if task.S is not None and task.stationary and task.S <= MOST_STATES else USUAL_M
    return check_int(owner, "M", usual if M is None else M, low=1)
