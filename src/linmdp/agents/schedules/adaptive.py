"""LSVI-UCB-Adaptive (Algorithm 3): learn while the data still change the inverse, within a budget."""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterator, Sequence
from typing import Any, ClassVar

import numpy as np

from linmdp.agents.backend import NUMPY, Backend, zeros
from linmdp.agents.budget import Choice, varied
from linmdp.agents.lsvi import LSVIAgent
from linmdp.agents.ridge import downdate
from linmdp.agents.schedules.base import Decision, Power, Proxy, Schedule, check_exponent, episodes_at
from linmdp.errors import LinMDPWarning, check_choice, check_int, check_number, invalid
from linmdp.types import Array, BoolArray, Task


class AdaptiveIntervals(Proxy):
    """Learn while the inverse of the proxy L still moves, within a budget.

    LEARN asks for the largest distance between two of L_{k-m}^-1, ..., L_k^-1. Each inverse is the one before less a
    rank-one matrix v v' (see `downdate`), so they only decrease, the farthest pair is the first and the last, and their
    difference is the sum of the last m of those v v'. Its Frobenius norm is that of the m x m Gram matrix of the v:
    m d numbers per step where the paper keeps m d^2, and no inverse is formed.

    Attributes
    ----------
    window : (G, m, d) the last m vectors v, as a ring
    learn_its : (G,) LearnIts; tot_its : TotIts, the same at every step because all steps reset together
    """

    joins: ClassVar = True
    _arrays: ClassVar = (*Proxy._arrays, "window", "learn_its")
    _counters: ClassVar = ("tot_its", "seen", "resetting", "k")

    def __init__(
        self, G: int, d: int, *, lam: float, m: int, tau: float, budget: int | Power, length: float | Power, proxy: str
    ) -> None:
        super().__init__(G, d, lam)
        self.m, self.tau, self.budget, self.length, self.proxy = m, tau, budget, length, proxy
        self.learn_its = np.zeros(G, dtype=np.int64)
        self.window = zeros((G, m, d))
        self.tot_its = self.seen = self.resetting = self.k = 0

    def working_bytes(self, samples: int) -> int:
        G, m, d = self.window.shape
        return int(super().working_bytes(samples) + 8 * G * (m * m + 2 * d))

    @classmethod
    def joined(cls, schedules: Sequence[Any], backend: Backend) -> AdaptiveTogether:
        return AdaptiveTogether(schedules, backend)

    def take_run(self, batched: Any, i: int) -> None:
        host = batched.backend.host
        self.L_inv[:], self.window[:] = host(batched.L_inv)[:, i], host(batched.window)[:, i, : self.m]
        self.learn_its[:] = batched.learn_its[:, i]
        self.tot_its, self.resetting = int(batched.tot_its[i]), int(batched.resetting[i])
        self.seen, self.k = int(batched.seen[i]), batched.k

    def begin_episode(self) -> Decision:
        self.k += 1
        length, budget = self._limits(self.k)
        self.resetting = int(self.tot_its >= length or bool((self.learn_its >= budget).any()))  # line 8
        if self.resetting:  # lines 22 and 23
            self.tot_its = 0
            self.learn_its[:] = 0
            if self.proxy == "phase":
                self.seen = 0
                self.restart_proxy()
            return Decision(reset=True, plan=self._none, store=self._none)
        self.tot_its += 1  # line 9
        learn = self._learn()
        self.learn_its += learn  # line 11
        return self.learn(learn)

    def _learn(self) -> BoolArray:
        """LEARN for every regression, (G,): true while fewer than m+1 matrices are in the window."""
        if self.seen < self.m:
            return self._all
        moved: BoolArray = distance(self.window) >= self.tau
        return moved

    def moved(self, phi: Array) -> None:
        if not (self.resetting and self.proxy == "phase"):  # the episode between two phases belongs to neither
            self.window[:, self.seen % self.m] = downdate(self.L_inv, phi)  # line 6
            self.seen += 1

    def _limits(self, k: int) -> tuple[float, int]:
        """The longest phase and the budget, in episode k."""
        length = self.length.at(k) if isinstance(self.length, Power) else self.length
        return length, episodes_at(self.budget, k)

    def most_samples(self, episodes: int) -> int:
        length, budget = self._limits(episodes)
        return min(budget, math.ceil(length), episodes)


class AdaptiveTogether(Proxy):
    """The schedules of B runs in lockstep, with arrays that have an axis for the runs.

    A GPU records `moved` and plays it again, so all that changes from episode to episode in it is an array.

    Attributes
    ----------
    window : (G, B, the largest m, d); a run with a smaller m leaves the rest of it 0, which adds nothing
    learn_its, tot_its, resetting : (G, B), (B,) and (B,), on the host, where decisions are made
    seen, moves : (B,), and whether the proxy of a run gets the data of this episode
    """

    def __init__(self, schedules: Sequence[AdaptiveIntervals], backend: Backend = NUMPY) -> None:
        B, (G, d) = len(schedules), schedules[0].L_inv.shape[:2]
        super().__init__(G, d, np.array([float(s.lam) for s in schedules]), batch=(B,), backend=backend)
        self.each, self.phase = schedules, np.array([s.proxy == "phase" for s in schedules])
        self.m, self.tau = backend.array([s.m for s in schedules], "int64"), backend.array([s.tau for s in schedules])
        self.window = backend.zeros((G, B, max(s.m for s in schedules), d))
        self.learn_its, self.tot_its = np.zeros((G, B), dtype=np.int64), np.zeros(B, dtype=np.int64)
        self.resetting = np.zeros(B, dtype=np.bool_)
        self.seen, self.moves = backend.zeros((B,), "int64"), backend.zeros((B,), "int64") + 1
        self.runs, self.k = backend.array(np.arange(B), "int64"), 0

    def begin_episode(self) -> Decision:
        self.k += 1
        length, budget = np.array([s._limits(self.k) for s in self.each]).T
        self.resetting = (self.tot_its >= length) | (self.learn_its >= budget).any(axis=0)
        learn = self.backend.host((distance(self.window) >= self.tau) | (self.seen < self.m)) & ~self.resetting
        self.tot_its = np.where(self.resetting, 0, self.tot_its + 1)
        self.learn_its = np.where(self.resetting, 0, self.learn_its + learn)
        if self.phase.any():
            self._restart(self.resetting & self.phase)
        return Decision(reset=self.resetting, plan=learn, store=learn)

    def _restart(self, anew: BoolArray) -> None:
        """Let the proxies of these runs, (B,), start again, without the episode between two phases."""
        self.moves[:] = self.backend.array(~anew, "int64")
        self.seen *= self.moves
        for i in np.flatnonzero(anew):
            self.L_inv[:, i] = self.backend.array(np.eye(self.L_inv.shape[-1])) / self.lam[i]

    def planned(self, runs: Any = ...) -> None:
        """Nothing depends on it."""

    def moved(self, phi: Any) -> None:
        v = downdate(self.L_inv, phi * self.moves[:, None])  # 0 where it does not move: written over before it counts
        self.window[:, self.runs, self.seen % self.m] = v
        self.seen += self.moves


def distance(window: Any) -> Any:
    """The Frobenius norm of the sum of all v v' of a window (..., m, d): that of the Gram matrix of the v."""
    gram = window @ window.swapaxes(-1, -2)
    return (gram * gram).sum((-2, -1)) ** 0.5


def largest_tau(m: int, d: int, lam: float) -> float:
    """No two inverses m episodes apart can differ by more: min(m, d) eigenvalues, each at most 1/lam."""
    return math.sqrt(min(m, d)) / lam


class LSVIUCBAdaptive(LSVIAgent):
    """LSVI-UCB-Adaptive (Algorithm 3): learns while the data still change Lambda^-1, within a budget, then forgets.

    Parameters
    ----------
    m : lookback, in episodes
    tau, tau_c, tau_rel : the threshold of LEARN, at most one of them: absolute, as tau_c d^2 (the paper's), or as a
        fraction of the largest that can be reached, sqrt(min(m, d)) / lam (the default, 1e-4)
    budget : learning episodes per phase: an exponent c in (0, 1] for K^c, or a count from 2 on
    rho : in (0, 1]; a phase has at most K^rho episodes
    proxy : "all" (literal: L is never reset) or "phase" (L starts anew with each phase)
    common : the parameters of `LSVIUCB`; where `episodes` (K) is not given, K is doubled whenever it is reached
    """

    name, schedule_type, in_lockstep = "lsvi-ucb-adaptive", AdaptiveIntervals, True
    may_stop_learning = True
    test_parameters = (
        {"rho": 0.7, "budget": 0.6, "m": 3},
        {"rho": 0.7, "m": 2, "proxy": "phase", "tau_c": 0.01, "storage": "features"},
    )

    def __init__(
        self,
        task: Task,
        *,
        m: int = 10,
        tau: float | None = None,
        tau_c: float | None = None,
        tau_rel: float | None = None,
        budget: float = 0.75,
        rho: float = 0.75,
        proxy: str = "all",
        **common: Any,
    ) -> None:
        self.m, self.tau, self.tau_c, self.tau_rel = m, tau, tau_c, tau_rel
        self.budget, self.rho, self.proxy = budget, rho, proxy
        super().__init__(task, **common)

    def make_schedule(self) -> Schedule:
        m = self.chosen_within.get("m") or check_int(self.name, "m", self.m, low=1, high=10**7)
        check_choice(self.name, "proxy", self.proxy, ("all", "phase"))
        rho = check_exponent(self.name, "rho", self.rho)
        length = Power(rho, None, 1) if self._K is None else round(math.pow(self._K, rho), 9)
        budget = self.chosen_within.get("budget") or self._budget()
        return AdaptiveIntervals(
            self.horizon.groups,
            self.task.d,
            lam=self.lam_value,
            m=m * self.horizon.samples_per_episode,  # with one proxy for all steps, each step moves it
            tau=self._threshold(m),
            budget=budget,
            length=length,
            proxy=self.proxy,
        )

    def _budget(self) -> int | Power:
        """Learning episodes of a phase."""
        if check_number(self.name, "budget", self.budget, low=0.0, open_low=True) <= 1:
            budget = Power(self.budget, self._K, 1)
            return budget if self._K is None else budget.at(self._K)
        return check_int(self.name, "budget", self.budget, low=2)

    def _choices(self) -> Iterator[Choice]:
        m = check_int(self.name, "m", self.m, low=1, high=10**7)
        within = varied(super()._choices(), "budget", episodes_at(self._budget(), self._known_K()), 1)
        yield from varied(within, "m", m, 1)

    def _threshold(self, m: int) -> float:
        given = {n: getattr(self, n) for n in ("tau", "tau_c", "tau_rel") if getattr(self, n) is not None}
        if len(given) > 1:
            invalid(
                self.name,
                "tau",
                f"given in one form only, not as {' and '.join(given)}",
                tuple(given.values()),
            )
        form, value = next(iter(given.items())) if given else ("tau_rel", DEFAULT_TAU_REL)
        check_number(self.name, form, value, low=0.0)
        largest = largest_tau(m, self.task.d, self.lam_value)
        tau: float = value * {"tau": 1.0, "tau_c": self.task.d**2, "tau_rel": largest}[form]
        if tau > largest:
            scope = " of a phase" if self.proxy == "phase" else ""
            warnings.warn(
                f"{self.name}: the threshold tau = {tau:.4g} ({form}={value:g}) can never be reached: inverses {m} "
                f"episodes apart differ by at most sqrt(min(m, d)) / lam = {largest:.4g}. The agent will learn nothing "
                f"after its first {m} episodes{scope}. Use a smaller {form}, or tau_rel in (0, 1].",
                LinMDPWarning,
            )
        return tau


DEFAULT_TAU_REL = 1e-4
"""Small on purpose: an agent that stops learning repeats its data, which change the inverse less and less."""
