"""What all optimistic agents share: their parameters, how they act, and what they check."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from typing import Any, TypedDict

import numpy as np

from linmdp.agents.base import Agent, StateDict, check_reward, load_array
from linmdp.agents.regression import confidence_width, value_caps
from linmdp.errors import InvalidData, check_choice, check_int, check_number, invalid
from linmdp.features.base import CheckedFeatures, FeatureMap
from linmdp.features.tabular import TableFeatures
from linmdp.types import Array, IntArray, State, Task


class Common(TypedDict, total=False):
    """The parameters that every optimistic agent takes; `LSVIUCB` documents them."""

    beta: float | str
    lam: float
    cap: str
    ties: str
    dtype: str
    episodes: int | None


class Optimist(Agent):
    """An agent that plays argmax_a Q_h(s, a) of an upper bound Q.

    Attributes
    ----------
    beta_value : beta as a number
    """

    def __init__(
        self,
        task: Task,
        *,
        beta: float | str = 0.1,
        lam: float = 0.1,
        cap: str = "remaining",
        ties: str = "random",
        dtype: str = "float64",
        episodes: int | None = None,
    ) -> None:
        super().__init__(task)
        self.beta, self.lam, self.cap, self.ties = beta, lam, cap, ties
        self.dtype, self.episodes = dtype, episodes
        check_choice(self.name, "cap", cap, ("H", "remaining"))
        check_choice(self.name, "ties", ties, ("random", "first"))
        check_choice(self.name, "dtype", dtype, ("float64", "float32"))
        check_number(self.name, "lam", lam, low=0.0, open_low=True)
        self._K = None if episodes is None else check_int(self.name, "episodes", episodes, low=1)

        self.caps: Array = value_caps(cap, task.H, task.reward_range[1])
        self.beta_value = confidence_width(self.name, beta, d=task.d, H=task.H, K=self._K)
        if not self.beta_value * self.beta_value / lam < LARGEST_BONUS:
            invalid(self.name, "beta", f"such that beta^2 / lam is below {LARGEST_BONUS:g}", beta)
        self._features = _trusted(task.features)
        self._tie_draws = np.zeros(task.H)
        self._next = task.H  # the step to be observed next; H between episodes

    @abstractmethod
    def _best_actions(self, h: int, state: State) -> Any:
        """Which actions share the largest Q_h in `state`, (A,)."""

    @abstractmethod
    def _best_table(self, h: int) -> Any:
        """The same for all states, (A, S)."""

    @abstractmethod
    def samples_after(self, episodes: int) -> int:
        """The most samples that one step's regression rests on at once, within that many episodes."""

    def begin_episode(self) -> None:
        self._next = 0
        self._tie_draws = self.rng.random(self.task.H)

    def act(self, h: int, state: State) -> int:
        """argmax_a Q_h(state, a) (line 15); a tie goes to the first, or to any of them with the same chance."""
        tied = self._best_actions(h, state).nonzero()[0]
        if len(tied) == 0:
            raise InvalidData(
                f"Q of {self.name} at step {h} is not a number: beta, lam or the features are too extreme."
            )
        if len(tied) == 1 or self.ties == "first":
            return int(tied[0])
        return int(tied[int(self._tie_draws[h] * len(tied))])

    def policy(self, h: int) -> Array | IntArray:
        """(S,) actions or, where random ties are left, (S, A) probabilities."""
        best = self._best_table(h)
        if self.ties == "first" or np.count_nonzero(best) == best.shape[-1]:
            actions: IntArray = best.argmax(axis=0)
            return actions
        probabilities: Array = (best / best.sum(axis=0)).T
        return probabilities

    def end_episode(self) -> None:
        self._next = self.task.H

    def _check_observation(self, h: int, action: int, reward: float) -> None:
        if h != self._next:
            expected = f"step {self._next}" if self._next < self.task.H else "begin_episode()"
            raise InvalidData(f"Steps must be observed in order, each once. Got step {h}, expected {expected}.")
        if not 0 <= action < self.task.A:
            raise InvalidData(f"The action must be in [0, {self.task.A - 1}]. Got {action!r}.")
        check_reward(reward, self.task.reward_range, None, h)
        self._next = h + 1

    def state_dict(self) -> StateDict:
        return super().state_dict() | {"tie_draws": self._tie_draws.copy()}

    def _load(self, state: Mapping[str, np.ndarray]) -> None:
        super()._load(state)
        load_array(self._tie_draws, state, "tie_draws")


LARGEST_BONUS = 1e100
"""Bound on the first squared bonus: far beyond any use, and far below what a float can hold."""


def _trusted(features: FeatureMap) -> FeatureMap:
    """A table has been checked as a whole; any other map is checked at each call."""
    return features if isinstance(features, TableFeatures | CheckedFeatures) else CheckedFeatures(features)
