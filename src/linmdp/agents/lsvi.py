"""LSVI with upper confidence bounds, written once. The algorithms of the paper differ in their schedule alone."""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterator, Mapping
from typing import Any, Unpack

import numpy as np

from linmdp.agents.base import StateDict, load_array, prefixed, under
from linmdp.agents.budget import Choice, adaptive_bytes, common_bytes, descending, lsvi_bytes
from linmdp.agents.core import Core
from linmdp.agents.memory import Counts, Memory
from linmdp.agents.optimist import Common, Optimist
from linmdp.agents.regression import Optimism, Ridge
from linmdp.agents.samples import Samples
from linmdp.agents.schedules import (
    AdaptiveIntervals,
    Always,
    FixedPhases,
    Power,
    Schedule,
    check_exponent,
    episodes_at,
    largest_tau,
)
from linmdp.agents.shared import SharedCore, SharedCounts, SharedSamples
from linmdp.errors import LinMDPWarning, check_choice, check_int, check_number, invalid
from linmdp.features.tabular import TableFeatures
from linmdp.types import Array, State, Task


class Stored(Common, total=False):
    """`Common`, and how samples are stored."""

    storage: str


class LSVIUCB(Optimist):
    """LSVI-UCB (Algorithm 1): optimistic least-squares value iteration over all data.

    Parameters
    ----------
    task : what the environment tells an agent
    beta : width of the confidence bonus: "auto" (from the noise of the data), a number, or "theory" or "published"
        (both need `episodes`)
    lam : ridge parameter lambda > 0
    cap : "remaining" clips Q at what the steps left can pay, "H" at what all H steps can (the paper's)
    ties : "random" among the best actions, or "first" (the paper's argmax)
    storage : "counts" (finite states: exact, and memory does not grow), "features" (the paper's), "states", or
        "auto": counts where the features are a table of finite states, else features
    dtype : "float64" or "float32" for whatever is kept per state or per sample; d x d matrices stay float64
    episodes : K, where a parameter depends on it
    stationary : one regression for all steps, for tasks whose dynamics do not depend on h: H times less memory, and H
        times more data for each weight
    discount : below 1, with `stationary`: one Q for all steps, of discounted rewards
    max_bytes : the most memory, planning included: a number of bytes, or "2MiB". How samples are kept, their precision
        and (in the other agents) rho, budget, m and M are chosen for it, and shown as `agent.chosen`
    """

    name = "lsvi-ucb"

    def __init__(self, task: Task, *, storage: str = "auto", **common: Unpack[Common]) -> None:
        super().__init__(task, **common)
        self.storage = storage
        self._fit()
        self.schedule = self._make_schedule(self._K)
        self._core: Core | SharedCore = self._make_core(Optimism(self.beta_value, self.caps))
        self._learning = np.zeros(task.H, dtype=np.bool_)

    def _make_schedule(self, K: int | None) -> Schedule:
        return Always(self.groups)

    def _choices(self) -> Iterator[Choice]:
        """As asked, in single precision, as states: the forms in which the samples may be kept."""
        asked = self._chosen_storage()
        storages = [asked] if self.storage != "auto" or asked == "counts" else [asked, "states"]
        if self.storage == "auto" and asked == "counts" and self.episodes is not None:
            storages.append("states")
        for storage in storages:
            for dtype in self._dtypes():
                yield {"storage": storage, "dtype": dtype}

    def _bytes_of(self, choice: Choice) -> int:
        s, samples = self._sizes(), self._most_samples(choice)
        if choice["storage"] == "counts":
            samples = 0
        elif samples is None:
            samples = self._known_K()
        if self.stationary:
            samples *= self.task.H
        lsvi = lsvi_bytes(s, choice["storage"], choice["dtype"], samples, capacity=self.episodes is not None)
        return common_bytes(s, auto=self._width is not None) + lsvi

    def _most_samples(self, choice: Choice) -> int | None:
        """The most samples that one step holds at once; None if nobody knows."""
        return self._K

    def _known_K(self) -> int:
        """K, which some choices can not be made without."""
        if self._K is None:
            invalid(self.name, "episodes", "given with max_bytes", None)
        return self._K

    def _chosen_storage(self) -> str:
        if "storage" in self.chosen:
            return str(self.chosen["storage"])
        storage = check_choice(self.name, "storage", self.storage, ("auto", "features", "states", "counts"))
        if storage == "auto":
            storage = "counts" if isinstance(self._features, TableFeatures) else "features"
        return storage

    def _make_core(self, optimism: Optimism) -> Core | SharedCore:
        features, lam, storage = self._features, float(self.lam), self._chosen_storage()
        dtype = self._chosen_dtype()
        if self.stationary:
            sight: SharedCounts | SharedSamples
            if storage == "counts":
                sight = SharedCounts(self._table(), optimism, dtype)
            else:
                sight = SharedSamples(features, optimism, dtype, keep_features=storage == "features")
            return SharedCore(features, sight, optimism, levels=self.levels, lam=lam, discount=self.discount)
        return Core(
            self.task.H,
            self.task.d,
            lam=lam,
            optimism=optimism,
            make_memory=self._make_memory,
            keep_Lambda=storage == "counts",  # else it can be made anew of the samples
        )

    def _make_memory(self, ridge: Ridge, w: Array, optimism: Optimism) -> Memory:
        H, features, storage = self.task.H, self._features, self._chosen_storage()
        if storage == "counts":
            return Counts(H, self._table(), ridge, w, optimism, self._chosen_dtype())
        capacity = None if self.episodes is None else self.samples_after(self.episodes)
        keep_features = storage == "features"
        dtype = self._chosen_dtype()
        return Samples(H, features, ridge, w, optimism, dtype, keep_features=keep_features, capacity=capacity)

    def _chosen_dtype(self) -> str:
        return str(self.chosen.get("dtype", self.dtype))

    def _table(self) -> TableFeatures:
        if not isinstance(self._features, TableFeatures):
            invalid(self.name, "storage", "'features' or 'states' where features are not a table", "counts")
        return self._features

    def begin_episode(self) -> None:
        super().begin_episode()
        decision = self.schedule.begin_episode()
        learn = self._learning
        learn[:] = decision.learn
        if decision.reset:
            self.resets += 1
            self._core.drop_samples()
        learned = int(learn.sum())
        if learned:
            whole = learned == len(learn)
            if whole:  # a Q that is not planned again keeps the width that it was planned with
                self._choose_beta()
            self._core.prepare(learn, learn, whole=whole)
            self._core.plan(learn, whole=whole)
            self.updates += learned
            self.policy_version += 1
            self._planned(self._core.w)

    def _greedy_weights(self) -> Array:
        w: Array = self._core.greedy()
        return w

    def _change_beta(self, beta: float) -> None:
        self._core.change_beta(beta)

    def _best_actions(self, h: int, state: State) -> Any:
        return self._core.memory.best_actions(h, state)

    def _best_table(self, h: int) -> Any:
        return self._core.memory.best_table(h)

    def observe(self, h: int, state: State, action: int, reward: float, next_state: State, terminated: bool) -> None:
        phi = self._seen(h, state, action, reward, terminated)
        self.schedule.watch(0 if self.stationary else h, phi)
        if self._learning[h]:
            self._core.add(h, phi, reward, next_state, terminated)

    def end_episode(self) -> None:
        super().end_episode()
        self.schedule.end_episode()

    def q_values(self, h: int, state: State) -> Array:
        """min(phi'w + bonus, cap) of every action, (A,)."""
        q: Array = self._core.memory.q_values(h, state)
        return q

    @property
    def nbytes(self) -> int:
        """Bytes of all arrays that the agent owns now."""
        return super().nbytes + self._core.nbytes + self.schedule.nbytes + self._learning.nbytes

    def samples_after(self, episodes: int) -> int:
        """The most samples that one step's regression rests on at once, within that many episodes."""
        return self.schedule.most_samples(episodes)

    def bytes_after(self, episodes: int) -> int:
        memory, samples = self._core.memory, self.samples_after(episodes)
        return self.nbytes - memory.nbytes + memory.bytes_after(samples * (self.task.H if self.stationary else 1))

    def drift(self) -> float:
        """max |Lambda Lambda^-1 - I| over all steps."""
        return float(self._core.drift())

    def state_dict(self) -> StateDict:
        state = super().state_dict()
        state["learning"] = self._learning.copy()
        return state | prefixed("core", self._core.state_dict()) | prefixed("schedule", self.schedule.state_dict())

    def _load(self, state: Mapping[str, np.ndarray]) -> None:
        super()._load(state)
        load_array(self._learning, state, "learning")
        self._core.load_state_dict(under("core", state))
        self.schedule.load_state_dict(under("schedule", state))


class LSVIUCBFixed(LSVIUCB):
    """LSVI-UCB-Fixed (Algorithm 2): LSVI-UCB that forgets everything every floor(K^rho) episodes.

    Parameters
    ----------
    rho : in (0, 1]; a phase has max(2, floor(K^rho)) episodes
    common : the parameters of `LSVIUCB`; where `episodes` (K) is not given, K is doubled whenever it is reached
    """

    name = "lsvi-ucb-fixed"

    def __init__(self, task: Task, *, rho: float = 0.75, **common: Unpack[Stored]) -> None:
        self.rho = rho
        super().__init__(task, **common)

    def _make_schedule(self, K: int | None) -> Schedule:
        return FixedPhases(self.groups, self.chosen.get("length") or self._length())

    def _length(self) -> Power:
        return Power(check_exponent(self.name, "rho", self.rho), self._K, 2)

    def _choices(self) -> Iterator[Choice]:
        forms = list(super()._choices())
        K = self._known_K()
        for length in descending(self._length().at(K), 2):
            rho = round(math.log(length) / math.log(max(K, 2)), 4)
            for form in forms:
                yield {**form, "length": length, "rho": rho}

    def _most_samples(self, choice: Choice) -> int | None:
        return int(choice["length"]) - 1


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
    common : the parameters of `LSVIUCB`; where `episodes` (K) is not given, K is doubled whenever it is reached
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
        **common: Unpack[Stored],
    ) -> None:
        self.m, self.tau, self.tau_c, self.tau_rel = m, tau, tau_c, tau_rel
        self.budget, self.rho, self.proxy = budget, rho, proxy
        super().__init__(task, **common)

    def _make_schedule(self, K: int | None) -> Schedule:
        m = self.chosen.get("m") or check_int(self.name, "m", self.m, low=1, high=10**7)
        check_choice(self.name, "proxy", self.proxy, ("all", "phase"))
        rho = check_exponent(self.name, "rho", self.rho)
        length = Power(rho, None, 1) if K is None else round(math.pow(K, rho), 9)
        budget = self.chosen.get("budget") or self._budget()
        return AdaptiveIntervals(
            self.groups,
            self.task.d,
            lam=self.lam,
            m=m * self.task.H if self.stationary else m,  # then each step of an episode moves the one proxy
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
        forms, m = list(super()._choices()), check_int(self.name, "m", self.m, low=1, high=10**7)
        for lookback in descending(m, 1):
            for budget in descending(episodes_at(self._budget(), self._known_K()), 1):
                for form in forms:
                    yield {**form, "budget": budget, "m": lookback}

    def _bytes_of(self, choice: Choice) -> int:
        return super()._bytes_of(choice) + adaptive_bytes(self._sizes(), choice["m"])

    def _most_samples(self, choice: Choice) -> int | None:
        return int(choice["budget"])

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


DEFAULT_TAU_REL = 1e-4
"""Small on purpose: an agent that stops learning repeats its data, which change the inverse less and less."""
