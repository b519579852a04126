"""A small bonus whose width follows from the spread of the rewards, for features that no matrix is kept of."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from linmdp.agents.exploration.bonus import Bonus
from linmdp.agents.horizon import Horizon
from linmdp.types import Array

if TYPE_CHECKING:
    from linmdp.agents.storage.base import Sample

WIDTH = 0.05
"""Of the spread of a return, if rewards were independent: sqrt(H) times that of one."""


class Spread(Bonus):
    """beta = WIDTH sqrt(H) std(r), over all rewards seen.

    Attributes
    ----------
    sums : (3,) samples, rewards, squared rewards
    """

    batched: ClassVar = False
    _arrays: ClassVar = ("sums", "beta")
    _derived: ClassVar = ("caps", "terminal", "ended_value")

    def __init__(self, horizon: Horizon, caps: Array) -> None:
        super().__init__(horizon, caps, 0.0)
        self.sums = np.zeros(3)

    def seen(self, g: int, sample: Sample) -> None:
        self.sums += 1.0, sample.reward, sample.reward**2

    def forget(self, runs: Any = ...) -> None:
        self.sums[:] = 0.0

    def begin(self) -> None:
        n, total, squares = self.sums
        variance = max(0.0, squares / n - (total / n) ** 2) if n else 0.0
        self.beta[:] = WIDTH * math.sqrt(self.horizon.H * variance)
