"""What all optimistic agents share: their parameters, how they act, and what they check."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Mapping
from typing import Any, TypedDict

import numpy as np

from linmdp.agents.base import Agent, StateDict, check_reward, load_array, prefixed, under
from linmdp.agents.budget import STATE_BYTES, Choice, Sizes, chosen_within
from linmdp.agents.regression import confidence_width, value_caps
from linmdp.agents.width import Width
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
    stationary: bool
    discount: float
    max_bytes: int | str | None


class Optimist(Agent):
    """An agent that plays argmax_a Q_h(s, a) of an upper bound Q.

    With `stationary` one regression serves all steps, for tasks whose dynamics do not depend on h; with a `discount`
    below 1 besides, one Q does.

    Attributes
    ----------
    beta_value : beta as a number; with "auto" that of the moment
    groups, levels : how many regressions and how many Q there are, each H or 1
    chosen : the parameters that `max_bytes` has chosen, in place of those given
    """

    def __init__(
        self,
        task: Task,
        *,
        beta: float | str = "auto",
        lam: float = 0.1,
        cap: str = "remaining",
        ties: str = "random",
        dtype: str = "float64",
        episodes: int | None = None,
        stationary: bool = False,
        discount: float = 1.0,
        max_bytes: int | str | None = None,
    ) -> None:
        super().__init__(task)
        self.beta, self.lam, self.cap, self.ties = beta, lam, cap, ties
        self.dtype, self.episodes, self.stationary, self.discount = dtype, episodes, stationary, discount
        self.max_bytes, self.chosen = max_bytes, Choice()
        check_choice(self.name, "cap", cap, ("H", "remaining"))
        check_choice(self.name, "ties", ties, ("random", "first"))
        check_choice(self.name, "dtype", dtype, ("float64", "float32"))
        check_number(self.name, "lam", lam, low=0.0, open_low=True)
        if lam < 1 / LARGEST_BONUS:
            invalid(self.name, "lam", f"at least {1 / LARGEST_BONUS:g}", lam)
        self._K = None if episodes is None else check_int(self.name, "episodes", episodes, low=1)

        if not isinstance(stationary, bool):
            invalid(self.name, "stationary", "true or false", stationary)
        check_number(self.name, "discount", discount, low=0.0, high=1.0, open_low=True)
        if discount < 1 and not stationary:
            invalid(self.name, "discount", "1 unless stationary=true: only then is there one Q for all steps", discount)
        self.groups, self.levels = 1 if stationary else task.H, 1 if discount < 1 else task.H
        self.caps: Array = value_caps(cap, task.H, task.reward_range[1], discount)
        self._width = self._make_width() if beta == "auto" else None
        self.beta_value = (
            self._width.beta if self._width else confidence_width(self.name, beta, d=task.d, H=task.H, K=self._K)
        )
        if not self.beta_value * self.beta_value / lam < LARGEST_BONUS:
            invalid(self.name, "beta", f"such that beta^2 / lam is below {LARGEST_BONUS:g}", beta)
        self._features = _trusted(task.features)
        self._tie_draws = np.zeros(task.H)
        self._next = task.H  # the step to be observed next; H between episodes
        self._over = False  # whether the last step observed ended the episode for good

    def _fit(self) -> None:
        """Choose what `max_bytes` asks for, before anything is allocated."""
        self.chosen = chosen_within(self.name, self.max_bytes, self._choices(), self._bytes_of)

    @abstractmethod
    def _choices(self) -> Iterator[Choice]:
        """What `max_bytes` may choose, from the best to the smallest."""

    @abstractmethod
    def _bytes_of(self, choice: Choice) -> int:
        """The most bytes at once, with that choice."""

    def _sizes(self) -> Sizes:
        task, table = self.task, isinstance(self._features, TableFeatures)
        return Sizes(task.S or 0, task.A, task.d, task.H, self.groups, self.levels, table, self._state_bytes)

    @property
    def _state_bytes(self) -> int:
        """Of a state that is not finite, as the task says, or as it is taken to be."""
        return STATE_BYTES if self.task.state_bytes is None else self.task.state_bytes

    def _dtypes(self) -> tuple[str, ...]:
        """Precisions to choose from: the one given, or a smaller one."""
        return (self.dtype,) if self.dtype == "float32" else (self.dtype, "float32")

    def _make_width(self) -> Width:
        scale = max(max(abs(r) for r in self.task.reward_range), 1e-12)
        assert self.caps is not None
        return Width(self.levels, self.task.d, lam=self.lam, caps=self.caps, scale=scale, discount=self.discount)

    @abstractmethod
    def _greedy_weights(self) -> Array:
        """Weights planned from the samples of the moment without a bonus, (levels, d)."""

    @abstractmethod
    def _change_beta(self, beta: float) -> None:
        """Let the next planning have another beta."""

    def _choose_beta(self) -> None:
        """Before a planning, with "auto"."""
        if self._width:
            self.beta_value = self._width.choose()
            self._change_beta(self.beta_value)

    def _planned(self, w: Array) -> None:
        """After a planning: no weight may be infinite or no number, and with "auto" greedy ones may be due.

        One sum finds either, at a cost that a planning does not notice.
        """
        if not np.isfinite(w.sum()):
            raise InvalidData(
                f"The weights of {self.name} are not finite after planning: beta, lam or the features are too extreme."
            )
        if self._width and self._width.stale:
            self._width.renew(self._greedy_weights())

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
        if self._width and self._next > 0:
            self._width.end(over=self._over or self._next == self.task.H)
        self._next = self.task.H

    def _seen(self, h: int, state: State, action: int, reward: float, terminated: bool) -> Array:
        """phi(state, action) of a step that was observed, (d,), after checks."""
        self._check_observation(h, action, reward)
        phi = self._features.phi(state)
        if self.chosen and self.task.S is None and np.asarray(state).nbytes > self._state_bytes:
            raise InvalidData(
                f"With 'max_bytes' a state must take {self._state_bytes} bytes at most, for which the choice was made: "
                f"give the task its 'state_bytes'. Got {np.asarray(state).nbytes}."
            )
        self._over = terminated
        if self._width:
            self._width.see(h, phi, action, reward)
        return np.ascontiguousarray(phi[action])

    def _check_observation(self, h: int, action: int, reward: float) -> None:
        if h != self._next:
            expected = f"step {self._next}" if self._next < self.task.H else "begin_episode()"
            raise InvalidData(f"Steps must be observed in order, each once. Got step {h}, expected {expected}.")
        if not 0 <= action < self.task.A:
            raise InvalidData(f"The action must be in [0, {self.task.A - 1}]. Got {action!r}.")
        check_reward(reward, self.task.reward_range, None, h)
        self._next = h + 1

    @property
    def nbytes(self) -> int:
        """Bytes of all arrays that the agent owns now."""
        return self._tie_draws.nbytes + (self._width.nbytes if self._width else 0)

    def state_dict(self) -> StateDict:
        width = {"beta": np.array(self.beta_value), **self._width.state_dict()} if self._width else {}
        return super().state_dict() | {"tie_draws": self._tie_draws.copy()} | prefixed("width", width)

    def _load(self, state: Mapping[str, np.ndarray]) -> None:
        super()._load(state)
        load_array(self._tie_draws, state, "tie_draws")
        if self._width:
            saved = under("width", state)
            self._width.load_state_dict(saved)
            beta = np.zeros(())
            load_array(beta, saved, "beta")
            self.beta_value = float(beta)
            self._change_beta(self.beta_value)


LARGEST_BONUS = 1e100
"""Bound on the first squared bonus: far beyond any use, and far below what a float can hold."""


def _trusted(features: FeatureMap) -> FeatureMap:
    """A table has been checked as a whole; any other map is checked at each call."""
    return features if isinstance(features, TableFeatures | CheckedFeatures) else CheckedFeatures(features)
