"""LSVI-UCB-Select: a sample is stored only if its direction is new, which is known before its outcome."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, ClassVar

import numpy as np

from linmdp.agents.budget import Choice, varied
from linmdp.agents.lsvi import LSVIAgent
from linmdp.agents.schedules.base import Decision, Schedule
from linmdp.errors import check_int, check_number, invalid
from linmdp.types import Array, BoolArray, Task

USUAL_GAMMA = 0.1
"""Where neither M nor gamma is given."""

SLACK = 1e-9
"""x is often exactly at its threshold (unit vectors): there rounding must not decide."""


def worst_case(M: int, d: int, lam: float, bound: float = 1.0) -> float:
    """Gamma^2 with which at most M samples reach x >= Gamma, whatever they are, if |phi| is at most `bound`.

    Each of them multiplies det Lambda by 1 + Gamma^2 or more, and M of them by (1 + M bound^2 / (lam d))^d or less.
    """
    return math.expm1(min(d / M * math.log1p(M * bound**2 / (lam * d)), 700.0))  # e^700: as good as infinity


class Selection(Schedule):
    """Store a sample if x = |phi|_{Lambda^-1} is at least Gamma and there is space; plan if anything was stored.

    x is taken in the live Lambda: that of the last planning, and what this episode has stored since. Gamma is a
    constant (`limit`, its square), gamma |phi|, or by default what x falls to when M samples of the size seen so far
    are spread evenly over the d directions: |phi| / sqrt(lam + M mean |phi|^2 / d).

    Attributes
    ----------
    stored, squares : (G,) samples stored, and the sum of their |phi|^2
    new : (G,) which regressions have got samples since they were planned
    norms : (2,) sum of x over the samples skipped, and over those stored
    skipped, refused : samples not stored, and those of them that were new and found no space
    """

    batched = False
    _arrays: ClassVar = ("stored", "squares", "new", "norms")
    _counters: ClassVar = ("k", "skipped", "refused")

    def __init__(
        self, G: int, within: int, *, M: int | None, gamma: float | None, limit: float | None, whole: bool
    ) -> None:
        super().__init__(G)
        self.M, self.gamma, self.limit, self.whole, self.within = M, gamma, limit, whole, within
        self.stored, self.squares = np.zeros(G, dtype=np.int64), np.zeros(G)
        self.new, self.norms = np.zeros(G, dtype=np.bool_), np.zeros(2)
        self.k = self.skipped = self.refused = 0
        self._since: list[Array] = []

    def bind(self, ridge: Any) -> None:
        self.ridge = ridge

    def begin_episode(self) -> Decision:
        plan = self._all if self.k == 0 or (self.whole and self.new.any()) else self._up_to_the_last()
        self.k += 1
        self.new[:] = False
        return Decision(reset=False, plan=plan, store=self._all)

    def _up_to_the_last(self) -> BoolArray:
        """All steps up to the last one that has a new sample: those after it cannot change."""
        return np.logical_or.accumulate(self.new[::-1])[::-1]

    def admits(self, g: int, phi: Array) -> bool:
        u, size = self.ridge.fit(g, phi), float(phi @ phi)
        for v in self._since:
            u = u - (v @ phi) * v
        x2 = max(float(phi @ u), 0.0)
        new, fits = x2 >= self.threshold(g, size), self.M is None or bool(self.stored[g] < self.M)
        store = new and fits
        self.norms[int(store)] += math.sqrt(x2)
        if not store:
            self.skipped += 1
            self.refused += new
            return False
        self.stored[g] += 1
        self.squares[g] += size
        self.new[g] = True
        if len(self.stored) == 1:  # of several regressions each gets one sample in an episode
            self._since.append(u / math.sqrt(1 + x2))  # v of `downdate`
        return True

    def threshold(self, g: int, size: float) -> float:
        """The least x^2 with which a phi of that |phi|^2 is stored."""
        if self.limit is not None:
            return self.limit * (1 - SLACK)
        if self.gamma is not None:
            return self.gamma**2 * size
        d, mean = int(self.ridge.u.shape[-1]), float(self.squares[g] / self.stored[g]) if self.stored[g] else size
        spread = float(self.ridge.lam) + (self.M or 0) * mean / d
        return (1 + SLACK) * size / spread

    def end_episode(self, earned: float = 0.0) -> None:
        self._since.clear()  # they are in Lambda from the next planning on

    def diagnostics(self) -> dict[str, float]:
        skipped, stored = self.norms.tolist()
        counts = {"stored": int(self.stored.sum()), "skipped": self.skipped, "refused": self.refused}
        return {**counts, "skipped_norms": skipped, "stored_norms": stored}

    def most_samples(self, episodes: int) -> int:
        return episodes if self.M is None else min(self.M, episodes)

    def most_held(self, episodes: int, per_episode: int) -> int:
        held = super().most_held(episodes, per_episode)
        return held if self.M is None else min(self.M, episodes * per_episode)

    def working_bytes(self, samples: int) -> int:
        """The directions of an episode, where there is one regression, and a few more."""
        return 8 * int(self.ridge.u.shape[-1]) * ((self.within if len(self.stored) == 1 else 0) + 4)


class LSVIUCBSelect(LSVIAgent):
    """LSVI-UCB-Select: LSVI-UCB that stores a sample only if its direction is new, and plans only if it stored any.

    What is new is decided before the outcome is seen: |phi|_{Lambda^-1} >= Gamma. It never forgets.

    Parameters
    ----------
    M : the most samples stored per step, or in all where one regression serves all steps; default: no limit
    gamma : Gamma = gamma |phi|, so that about 1 / gamma^2 samples of a direction are stored. "theory": the Gamma that M
        samples reach at most, whatever comes; "auto": with M, so that M samples are spread evenly; else 0.1
    lam, common : the parameters of `LSVIUCB`; the storage holds samples as they are, by default as states
    """

    name, schedule_type, own_M = "lsvi-ucb-select", Selection, True
    test_parameters = (
        {},
        {"M": 9, "gamma": "theory", "beta": 0.1, "lam": 0.1, "storage": "features"},
        {"M": 12, "gamma": 0.5, "storage": "states", "stationary": True},
    )

    def __init__(
        self,
        task: Task,
        *,
        M: int | None = None,
        gamma: float | str = "auto",
        lam: float | str = "auto",
        **common: Any,
    ) -> None:
        self.gamma = gamma
        super().__init__(task, M=M, lam=lam, **common)

    def usual_storage(self, *, table: bool, unit: bool) -> str:
        return "counts" if table else "sparse" if unit else "states"

    def make_schedule(self) -> Schedule:
        M, gamma, limit = self.chosen_within.get("M", self._given_M()), self.gamma, None
        if gamma == "theory":
            if M is None:
                invalid(self.name, "M", "given where gamma is 'theory', which depends on it", None)
            limit = worst_case(M, self.task.d, self.lam_value, self._features.bound)
        elif gamma != "auto":
            if isinstance(gamma, str):
                invalid(self.name, "gamma", "a number >= 0, 'auto' or 'theory'", gamma)
            gamma = check_number(self.name, "gamma", gamma, low=0.0)
        elif M is None:
            gamma = USUAL_GAMMA
        fraction = None if isinstance(gamma, str) else float(gamma)
        # with a width that follows from the data every step may change
        within = self.horizon.samples_per_episode
        return Selection(self.horizon.groups, within, M=M, gamma=fraction, limit=limit, whole=self.beta == "auto")

    def _given_M(self) -> int | None:
        return None if self.M is None else check_int(self.name, "M", self.M, low=1, high=10**9)

    def _choices(self) -> Iterator[Choice]:
        most = self._given_M()
        if most is None:
            most = self._known_K() * self.horizon.samples_per_episode
        yield from varied(super()._choices(), "M", most, 1)
