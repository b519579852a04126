"""The plan whose episodes paid most goes on acting until a later one has done better."""

from __future__ import annotations

import math
from typing import Any, ClassVar

import numpy as np

from linmdp.agents.base import Component, count_in
from linmdp.types import Array

PRIOR = 2.0
"""Episodes that those of all plans count for in the mean and in the spread of one."""

CALM = 0.7
"""The spread of one plan's episodes is taken to be this times that of all, before it has shown its own."""

MEMORY = 50.0
"""Episodes that the mean over all plans goes back, about: plans become better."""


class Incumbent(Component):
    """Two plans: the newest, which has yet to show what it is worth, and the best so far.

    A plan that is fitted to noise can be far worse than the one before it, and its own episodes tell soon. After every
    planning the new plan acts; it is given up as soon as its return falls below that of the best by more than a
    standard error, and takes its place when its return less a standard error is the larger one. Returns are means over
    the episodes of a plan and, PRIOR times, the mean over all plans: one lucky episode makes no best plan.

    Attributes
    ----------
    w : (d,) weights of the best plan, in single precision
    episodes : (3, 3) number, mean and sum of squares around it of the returns of late episodes, of those of the best
        plan, and of those of the newest
    acts : 1 while the best plan acts, and not the newest
    """

    _arrays: ClassVar = ("w", "episodes")
    _counters: ClassVar = ("acts",)

    def __init__(self, d: int) -> None:
        self.w: Any = np.zeros(d, dtype=np.float32)
        self.episodes, self.acts = np.zeros((3, 3)), 0

    def resize(self, d: int) -> None:
        """Room for d weights; the best plan knows nothing of new ones."""
        self.w = with_rows(self.w, d)

    def planned(self) -> None:
        """There is a new plan: it acts."""
        self.episodes[2], self.acts = 0.0, 0

    def see(self, earned: float, w: Array) -> None:
        """An episode is over; w (d,) are the weights of the newest plan. Who acts next?"""
        self.episodes[0, ::2] *= 1 - 1 / MEMORY
        for row in (0, 1 if self.acts else 2):
            count_in(self.episodes[row], earned)
        (best, around), (newest, about) = self.judged(1), self.judged(2)
        tried = self.episodes[2, 0] > 0
        if tried and (not self.episodes[1, 0] or newest - about > best - around):
            self.w[:] = w
            self.episodes[1], self.episodes[2], self.acts = self.episodes[2], 0.0, 1
        elif tried:
            self.acts = int(newest + about < best)

    def judged(self, row: int) -> tuple[float, float]:
        """A plan's return and its standard error."""
        (total, overall, spread), (n, mean, squares) = self.episodes[0], self.episodes[row]
        variance = (squares + PRIOR * CALM**2 * spread / max(total, 1.0)) / (n + PRIOR)
        return (n * mean + PRIOR * overall) / (n + PRIOR), math.sqrt(variance / max(n, 1.0))


def with_rows(x: Any, n: int) -> Any:
    """A copy of x (m, ...) with n rows: the first of x, and the rest 0."""
    longer = np.zeros((n, *x.shape[1:]), dtype=x.dtype)
    kept = min(n, len(x))
    longer[:kept] = x[:kept]
    return longer
