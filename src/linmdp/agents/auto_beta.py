"""beta="auto": a confidence width from the noise of the data, and the multiple of it that earns most.

    beta = kappa max(Z sigma, FLOOR sqrt(lam) r),   at most sqrt(lam) r H,   r the largest reward in size.

sigma^2 is the mean square of the one-step errors of greedy weights: the noise of optimistic values would feed itself.
kappa is played by a bandit on the returns. Docs: choosing beta.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import ClassVar

import numpy as np

from linmdp.agents.backend import zeros
from linmdp.agents.base import Component
from linmdp.agents.held import check_range
from linmdp.agents.horizon import Horizon
from linmdp.types import Array

Z = 0.5
FLOOR = 0.1
MULTIPLES = (1.0, 6.0, 36.0)
CONFIDENCE = 0.7
"""Weight of the bandit's own bonus, in standard deviations of the returns."""

MEMORY = 1.3
"""Returns fade: those of the last t / MEMORY + 20 of t episodes count, since every multiple improves with the data."""

PLAYED = 0.5
"""A multiple whose faded episodes are fewer than this is played before any bound is asked."""

RENEW = 0.1
"""Greedy weights are planned anew when the number of episodes has grown by this fraction."""


class AutoBeta(Component):
    """What beta="auto" has to remember: a few numbers, and one weight vector per step.

    Attributes
    ----------
    w : (levels, d) greedy weights
    returns : (3, multiples) weight, sum and sum of squares of the faded returns of each multiple
    numbers : mean square of the errors; sum of squares, errors and return in this episode; the last reward and its
        prediction, which wait for the next state
    """

    _arrays: ClassVar = ("w", "returns", "numbers")
    _derived: ClassVar = ("caps",)
    _counters: ClassVar = ("episodes", "due", "arm", "waiting")
    _saved_within: ClassVar = {"episodes": (0, np.inf), "arm": (0, len(MULTIPLES) - 1), "waiting": (0, 1)}

    def __init__(self, horizon: Horizon, d: int, *, lam: float, caps: Array, scale: float) -> None:
        self.horizon, self.caps = horizon, caps[-horizon.H :]
        self.floor = FLOOR * math.sqrt(lam) * scale
        self.ceiling = math.sqrt(lam) * scale * horizon.effective_steps
        self.w = zeros((horizon.levels, d))
        self.returns = np.zeros((3, len(MULTIPLES)))
        self.numbers = np.zeros(6)
        self.episodes = self.due = self.arm = self.waiting = 0

    def working_bytes(self, samples: int) -> int:
        return int(24 * self.w.shape[1])

    def load_state_dict(self, state: Mapping[str, np.ndarray]) -> None:
        super().load_state_dict(state)
        check_range("numbers", self.numbers[:3], 0, np.inf)
        check_range("returns", self.returns[::2], 0, np.inf)

    def choose(self) -> float:
        """beta for the planning that comes."""
        n = self.returns[0]
        self.arm = int(n.argmin() if n.min() < PLAYED else self._bounds()[1].argmax())
        return self.beta

    @property
    def beaten(self) -> bool:
        """Whether the current multiple cannot be the best: planning with another one should not wait."""
        if self.returns[0].min() < PLAYED:
            return False
        mean, bound = self._bounds()
        return bool(bound[self.arm] < mean.max())

    def _bounds(self) -> tuple[Array, Array]:
        """The mean return of each multiple, and its upper confidence bound."""
        n, total, squares = self.returns
        mean = total / n
        variance = max(float((squares - n * mean**2).sum() / n.sum()), 1e-12)
        return mean, mean + CONFIDENCE * np.sqrt(2 * variance * math.log(max(n.sum(), 2.0)) / n)

    @property
    def beta(self) -> float:
        """The current width."""
        return min(MULTIPLES[self.arm] * max(Z * math.sqrt(self.numbers[0]), self.floor), self.ceiling)

    @property
    def stale(self) -> bool:
        """Whether greedy weights are due."""
        return self.episodes >= self.due

    def renew(self, w: Array) -> None:
        """New greedy weights, (levels, d)."""
        self.w[:] = w
        self.due = self.episodes + max(1, int(RENEW * self.episodes))

    def see(self, h: int, phi: Array, action: int, reward: float) -> None:
        """A step: the features of its state, (A, d), and what was done and got there."""
        w = self.w[self.horizon.level(h)]
        values = phi @ w
        if self.waiting:
            self._error(self.horizon.discount * min(float(values.max()), float(self.caps[h])))
        self.numbers[3] += reward
        self.numbers[4], self.numbers[5] = reward, values[action]
        self.waiting = 1

    def end(self, *, over: bool) -> None:
        """The episode has ended; `over`: nothing follows its last step, as opposed to something unknown."""
        if self.waiting and over:
            self._error(0.0)
        self.waiting = 0
        mean_square, squares, errors, earned = self.numbers[:4]
        if errors:
            self.numbers[0] += (squares / errors - mean_square) * min(1.0, 2 / (self.episodes + 2))
        self.returns *= 1 - 1 / (self.episodes / MEMORY + 20)
        self.returns[:, self.arm] += (1.0, earned, earned * earned)
        self.numbers[1:4] = 0.0
        self.episodes += 1

    def _error(self, ahead: float) -> None:
        error = self.numbers[4] + ahead - self.numbers[5]
        self.numbers[1] += error * error
        self.numbers[2] += 1
