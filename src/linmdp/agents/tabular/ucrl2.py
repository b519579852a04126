"""UCRL2 (Jaksch, Ortner, Auer, 2010), for episodes: play what is optimal in the best of all plausible models."""

from __future__ import annotations

import math
from typing import Any, ClassVar

import numpy as np

from linmdp.agents.tabular.model import TabularModel
from linmdp.errors import check_number
from linmdp.types import Array, Task


class UCRL2(TabularModel):
    """UCRL2: value iteration in the most favourable model within confidence bounds; finite states only.

    It plans again when the visits of some state and action have doubled since the last planning.

    Parameters
    ----------
    c : what the radii of the bounds are multiplied by; 1 is the paper's
    delta : the chance with which the bounds of the paper may fail
    stationary, episodes, max_bytes : as for ucbvi
    """

    name = "ucrl2"
    test_parameters = ({"delta": 0.2},)
    _arrays: ClassVar = (*TabularModel._arrays, "_before")

    def __init__(self, task: Task, *, c: float = 0.03, delta: float = 0.1, **common: Any) -> None:
        super().__init__(task, **common)
        self.c, self.delta = c, delta
        self._c = check_number(self.name, "c", c, low=0.0)
        self._delta = check_number(self.name, "delta", delta, low=0.0, high=1.0, open_low=True)
        self._before = np.zeros_like(self._N)  # visits at the last planning
        self._hold_to_limit()

    def _due(self) -> bool:
        return self._k == 1 or bool((self._N - self._before >= np.maximum(self._before, 1.0)).any())

    def _plan(self) -> None:
        super()._plan()
        self._before[:] = self._N

    def _backup(self, h: int, V: Array) -> Array:
        _, S, A = self._Q.shape
        (n, r, P), (low, high), T = self._means(h), self.task.reward_range, self._steps()
        rewards = self._c * (high - low) * np.sqrt(7 * math.log(2 * S * A * T / self._delta) / (2 * n))
        radius = self._c * np.sqrt(14 * S * math.log(2 * A * T / self._delta) / n)
        order = V.argsort(kind="stable")
        q = np.minimum(r + rewards, high) + favourable(P[..., order], radius) @ V[order]
        q[self._N[self._table(h)] == 0] = np.inf
        return np.asarray(q)


def favourable(P: Array, radius: Array) -> Array:
    """The best distributions within a 1-norm `radius` (...) of P (..., n), whose outcomes come from worst to best.

    Half of the radius goes to the best outcome, and is taken from the worst ones.
    """
    moved = P.copy()
    moved[..., -1] = np.minimum(1.0, P[..., -1] + radius / 2)
    excess = np.maximum(moved.sum(axis=-1, keepdims=True) - 1.0, 0.0)
    left = moved[..., :-1].cumsum(axis=-1)
    left -= excess
    np.maximum(left, 0.0, out=left)
    moved[..., :-1] = left
    moved[..., 1:-1] -= left[..., :-1]
    return moved
