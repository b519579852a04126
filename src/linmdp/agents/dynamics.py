"""Where an action leads, if it is held for some steps: a regression that impacts do not bend."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from linmdp.agents.base import Component
from linmdp.features.quadratic import Quadratic
from linmdp.types import Array, IntArray

RIDGE, LEAST_SAMPLES = 1e-4, 100
"""The ridge parameter for each sample, and the fewest samples that it counts."""

OUTLYING = 4.0
"""A sample that is off by more than so many times what is usual, in some coordinate, counts less, in proportion."""

USUAL_RATE = 0.05
"""How much of what is usual comes from the last episode."""

LEAST_ERROR = 1e-4
"""No error below this share of a coordinate's range is looked at."""


class Dynamics(Component):
    """s' - s, in units of the range of each coordinate, as a quadratic form of s, for each action.

    Most of a continuous task is smooth, and some steps are not: something is hit. Least squares would bend the smooth
    part towards those steps. Here a sample is compared with what the regression so far says of it; what is usual is the
    median error of an episode, averaged over episodes, for each coordinate. No prediction leaves what has been seen:
    neither the largest changes nor the range of the states.

    Attributes
    ----------
    gram, sums, W : (A, p, p), (A, p, k) and (A, p, k): sum x x', sum x y', and the weights
    usual : (k,) median absolute errors; 0 before the first episode
    changes, range : (2, k) the least and the largest change, and coordinate, so far
    samples : () so far
    """

    _arrays: ClassVar = ("gram", "sums", "W", "usual", "changes", "range", "samples")

    def __init__(self, A: int, quadratic: Quadratic) -> None:
        k, p = quadratic.k, quadratic.p
        self.gram, self.sums, self.W = np.zeros((A, p, p)), np.zeros((A, p, k)), np.zeros((A, p, k))
        self.usual, self.changes, self.range = np.zeros(k), np.zeros((2, k)), np.zeros((2, k))
        self.samples = np.zeros(())

    def learn(self, X: Array, actions: IntArray, changes: Array, states: Array) -> None:
        """The samples of an episode: quadratic forms (n, p), actions (n,), scaled changes (n, k); states (m, k)."""
        weights = np.ones(len(X))
        if self.samples:
            off = self._errors(X, actions, changes) / self.usual
            weights = np.minimum(1.0, OUTLYING / np.maximum(off.max(axis=1), 1e-9))
        first = not self.samples
        _widen(self.range, states, first)
        _widen(self.changes, changes, first)
        for a in range(len(self.W)):
            mine = actions == a
            weighted = X[mine] * weights[mine, None]
            self.gram[a] += weighted.T @ X[mine]
            self.sums[a] += weighted.T @ changes[mine]
        self.samples += len(X)
        ridge = RIDGE * max(float(self.samples), LEAST_SAMPLES)
        self.W[...] = np.linalg.solve(self.gram + ridge * np.eye(X.shape[1]), self.sums)
        errors = np.median(self._errors(X, actions, changes), axis=0) + LEAST_ERROR
        self.usual += (1.0 if first else USUAL_RATE) * (errors - self.usual)

    def _errors(self, X: Array, actions: IntArray, changes: Array) -> Array:
        errors: Array = np.abs(changes - np.einsum("np,npk->nk", X, self.W[actions]))
        return errors

    def predict(self, X: Array, states: Array, width: Array) -> Array:
        """Where every action leads from states (n, k) with quadratic forms X (n, p), (n, A, k)."""
        found: Array = np.stack([X @ W for W in self.W], axis=1)
        np.maximum(found, self.changes[0], out=found)
        np.minimum(found, self.changes[1], out=found)
        found *= width
        found += states[:, None]
        np.maximum(found, self.range[0], out=found)
        np.minimum(found, self.range[1], out=found)
        return found

    def fade(self, factor: float) -> None:
        """Let every sample so far count `factor` times as much."""
        for sums in (self.gram, self.sums, self.samples):
            sums *= factor


def _widen(bounds: Array, rows: Array, first: Any) -> None:
    """Let bounds (2, k) hold rows (n, k) too."""
    low, high = rows.min(axis=0), rows.max(axis=0)
    bounds[0] = low if first else np.minimum(bounds[0], low)
    bounds[1] = high if first else np.maximum(bounds[1], high)
