"""Ada-LSVI-UCB-Restart (Zhou, Chen, Varshney, Jagmohan, 2022): how often to restart is learned, by a bandit."""

from __future__ import annotations

import math
from typing import Any, ClassVar

import numpy as np

from linmdp.agents.budget import Choice, Sizes
from linmdp.agents.lsvi import LSVIAgent
from linmdp.agents.schedules.base import Decision, Schedule
from linmdp.errors import check_int, check_number, invalid
from linmdp.types import Array, Task

FACTOR = 4
"""From one window to the next, where their number is given."""


def windows(M: int, arms: int | None) -> list[int]:
    """W of each arm, up to the M of a block: `arms` of them, or floor(M^(j/J)) for j = 0 ... J = ceil(ln M)."""
    if arms is not None:
        return [max(1, M // FACTOR ** (arms - 1 - j)) for j in range(arms)]
    J = max(1, math.ceil(math.log(M)))
    return [math.floor(round(math.pow(M, j / J), 9)) for j in range(J + 1)]


class BanditEpochs(Schedule):
    """Blocks of M episodes, each from nothing and with the W that EXP3.P has drawn for it.

    Attributes
    ----------
    q : (D,) the bandit's estimate of what each W has earned
    earned : (1,) return of the block so far
    """

    reads_features: ClassVar = False
    _arrays: ClassVar = ("q", "earned")
    _counters: ClassVar = ("k", "arm", "seed_")
    _derived: ClassVar = (*Schedule._derived, "W")

    def __init__(self, G: int, M: int, W: list[int], blocks: int, least: float, most: float) -> None:
        super().__init__(G)
        D = len(W)
        self.M, self.W, self.least, self.most = M, np.array(W), least, most
        self.rate, self.bias = 0.95 * math.sqrt(math.log(D) / (blocks * D)), math.sqrt(math.log(D) / (blocks * D))
        self.gamma = min(1.0, 1.05 * math.sqrt(D * math.log(D) / blocks))
        self.q, self.earned, self.k, self.arm, self.seed_ = np.zeros(D), np.zeros(1), 0, 0, 0

    def seed(self, rng: np.random.Generator) -> None:
        if not self.seed_:
            self.seed_ = int(rng.integers(1, 2**62))

    def begin_episode(self) -> Decision:
        block, within = divmod(self.k, self.M)
        if within == 0:
            if block:
                self._learn_from_block()
            draw = np.random.default_rng((self.seed_, block)).random()
            self.arm = min(int(self.chances().cumsum().searchsorted(draw, side="right")), len(self.W) - 1)
        reset = self.k > 0 and within % int(self.W[self.arm]) == 0
        self.k += 1
        return Decision(reset=reset, plan=self._all, store=self._all)

    def chances(self) -> Array:
        """p = (1 - gamma) softmax(a q) + gamma / D, (D,)."""
        weights = np.exp(self.rate * (self.q - self.q.max()))
        p: Array = (1 - self.gamma) * weights / weights.sum() + self.gamma / len(self.W)
        return p

    def _learn_from_block(self) -> None:
        """q_l += (g 1{l = arm} + b) / p_l, with the block's return g scaled to [0, 1]."""
        p, gain = self.chances(), np.full(len(self.W), self.bias)
        g = (self.earned[0] / self.M - self.least) / max(self.most - self.least, 1e-12)
        gain[self.arm] += min(max(g, 0.0), 1.0)
        self.q += gain / p
        self.earned[:] = 0.0

    def end_episode(self, earned: float = 0.0) -> None:
        self.earned += earned

    def most_samples(self, episodes: int) -> int:
        return min(self.M, episodes)

    @classmethod
    def forecast_bytes(cls, s: Sizes) -> int:
        return super().forecast_bytes(s) + 8 * 64


class AdaLSVIUCBRestart(LSVIAgent):
    """Ada-LSVI-UCB-Restart: LSVI-UCB-Restart in blocks, each from nothing and with a W that a bandit (EXP3.P) draws.

    Parameters
    ----------
    c : a block has ceil(c sqrt(dK)) episodes; `episodes` (K) is needed
    arms : different W, a factor of 4 apart, the longest a block; none: the paper's, about ln M of them
    lam, common : the parameters of `LSVIUCB`
    """

    name, schedule_type, in_lockstep = "ada-lsvi-ucb-restart", BanditEpochs, True
    test_parameters = (
        {},
        {"c": 0.2, "beta": 0.1, "lam": 0.1, "arms": 4},
        {"arms": None, "storage": "features"},
    )

    def __init__(
        self, task: Task, *, c: float = 2.0, arms: int | None = 2, lam: float | str = "auto", **common: Any
    ) -> None:
        self.c, self.arms = c, arms
        super().__init__(task, lam=lam, **common)

    def _block(self) -> int:
        if self._K is None:
            invalid(self.name, "episodes", "given: its blocks, and the rates of its bandit, depend on it", None)
        c = check_number(self.name, "c", self.c, low=0.0, open_low=True)
        return min(math.ceil(c * math.sqrt(self.task.d * self._K)), self._K)

    def make_schedule(self) -> Schedule:
        M, (low, high), H = self._block(), self.task.reward_range, self.task.H
        arms = None if self.arms is None else check_int(self.name, "arms", self.arms, low=2, high=20)
        assert self._K is not None
        return BanditEpochs(self.horizon.groups, M, windows(M, arms), -(-self._K // M), H * low, H * high)

    def _most_samples(self, choice: Choice) -> int | None:
        return self._block()
