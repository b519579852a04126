"""The last transitions, as vectors."""

from __future__ import annotations

import numpy as np

from linmdp.agents.base import Component
from linmdp.types import Array


class Transitions(Component):
    """At most `most` transitions; a new one takes the place of the oldest.

    Attributes
    ----------
    X, Y : (most, size) states, and those that followed
    action, reward, ended : (most,) and whether the following state was terminal
    total : transitions ever added, and not cleared
    """

    _arrays = ("X", "Y", "action", "reward", "ended")
    _counters = ("total",)

    def __init__(self, size: int, most: int) -> None:
        self.most, self.total = most, 0
        self.X, self.Y = np.zeros((most, size), dtype=np.float32), np.zeros((most, size), dtype=np.float32)
        self.action, self.reward = np.zeros(most, dtype=np.int32), np.zeros(most)
        self.ended = np.zeros(most, dtype=np.bool_)

    def __len__(self) -> int:
        return min(self.total, self.most)

    def add(self, x: Array, action: int, reward: float, y: Array, ended: bool) -> None:
        """One more."""
        i = self.total % self.most
        self.X[i], self.action[i], self.reward[i], self.Y[i], self.ended[i] = x, action, reward, y, ended
        self.total += 1
