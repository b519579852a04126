"""LSVI with upper confidence bounds, written once. The algorithms of the paper differ in their schedule alone."""

from __future__ import annotations

import math
import warnings
from collections.abc import Mapping
from typing import TypedDict, Unpack

import numpy as np

from linmdp.agents.base import Agent, StateDict, check_reward, load_array, prefixed, under
from linmdp.agents.core import Core
from linmdp.agents.memory import Counts, Memory
from linmdp.agents.regression import Optimism, Ridge, confidence_width, value_caps
from linmdp.agents.samples import Samples
from linmdp.agents.schedules import AdaptiveIntervals, Always, FixedPhases, Schedule, largest_tau
from linmdp.errors import InvalidData, LinMDPWarning, check_choice, check_int, check_number, invalid
from linmdp.features.base import CheckedFeatures, FeatureMap
from linmdp.features.tabular import TableFeatures
from linmdp.types import Array, IntArray, State, Task


class Common(TypedDict, total=False):
    """The parameters that every LSVI agent takes; `LSVIUCB` documents them."""

    beta: float | str
    lam: float
    cap: str
    ties: str
    storage: str
    dtype: str
    episodes: int | None


class LSVIUCB(Agent):
    """LSVI-UCB (Algorithm 1): optimistic least-squares value iteration over all data.

    Parameters
    ----------
    task : what the environment tells an agent
    beta : width of the confidence bonus: a number, "theory" or "published" (both need `episodes`)
    lam : ridge parameter lambda > 0
    cap : "remaining" clips Q at what the steps left can pay, "H" at what all H steps can (the paper's)
    ties : "random" among the best actions, or "first" (the paper's argmax)
    storage : "counts" (finite states: exact, and memory does not grow), "features" (the paper's), "states", or
        "auto": counts where the features are a table of finite states, else features
    dtype : "float64" or "float32" for whatever is kept per state or per sample; d x d matrices stay float64
    episodes : K, where a parameter depends on it
    """

    name = "lsvi-ucb"

    def __init__(
        self,
        task: Task,
        *,
        beta: float | str = 0.1,
        lam: float = 0.1,
        cap: str = "remaining",
        ties: str = "random",
        storage: str = "auto",
        dtype: str = "float64",
        episodes: int | None = None,
    ) -> None:
        super().__init__(task)
        self.beta, self.lam, self.cap, self.ties = beta, lam, cap, ties
        self.storage, self.dtype, self.episodes = storage, dtype, episodes
        check_choice(self.name, "cap", cap, ("H", "remaining"))
        check_choice(self.name, "ties", ties, ("random", "first"))
        check_choice(self.name, "dtype", dtype, ("float64", "float32"))
        check_number(self.name, "lam", lam, low=0.0, open_low=True)
        K = None if episodes is None else check_int(self.name, "episodes", episodes, low=1)

        self.caps = value_caps(cap, task.H, task.reward_range[1])
        self.beta_value = confidence_width(self.name, beta, d=task.d, H=task.H, K=K)
        if not self.beta_value * self.beta_value / lam < LARGEST_BONUS:
            invalid(self.name, "beta", f"such that beta^2 / lam is below {LARGEST_BONUS:g}", beta)
        self._features = _trusted(task.features)
        self.schedule = self._make_schedule(K)
        self._core = Core(
            task.H,
            task.d,
            lam=float(lam),
            optimism=Optimism(self.beta_value, self.caps),
            make_memory=self._make_memory,
        )
        self._learning = np.zeros(task.H, dtype=np.bool_)
        self._tie_draws = np.zeros(task.H)
        self._next = task.H  # the step to be observed next; H between episodes

    def _make_schedule(self, K: int | None) -> Schedule:
        return Always(self.task.H)

    def _make_memory(self, ridge: Ridge, w: Array, optimism: Optimism) -> Memory:
        storage = check_choice(self.name, "storage", self.storage, ("auto", "features", "states", "counts"))
        if storage == "auto":
            storage = "counts" if isinstance(self._features, TableFeatures) else "features"
        H, features = self.task.H, self._features
        if storage != "counts":
            capacity = None if self.episodes is None else self.samples_after(self.episodes)
            keep_features = storage == "features"
            return Samples(H, features, ridge, w, optimism, self.dtype, keep_features=keep_features, capacity=capacity)
        if not isinstance(features, TableFeatures):
            invalid(self.name, "storage", "'features' or 'states' where features are not a table", "counts")
        return Counts(H, features, ridge, w, optimism, self.dtype)

    def begin_episode(self) -> None:
        decision = self.schedule.begin_episode()
        learn = self._learning
        learn[:] = decision.learn
        self._next = 0
        self._tie_draws = self.rng.random(self.task.H)
        if decision.reset:
            self.resets += 1
            self._core.drop_samples()
        learned = int(learn.sum())
        if learned:
            whole = learned == len(learn)
            self._core.prepare(learn, learn, whole=whole)
            self._core.plan(learn, whole=whole)
            self.updates += learned
            self.policy_version += 1

    def act(self, h: int, state: State) -> int:
        """argmax_a Q_h(state, a) (line 15); a tie goes to the first, or to any of them with the same chance."""
        tied = self._core.memory.best_actions(h, state).nonzero()[0]
        if len(tied) == 0:
            raise InvalidData(
                f"Q of {self.name} at step {h} is not a number: beta, lam or the features are too extreme."
            )
        if len(tied) == 1 or self.ties == "first":
            return int(tied[0])
        return int(tied[int(self._tie_draws[h] * len(tied))])

    def observe(self, h: int, state: State, action: int, reward: float, next_state: State, terminated: bool) -> None:
        self._check_observation(h, action, reward)
        phi = np.ascontiguousarray(self._features.phi(state)[action])
        self.schedule.watch(h, phi)
        if self._learning[h]:
            self._core.add(h, phi, reward, next_state, terminated)

    def _check_observation(self, h: int, action: int, reward: float) -> None:
        if h != self._next:
            expected = f"step {self._next}" if self._next < self.task.H else "begin_episode()"
            raise InvalidData(f"Steps must be observed in order, each once. Got step {h}, expected {expected}.")
        if not 0 <= action < self.task.A:
            raise InvalidData(f"The action must be in [0, {self.task.A - 1}]. Got {action!r}.")
        check_reward(reward, self.task.reward_range, None, h)
        self._next = h + 1

    def end_episode(self) -> None:
        self._next = self.task.H
        self.schedule.end_episode()

    def q_values(self, h: int, state: State) -> Array:
        """min(phi'w + bonus, cap) of every action, (A,)."""
        q: Array = self._core.memory.q_values(h, state)
        return q

    def policy(self, h: int) -> Array | IntArray:
        """(S,) actions or, where random ties are left, (S, A) probabilities."""
        best = self._core.memory.best_table(h)
        if self.ties == "first" or np.count_nonzero(best) == best.shape[-1]:
            actions: IntArray = best.argmax(axis=0)
            return actions
        probabilities: Array = (best / best.sum(axis=0)).T
        return probabilities

    @property
    def nbytes(self) -> int:
        """Bytes of all arrays that the agent owns now."""
        own = (self._learning, self._tie_draws)
        return self._core.nbytes + self.schedule.nbytes + sum(array.nbytes for array in own)

    def samples_after(self, episodes: int) -> int:
        """The most samples that one step's regression rests on at once, within that many episodes."""
        return self.schedule.most_samples(episodes)

    def bytes_after(self, episodes: int) -> int:
        memory = self._core.memory
        return self.nbytes - memory.nbytes + memory.bytes_after(self.samples_after(episodes))

    def drift(self) -> float:
        """max |Lambda Lambda^-1 - I| over all steps."""
        return float(self._core.ridge.drift())

    def state_dict(self) -> StateDict:
        state = super().state_dict()
        state |= {"learning": self._learning.copy(), "tie_draws": self._tie_draws.copy()}
        return state | prefixed("core", self._core.state_dict()) | prefixed("schedule", self.schedule.state_dict())

    def _load(self, state: Mapping[str, np.ndarray]) -> None:
        super()._load(state)
        load_array(self._learning, state, "learning")
        load_array(self._tie_draws, state, "tie_draws")
        self._core.load_state_dict(under("core", state))
        self.schedule.load_state_dict(under("schedule", state))


class LSVIUCBFixed(LSVIUCB):
    """LSVI-UCB-Fixed (Algorithm 2): LSVI-UCB that forgets everything every floor(K^rho) episodes.

    Parameters
    ----------
    rho : in (0, 1]; a phase has max(2, floor(K^rho)) episodes
    common : the parameters of `LSVIUCB`; `episodes` (K) is needed.
    """

    name = "lsvi-ucb-fixed"

    def __init__(self, task: Task, *, rho: float = 0.75, **common: Unpack[Common]) -> None:
        self.rho = rho
        super().__init__(task, **common)

    def _make_schedule(self, K: int | None) -> Schedule:
        return FixedPhases(self.task.H, max(2, math.floor(_power(self.name, "rho", K, self.rho))))


class LSVIUCBAdaptive(LSVIUCB):
    """LSVI-UCB-Adaptive (Algorithm 3): learns while the data still change Lambda^-1, within a budget, then forgets.

    Parameters
    ----------
    m : lookback, in episodes
    tau, tau_c, tau_rel : the threshold of LEARN, at most one of them: absolute, as tau_c d^2 (the paper's), or as a
        fraction of the largest that can be reached, sqrt(min(m, d)) / lam (the default, 1e-4)
    budget : learning episodes a phase: an exponent c in (0, 1] for K^c, or a count from 2 on
    rho : in (0, 1]; a phase has at most K^rho episodes
    proxy : "all" (literal: L is never reset) or "phase" (L starts anew with each phase)
    common : the parameters of `LSVIUCB`; `episodes` (K) is needed.
    """

    name = "lsvi-ucb-adaptive"

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
        **common: Unpack[Common],
    ) -> None:
        self.m, self.tau, self.tau_c, self.tau_rel = m, tau, tau_c, tau_rel
        self.budget, self.rho, self.proxy = budget, rho, proxy
        super().__init__(task, **common)

    def _make_schedule(self, K: int | None) -> Schedule:
        m = check_int(self.name, "m", self.m, low=1)
        check_choice(self.name, "proxy", self.proxy, ("all", "phase"))
        length = _power(self.name, "rho", K, self.rho)
        if check_number(self.name, "budget", self.budget, low=0.0, open_low=True) <= 1:
            budget = max(1, math.floor(_power(self.name, "budget", K, self.budget)))
        else:
            budget = check_int(self.name, "budget", self.budget, low=2)
        return AdaptiveIntervals(
            self.task.H,
            self.task.d,
            lam=self.lam,
            m=m,
            tau=self._threshold(m),
            budget=budget,
            length=length,
            proxy=self.proxy,
        )

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
        largest = largest_tau(m, self.task.d, self.lam)
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


LARGEST_BONUS = 1e100
"""Bound on the first squared bonus: far beyond any use, and far below what a float can hold."""

DEFAULT_TAU_REL = 1e-4
"""Small on purpose: an agent that stops learning repeats its data, which change the inverse less and less."""


def _power(owner: str, parameter: str, K: int | None, exponent: float) -> float:
    """K^exponent, checked."""
    check_number(owner, parameter, exponent, low=0.0, high=1.0, open_low=True)
    if K is None:
        invalid(owner, "episodes", f"given, since K^{parameter} depends on it", None)
    return round(math.pow(K, exponent), 9)  # 1000 is 1000, not 999.9999999999998, before it is rounded down


def _trusted(features: FeatureMap) -> FeatureMap:
    """A table has been checked as a whole; any other map is checked at each call."""
    return features if isinstance(features, TableFeatures | CheckedFeatures) else CheckedFeatures(features)
