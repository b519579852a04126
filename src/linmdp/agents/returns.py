"""What some steps can pay, as far as has been seen: the largest and least discounted sum of g rewards in a row."""

from __future__ import annotations

import sys
from typing import ClassVar

import numpy as np

from linmdp.agents.base import Component
from linmdp.types import Array

SAME = 1e-3
"""Returns that differ by no more than this share of the largest reward are equal: nothing is known of what pays."""

REWARD = sys.getsizeof(0.0) + 8
"""Bytes of one in a list."""


class Returns(Component):
    """The range of rewards, of discounted sums of g rewards, and of returns, from the first step on.

    Attributes
    ----------
    most, least : (L + 1,) of the sums of g = 1, ..., L steps in a row, and of fewer before an end; infinite: not seen
    reward, episode : (2,) least and largest reward, and discounted return
    lengths : (2,) least and largest number of steps of an episode
    """

    _arrays = ("most", "least", "reward", "episode", "lengths")
    _saved_within: ClassVar = {"lengths": (0, np.inf)}

    def __init__(self, L: int, discount: float) -> None:
        self.discount = discount
        self.most, self.least = np.full(L + 1, -np.inf), np.full(L + 1, np.inf)
        self.most[0] = self.least[0] = 0.0
        self.reward, self.episode = np.array([np.inf, -np.inf]), np.array([np.inf, -np.inf])
        self.lengths = np.array([np.iinfo(np.int64).max, 0])

    def paid(self, reward: float) -> None:
        """One more reward."""
        _widen(self.reward, reward)

    def ended(self, rewards: Array, terminated: bool) -> float:
        """One more episode, with rewards (n,): its return."""
        n, L = len(rewards), len(self.most) - 1
        sums, last = np.zeros(n + 1), np.zeros(L)  # of g rewards from each step on, and of the last g
        for g in range(1, min(n, L) + 1):
            sums = rewards[: n - g + 1] + self.discount * sums[1:]
            self.most[g], self.least[g] = max(self.most[g], sums.max()), min(self.least[g], sums.min())
            last[g - 1 :] = sums[-1]
        earned = 0.0
        for reward in rewards[::-1].tolist():
            earned = reward + self.discount * earned
        _widen(self.episode, earned)
        self.lengths[:] = min(self.lengths[0], n), max(self.lengths[1], n)
        if terminated:
            self.most[1:] = np.maximum(self.most[1:], np.maximum.accumulate(last))
            self.least[1:] = np.minimum(self.least[1:], np.minimum.accumulate(last))
        return earned

    @property
    def fixed(self) -> bool:
        """Whether all episodes so far were equally long: then their ends are the clock's, and no event."""
        return bool(self.lengths[0] == self.lengths[1])

    def bounds(self) -> tuple[Array, Array]:
        """The most and the least that g steps can pay, (L + 1,) each; beyond what was seen, the sum of two parts.

        Where every reward is negative the best that may happen is an end after one step.
        """
        most, least, far = self.most.copy(), self.least.copy(), 1
        most[1], least[1] = max(most[1], self.reward[1]), min(least[1], self.reward[0])
        for g in range(2, len(most)):
            if np.isfinite(self.most[g]):
                far = g
                continue
            later = self.discount**far
            most[g] = most[far] + later * most[g - far]
            least[g] = min(least[far], least[far] + later * least[g - far])
        if self.reward[1] < 0:
            most[1:] = np.maximum(most[1:], self.reward[1])
        return most, np.minimum(least, most)

    def hope(self, wide: float) -> float:
        """How much more than ever may be: for a scout the range of returns times `wide`.

        For others the largest reward, as long as all returns are equal.
        """
        least, most = self.episode
        if wide:
            return float(wide * (most - least))
        unit = float(np.abs(self.reward).max())
        return (unit or 1.0) if not np.isfinite(most) or most - least <= SAME * unit else 0.0


def _widen(limits: Array, x: float) -> None:
    limits[:] = min(limits[0], x), max(limits[1], x)
