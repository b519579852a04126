"""LSVI with upper confidence bounds, written once. The algorithms of the paper differ in their schedule alone."""

from __future__ import annotations

import math
import warnings
from collections.abc import Mapping
from typing import TypedDict, Unpack

import numpy as np

from linmdp.agents.base import Agent, StateDict, load_array, prefixed, under
from linmdp.agents.memory import Counts, Memory, Samples
from linmdp.agents.regression import Optimism, Ridge, confidence_width, value_caps
from linmdp.agents.schedules import AdaptiveIntervals, Always, FixedPhases, Schedule, largest_tau
from linmdp.errors import LinMDPWarning, check_choice, check_int, check_number, invalid
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
        "auto": counts where states are finite, else features
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
        self._optimism = Optimism(self.beta_value, self.caps)
        self._ridge = Ridge(task.H, task.d, float(lam))
        self._w = np.zeros((task.H, task.d))
        self._features = _trusted(task.features)
        self._memory = self._make_memory()
        self._schedule = self._make_schedule(K)
        self._learning = np.zeros(task.H, dtype=np.bool_)
        self._restart = np.zeros(task.H, dtype=np.bool_)

    def _make_schedule(self, K: int | None) -> Schedule:
        return Always(self.task.H)

    def _make_memory(self) -> Memory:
        check_choice(self.name, "storage", self.storage, ("auto", "features", "states", "counts"))
        parts = (self.task.H, self._features, self._ridge, self._w, self._optimism, self.dtype)
        storage = self.storage
        if storage == "auto":
            storage = "features" if self.task.S is None else "counts"
        if storage != "counts":
            return Samples(*parts, keep_features=storage == "features")
        if not isinstance(self._features, TableFeatures):
            invalid(self.name, "storage", "'features' or 'states' where states are not finite", "counts")
        return Counts(self.task.H, self._features, *parts[2:])

    # -- one episode -----------------------------------------------------------------------------------------------

    def begin_episode(self) -> None:
        decision = self._schedule.begin_episode()
        self._learning[:] = decision.learn
        if decision.reset:
            self.resets += 1
            self._memory.clear()
            self._restart[:] = True  # Q_h goes on acting until h is planned again
        if decision.learn.any():
            self._plan()

    def _plan(self) -> None:
        """Lines 4 to 11 of Algorithm 1, for the steps that learn now."""
        learning, ridge, memory = self._learning, self._ridge, self._memory
        steps = np.flatnonzero(learning)[::-1].tolist()
        for h in steps:
            if self._restart[h]:
                ridge.restart(h)
                memory.restart(h)
        self._restart[learning] = False
        v = ridge.absorb(learning)  # line 5
        for h in steps:
            z = memory.target(h)  # lines 7 and 8
            self._w[h] = ridge.solve(h, z)  # line 9
            memory.sweep(h, v[h])  # lines 10 and 11
        self.updates += int(learning.sum())
        self.policy_version += 1

    def act(self, h: int, state: State) -> int:
        """argmax_a Q_h(state, a) (line 15)."""
        best = self._memory.best_actions(h, state)
        if self.ties == "first":
            return int(best.argmax())
        tied = np.flatnonzero(best)
        return int(tied[0] if len(tied) == 1 else self.rng.choice(tied))

    def observe(self, h: int, state: State, action: int, reward: float, next_state: State, terminated: bool) -> None:
        phi = self._features.phi(state)[action]
        self._schedule.watch(h, phi)
        if self._learning[h]:
            self._ridge.add(h, phi, reward)
            self._memory.add(h, phi, next_state, terminated)

    def end_episode(self) -> None:
        self._schedule.end_episode()

    # -- what there is to see -------------------------------------------------------------------------------------

    def q_values(self, h: int, state: State) -> Array:
        """min(phi'w + bonus, cap) of every action, (A,)."""
        return self._memory.q_values(h, state)

    def policy(self, h: int) -> Array | IntArray:
        """(S,) actions or, where random ties are left, (S, A) probabilities."""
        best = self._memory.best_table(h)
        count = best.sum(axis=0)
        if self.ties == "first" or count.max() == 1:
            actions: IntArray = best.argmax(axis=0)
            return actions
        probabilities: Array = (best / count).T
        return probabilities

    @property
    def nbytes(self) -> int:
        """Bytes of all arrays that the agent owns now."""
        parts = (*self._own().values(), *self._parts().values())
        return sum(part.nbytes for part in parts)

    def samples_after(self, episodes: int) -> int:
        """The most samples that one step's regression rests on at once, within that many episodes."""
        return self._schedule.most_samples(episodes)

    def bytes_after(self, episodes: int) -> int:
        grown = self._memory.bytes_after(self.samples_after(episodes))
        return self.nbytes - self._memory.nbytes + grown

    def drift(self) -> float:
        """max |Lambda Lambda^-1 - I| over all steps."""
        return self._ridge.drift()

    def state_dict(self) -> StateDict:
        state = super().state_dict()
        state |= {name: array.copy() for name, array in self._own().items()}
        for name, part in self._parts().items():
            state |= prefixed(name, part.state_dict())
        return state

    def load_state_dict(self, state: Mapping[str, np.ndarray]) -> None:
        super().load_state_dict(state)
        for name, array in self._own().items():
            load_array(array, state, name)
        for name, part in self._parts().items():
            part.load_state_dict(under(name, state))

    def _own(self) -> dict[str, np.ndarray]:
        return {"w": self._w, "learning": self._learning, "restart": self._restart}

    def _parts(self) -> dict[str, Ridge | Memory | Schedule]:
        return {"ridge": self._ridge, "memory": self._memory, "schedule": self._schedule}


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
        fraction of the largest that can be reached, sqrt(min(m, d)) / lam (the default, 0.001)
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
            warnings.warn(
                f"{self.name}: the threshold tau = {tau:.4g} ({form}={value:g}) can never be reached: inverses {m} "
                f"episodes apart differ by at most sqrt(min(m, d)) / lam = {largest:.4g}. After the first {m} episodes "
                f"the agent will learn nothing. Use a smaller {form}, or tau_rel in (0, 1].",
                LinMDPWarning,
            )
        return tau


DEFAULT_TAU_REL = 0.001


def _power(owner: str, parameter: str, K: int | None, exponent: float) -> float:
    """K^exponent, checked."""
    check_number(owner, parameter, exponent, low=0.0, high=1.0, open_low=True)
    if K is None:
        invalid(owner, "episodes", f"given, since K^{parameter} depends on it", None)
    return math.pow(K, exponent)


def _trusted(features: FeatureMap) -> FeatureMap:
    """A table has been checked as a whole; any other map is checked at each call."""
    return features if isinstance(features, TableFeatures | CheckedFeatures) else CheckedFeatures(features)
