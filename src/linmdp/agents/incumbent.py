"""Who acts: the newest plan, the best one so far, or one action all the time."""

from __future__ import annotations

import math
from typing import Any, ClassVar

import numpy as np

from linmdp.agents.base import Component, count_in
from linmdp.types import Array

PRIOR = 2.0
"""Episodes that those of others count for in the mean and in the spread of one."""

CALM = 0.7
"""The spread of one plan's episodes is taken to be this times that of all, before it has shown its own."""

MEMORY = 50.0
"""Episodes that the mean over all plans goes back, about: plans become better."""

LAST = 0.2
"""The share of the episodes, the last ones, in which no new plan is tried, where their number is known."""

LATE, BEST, FORMER, NEWEST, CONSTANT = range(5)
"""Rows of `episodes`; those from CONSTANT on are the actions'."""


class Incumbent(Component):
    """The newest plan, which has yet to show what it is worth, the best plan so far, and constant actions.

    A plan that is fitted to noise can be far worse than the one before it, and its own episodes tell soon. After every
    planning the new plan acts; it is given up as soon as its return falls below that of the best of the others by more
    than a standard error, and becomes the best plan when its return less a standard error is the larger one. Returns
    are means over the episodes of a plan and, PRIOR times, the mean over all plans: one lucky episode makes no best
    plan. The plan that was the best before is kept, and comes back when its return less a standard error is the larger
    one after all: of many plans some look better than they are. With K episodes no new plan is tried in the last fifth
    of them: what would be found has hardly any time to pay.

    In every other one of the first episodes an action is taken all the time, each action once. It acts again while its
    return and a standard error are more than the best plan earns: one episode says little.

    Attributes
    ----------
    w, beta : (d,) weights of the best plan, in single precision, and () its width
    former, former_beta : (d,) and () of the plan that was best before it
    episodes : (4 + A, 3) number, mean and sum of squares around it of the returns of late episodes, of those of the
        best plan, of the one before it, of the newest, and of those of each action; A is 0 where no action is tried
        alone
    acting, played : the row of who acts, and episodes so far
    """

    _arrays: ClassVar = ("w", "beta", "former", "former_beta", "episodes")
    _counters: ClassVar = ("acting", "played")

    def __init__(self, d: int, A: int, K: int | None = None) -> None:
        self.K, self.played = K, 0
        self.w: Any = np.zeros(d, dtype=np.float32)
        self.former: Any = np.zeros(d, dtype=np.float32)
        self.beta: Array = np.zeros(())
        self.former_beta: Array = np.zeros(())
        self.episodes, self.acting = np.zeros((CONSTANT + A, 3)), NEWEST

    def resize(self, d: int) -> None:
        """Room for d weights; older plans know nothing of new ones."""
        self.w, self.former = with_rows(self.w, d), with_rows(self.former, d)

    @property
    def action(self) -> int | None:
        """The action that is taken all the time; None while a plan acts."""
        return self.acting - CONSTANT if self.acting >= CONSTANT else None

    @property
    def trial(self) -> bool:
        """Whether it is the first episode of an action."""
        return self.acting >= CONSTANT and not self.episodes[self.acting, 0]

    @property
    def settled(self) -> bool:
        """Whether the last episodes have come, and something is known of someone."""
        late = self.K is not None and self.played >= (1 - LAST) * self.K
        return late and bool(self.episodes[[BEST, *range(CONSTANT, len(self.episodes))], 0].any())

    def planned(self) -> None:
        """There is a new plan: it acts, unless it is an action's turn."""
        self.episodes[NEWEST] = 0.0
        if not self.trial and not self.settled:
            self.acting = NEWEST

    def see(self, earned: float, w: Array, beta: float) -> None:
        """An episode is over; w (d,) are the weights of the newest plan, and beta its width. Who acts next?"""
        count_in(self.episodes[self.acting], earned)
        self.played += 1
        untried = np.flatnonzero(self.episodes[CONSTANT:, 0] == 0)
        if self.acting < CONSTANT:
            self.episodes[LATE, ::2] *= 1 - 1 / MEMORY
            count_in(self.episodes[LATE], earned)
            if len(untried):
                self.acting = CONSTANT + int(untried[0])
                return
        self.acting = self._best_of_all(w, beta)

    def _best_of_all(self, w: Array, beta: float) -> int:
        if self._surely(NEWEST) > self._surely(BEST):
            self._exchange()
            self.w[:], self.beta[...] = w, beta
            self.episodes[BEST], self.episodes[NEWEST] = self.episodes[NEWEST], 0.0
        elif self._surely(FORMER) > self._surely(BEST):
            self._exchange()
        newest, about = self.judged(NEWEST)
        actions = [sum(self.judged(row)) for row in range(CONSTANT, len(self.episodes))]
        returns = [self.judged(BEST)[0], *actions]
        top = int(np.argmax(returns))
        if newest + about >= returns[top] and not self.settled:
            return NEWEST
        return CONSTANT + top - 1 if top else BEST

    def _exchange(self) -> None:
        """The best plan and the one before it change places."""
        self.w, self.former = self.former, self.w
        self.beta, self.former_beta = self.former_beta, self.beta
        self.episodes[[BEST, FORMER]] = self.episodes[[FORMER, BEST]]

    def _surely(self, row: int) -> float:
        """A return less its standard error."""
        mean, error = self.judged(row)
        return mean - error

    def judged(self, row: int) -> tuple[float, float]:
        """A return and its standard error; nothing is expected of what was not tried."""
        (total, overall, spread), (n, mean, squares) = self.episodes[LATE], self.episodes[row]
        if not n:
            return -math.inf, 0.0
        variance = (squares + PRIOR * CALM**2 * spread / max(total, 1.0)) / (n - 1 + PRIOR)
        error = math.sqrt(variance / n)
        if row >= CONSTANT:  # late episodes are those of good plans, and say nothing of the return of an action
            return mean, error
        return (n * mean + PRIOR * overall) / (n + PRIOR), error


def with_rows(x: Any, n: int) -> Any:
    """A copy of x (m, ...) with n rows: the first of x, and the rest 0."""
    longer = np.zeros((n, *x.shape[1:]), dtype=x.dtype)
    kept = min(n, len(x))
    longer[:kept] = x[:kept]
    return longer
