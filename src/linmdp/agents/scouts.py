"""Scouts: a wider plan on the same data plays an episode now and then, so that nobody settles for too little for ever.

A scout is sent where the plan thinks that it is done:

    value of the start - usual return <= settled span,

where the span is how much two returns can differ. After a scout of episode k that lost l spans (usual return - return),
the next is not sent before episode

    k + max(every, 2 l sqrt(k) / budget),

so that k episodes lose about budget sqrt(k) spans, spread evenly: none are saved up and then spent at once. What a
scout sees is everybody's.
"""

from __future__ import annotations

import math
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
    numbers : episodes; lost by scouts; usual return; episodes that it is the mean of; value of the start; the episode
        before which no scout is sent
    starts, returns : (RECENT, k), (RECENT,)
    sent : whether this episode is a scout's
    """

    _arrays: ClassVar = ("numbers", "starts", "returns")
    _saved_within: ClassVar = dict.fromkeys(_arrays, (-np.inf, np.inf))

    def __init__(self, k: int, *, every: int, budget: float, settled: float, rate: float) -> None:
        self.every, self.budget, self.settled, self.rate = every, budget, settled, rate
        self.numbers, self.sent = np.array([0.0, 0.0, 0.0, 0.0, 0.0, every]), False
        self.starts, self.returns = np.zeros((RECENT, k), dtype=np.float32), np.zeros(RECENT)

    def begin(self, span: float) -> bool:
        """An episode begins: whether it is a scout's."""
        self.numbers[0] += 1
        self.sent = span > 0 and bool(self.numbers[0] >= self.numbers[5]) and self.done(span)
        return self.sent

    def done(self, span: float) -> bool:
        """Whether the plan thinks that it is done."""
        _, _, usual, known, value, _ = self.numbers
        return bool(known > 0 and value - usual <= self.settled * span)

    def started(self, start: Array) -> None:
        """The episode begins in `start` (k,)."""
        if not self.sent:
            self.starts[int(self.numbers[3]) % RECENT] = start

    def thinks(self, value: float) -> None:
        """What the plan that acts thinks that the start is worth."""
        if not self.sent:
            self.numbers[4] = value

    def ended(self, earned: float, span: float) -> None:
        """The episode is over; the span is that of all returns, this one among them."""
        k, lost, usual, known = self.numbers[:4]
        if self.sent:
            share = max(usual - earned, 0.0) / span
            self.numbers[1] = lost + usual - earned
            self.numbers[5] = k + max(self.every, 2 * share * math.sqrt(k) / self.budget)
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
