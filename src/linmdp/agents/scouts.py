"""Scouts: a wider plan on the same data plays an episode now and then, so that nobody settles for too little for ever.

Before episode k a scout is sent if

    k is a multiple of `every`,
    scouts have lost at most budget k^power span so far (usual return - return, over their episodes), and
    the plan thinks that it is done: value of the start - usual return <= settled span,

where the span is how much two returns can differ. What a scout sees is everybody's.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar

import numpy as np

from linmdp.agents.base import Component
from linmdp.types import Array, MorePossible

RECENT = 20
"""Episodes whose starts and returns are kept."""


class Scouts(Component):
    """When a scout is sent, and what the last episodes of the plan itself earned.

    Attributes
    ----------
    numbers : episodes; lost by scouts; usual return; episodes that it is the mean of; value of the start
    starts, returns : (RECENT, k), (RECENT,)
    sent : whether this episode is a scout's
    """

    _arrays: ClassVar = ("numbers", "starts", "returns")
    _saved_within: ClassVar = dict.fromkeys(_arrays, (-np.inf, np.inf))

    def __init__(self, k: int, *, every: int, budget: float, power: float, settled: float, rate: float) -> None:
        self.every, self.budget, self.power, self.settled, self.rate = every, budget, power, settled, rate
        self.numbers, self.sent = np.zeros(5), False
        self.starts, self.returns = np.zeros((RECENT, k), dtype=np.float32), np.zeros(RECENT)

    def begin(self, span: float) -> bool:
        """An episode begins: whether it is a scout's."""
        self.numbers[0] += 1
        k, lost, usual, known, value = self.numbers
        due = known > 0 and span > 0 and k % self.every == 0
        self.sent = bool(due and lost <= self.budget * k**self.power * span and value - usual <= self.settled * span)
        return self.sent

    def started(self, start: Array) -> None:
        """The episode begins in `start` (k,)."""
        if not self.sent:
            self.starts[int(self.numbers[3]) % RECENT] = start

    def thinks(self, value: float) -> None:
        """What the plan that acts thinks that the start is worth."""
        if not self.sent:
            self.numbers[4] = value

    def ended(self, earned: float) -> None:
        """The episode is over."""
        lost, usual, known = self.numbers[1:4]
        if self.sent:
            self.numbers[1] = lost + usual - earned
        else:
            self.returns[int(known) % RECENT] = earned
            self.numbers[2:4] = usual + max(1 / (known + 1), self.rate) * (earned - usual), known + 1
        self.sent = False

    def more_possible(self, values: Callable[[Array], Array], most: float) -> MorePossible | None:
        """What `values` (n,) thinks of the last starts (n, k) beside what was earned; no return is above `most`."""
        n = min(int(self.numbers[3]), RECENT)
        if not n:
            return None
        found = np.minimum(values(self.starts[:n]), most)
        return MorePossible(found - self.returns[:n], 0.0, bool((found >= most).all()))
