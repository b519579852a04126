"""Ada-LSVI-UCB-Restart (Zhou, Chen, Varshney, Jagmohan, 2022): how often to restart is learned.

In the paper a bandit draws the window of every block of episodes (`BanditEpochs`). By default blocks end with a change,
or when the longer window does not pay (`Halves`): an epoch tells about all windows that are shorter than it is.
"""

from __future__ import annotations

import math
from typing import Any, ClassVar

import numpy as np

from linmdp.agents.schedules.base import Alert, Decision, Schedule
from linmdp.agents.schedules.changes import Changes
from linmdp.agents.schedules.detect import Drops, LSVIUCBDetect
from linmdp.errors import check_int, check_number, invalid
from linmdp.types import Array, Task

FACTOR = 4
"""From one window to the next, where their number is given."""

LEAST = 16
"""Episodes of the shortest window that is compared with one of twice its length."""

ERRORS = 3.0
"""Standard errors by which the shorter window must be the better one."""

FIXED, CHANGES = {"c": 2.0, "arms": 2}, {"replan": None, "errors": 6.0, "false_alarms": 0.1}
"""Parameters of fixed blocks alone, and of those that end with a change, and their defaults."""


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


class Halves(Alert):
    """Beside another test: restart when the second half of the epoch so far has earned less than the first.

    A window of W episodes would have earned what the first W have earned, again and again; one of 2W, what all have.
    So an epoch compares them without another one to try them in, and its second half has even learned longer. They are
    compared at W = 16, 32, 64, ...

    Attributes
    ----------
    halves : (2, 3) episodes, mean return and sum of squares around it of the first half, and of what follows
    """

    _arrays: ClassVar[tuple[str, ...]] = ("halves",)
    n: int

    def __init__(self, *args: Any, **pace: Any) -> None:
        super().__init__(*args, **pace)
        self.halves = np.zeros((2, 3))

    def kept_steps(self) -> int | None:
        before = self.n
        kept = super().kept_steps()
        if kept is not None:  # slow changes, of which returns tell less, do not end the epoch
            self.halves[:] = 0.0
            self.halves[0, 0] = 0.0 if self.n <= before else np.inf
        elif self._shorter_pays():
            self.forget()
            self.halves[:], kept = 0.0, 0
        return kept

    def _shorter_pays(self) -> bool:
        (W, mean, squares), (n, mean_after, squares_after) = self.halves.tolist()
        if n < max(W, LEAST):
            return False
        fall = mean - mean_after
        self.halves[:] = (2 * W, mean - fall / 2, squares + squares_after + W * fall**2 / 2), (0.0, 0.0, 0.0)
        return bool(fall > ERRORS * math.sqrt(squares + squares_after) / W + 1e-9 * max(1.0, abs(mean)))

    def end_episode(self, earned: float = 0.0) -> None:
        super().end_episode(earned)
        moments = self.halves[int(self.halves[0, 0] >= LEAST)]
        n, mean, _ = moments
        moments += 1, (earned - mean) / (n + 1), (earned - mean) ** 2 * n / (n + 1)


class DropsAndHalves(Halves, Drops):
    """By returns alone."""

    _arrays: ClassVar = (*Halves._arrays, *Drops._arrays)


class ChangesAndHalves(Halves, Changes):
    """By what follows unit vectors, and by returns."""

    _arrays: ClassVar = (*Halves._arrays, *Changes._arrays)


class AdaLSVIUCBRestart(LSVIUCBDetect):
    """Ada-LSVI-UCB-Restart: LSVI-UCB-Restart that learns by itself how long its epochs are.

    Parameters
    ----------
    blocks : "fixed": the paper's, blocks of a given length, each from nothing and with a W that a bandit (EXP3.P) draws
        for it; "changes": epochs end with a change (as in `LSVIUCBDetect`), or when half their length would have
        earned more; "auto": "fixed" if c or arms is given, else "changes"
    c : a fixed block has ceil(c sqrt(dK)) episodes; `episodes` (K) is needed
    arms : different W of fixed blocks, a factor of 4 apart, the longest a block; none: the paper's, about ln M of them
    common : the parameters of `LSVIUCBDetect`, but for fixed blocks without errors, false_alarms and replan
    """

    name, tests, in_lockstep = "ada-lsvi-ucb-restart", (DropsAndHalves, ChangesAndHalves), True
    test_parameters = (
        {},
        {"c": 0.2, "beta": 0.1, "lam": 0.1, "arms": 4},
        {"arms": None, "storage": "features"},
        {"errors": 0.5, "false_alarms": 1e6, "beta": 0.1, "storage": "features"},
    )

    def __init__(
        self, task: Task, *, blocks: str = "auto", c: float = 2.0, arms: int | None = 2, **common: Any
    ) -> None:
        self.blocks, self.c, self.arms = blocks, c, arms
        super().__init__(task, **common)

    def _fixed(self) -> bool:
        """Whether blocks have a fixed length."""
        if self.blocks not in ("auto", "fixed", "changes"):
            invalid(self.name, "blocks", "'auto', 'fixed' or 'changes'", self.blocks)
        asked = any(getattr(self, name) != usual for name, usual in FIXED.items())
        fixed = self.blocks == "fixed" or (self.blocks == "auto" and asked)
        for name, usual in (CHANGES if fixed else FIXED).items():
            if (given := getattr(self, name)) != usual:
                invalid(self.name, name, f"left out where blocks are {'fixed' if fixed else 'changes'}", given)
        return fixed

    def _block(self) -> int:
        if self._K is None:
            invalid(self.name, "episodes", "given: its blocks, and the rates of its bandit, depend on it", None)
        c = check_number(self.name, "c", self.c, low=0.0, open_low=True)
        return min(math.ceil(c * math.sqrt(self.task.d * self._K)), self._K)

    def make_schedule(self) -> Schedule:
        if not self._fixed():
            return super().make_schedule()
        M, (low, high), H = self._block(), self.task.reward_range, self.task.H
        arms = None if self.arms is None else check_int(self.name, "arms", self.arms, low=2, high=20)
        assert self._K is not None
        return BanditEpochs(self.horizon.groups, M, windows(M, arms), -(-self._K // M), H * low, H * high)
