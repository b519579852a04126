"""Plans that hope and plans that doubt, in turn: a width that follows from the spread of the rewards, up or down."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from linmdp.agents.exploration.bonus import Bonus
from linmdp.agents.horizon import Horizon
from linmdp.types import Array

if TYPE_CHECKING:
    from linmdp.agents.storage.base import Sample

HOPE, DOUBT = 0.05, 0.15
"""Of the spread of a return, if rewards were independent, sqrt(H) times that of one: the bonus of an optimistic plan,
and what a cautious plan takes off."""

OFTEN = 5
"""Of the first 2^OFTEN plannings every second one is optimistic; of as many more every fourth, and so on."""


class Spread(Bonus):
    """beta = HOPE sqrt(H) std(r) over all rewards seen, or -DOUBT sqrt(H) std(r): upper bounds and lower ones in turn.

    An optimistic plan goes where little is known, and seldom pays. A cautious one makes the best of what is known: with
    few samples in a cell the largest of several means is too large, and a plan that trusts it walks into the unknown.

    Attributes
    ----------
    sums : (3,) samples, rewards, squared rewards
    plannings : so far
    """

    batched: ClassVar = False
    _arrays: ClassVar = ("sums", "beta")
    _counters: ClassVar = ("plannings",)
    _derived: ClassVar = ("caps", "terminal", "ended_value")

    def __init__(self, horizon: Horizon, caps: Array) -> None:
        super().__init__(horizon, caps, 0.0)
        self.sums, self.plannings = np.zeros(3), 0

    def seen(self, g: int, sample: Sample) -> None:
        self.sums += 1.0, sample.reward, sample.reward**2

    def forget(self, runs: Any = ...) -> None:
        self.sums[:] = 0.0

    def begin(self) -> None:
        n, total, squares = self.sums
        variance = max(0.0, squares / n - (total / n) ** 2) if n else 0.0
        width = HOPE if optimistic_turn(self.plannings) else -DOUBT
        self.beta[:] = width * math.sqrt(self.horizon.H * variance)
        self.plannings += 1


def optimistic_turn(j: int) -> bool:
    """Whether planning j, from 0 on, is an optimistic one."""
    return j % (1 << max(1, j.bit_length() - OFTEN + 1)) == 0
