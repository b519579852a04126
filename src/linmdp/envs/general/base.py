"""What the families of the general suite are made of: instances of at most H steps.

An instance knows what an agent does not: its hidden state, and where that is finite the exact table of its transitions,
from which it is also played.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable, Hashable, Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal, TypeVar

import gymnasium
import numpy as np
from gymnasium import spaces

from linmdp.envs import planning
from linmdp.envs.planning import Optimum, uniform_policy
from linmdp.types import Array, BoolArray, IntArray


class Instance(gymnasium.Env[Any, Any]):
    """One task of a family: at most H steps, whole-numbered actions. A subclass defines `begin`, `move` and `show`.

    Parameters
    ----------
    H : steps of an episode at most
    A : number of actions
    space : of the observations
    ends : whether the last step is reported as a termination (the day is over) and not as a truncation

    Attributes
    ----------
    h : steps of this episode so far
    """

    metadata: dict[str, Any] = {"render_modes": []}  # noqa: RUF012 (Gymnasium declares it an instance attribute)

    def __init__(self, *, H: int, A: int, space: spaces.Space[Any], ends: bool = False) -> None:
        self.H, self.A, self.ends, self.h = H, A, ends, 0
        self.observation_space, self.action_space = space, spaces.Discrete(A)

    @abstractmethod
    def begin(self) -> None:
        """Draw the first state, from `np_random`."""

    @abstractmethod
    def move(self, action: int) -> tuple[float, bool]:
        """Play an action: its reward, and whether the episode ends with it."""

    @abstractmethod
    def show(self) -> Any:
        """What is observed of the state."""

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)
        self.h = 0
        self.begin()
        return self.show(), {}

    def step(self, action: int) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        reward, over = self.move(int(action))
        self.h += 1
        last = self.h >= self.H
        return self.show(), float(reward), over or (last and self.ends), last and not (over or self.ends), {}


class Table:
    """Transitions of finitely many states: outcome k of action a in state s has a chance, a next state and a reward.

    It is a `planning.Model`, so `optimum` and `policy_value` plan in it.

    Parameters
    ----------
    chance, next, reward : (S, A, K)
    over : (S, A, K), whether the outcome ends the episode
    start : (S,), the distribution of the first state
    """

    def __init__(self, *, H: int, chance: Array, next: IntArray, reward: Array, over: BoolArray, start: Array) -> None:
        self.H, self.S, self.A, self.K = H, *chance.shape
        self.chance, self.next, self.reward, self.over, self.start = chance, next, reward, over, start

    @cached_property
    def _cdf(self) -> Array:
        sums = self.chance.cumsum(axis=2)
        cdf: Array = sums / sums[:, :, -1:]  # so that no rounding is left for an outcome without a chance
        return cdf

    @cached_property
    def _expected(self) -> tuple[Array, Array]:
        """Mean rewards (S, A), and chances of going on (S, A, K)."""
        return (self.chance * self.reward).sum(axis=2), self.chance * ~self.over

    def q(self, h: int, V: Array) -> Array:
        """r + P V for all pairs, (A, S)."""
        mean, on = self._expected
        q: Array = (mean + (on * V[self.next]).sum(axis=2)).T
        return q

    def draw(self, s: int, a: int, u: float) -> tuple[int, float, bool]:
        """The outcome that the uniform number u stands for: next state, reward, whether the episode is over."""
        k = min(int(self._cdf[s, a].searchsorted(u, side="right")), self.K - 1)
        return int(self.next[s, a, k]), float(self.reward[s, a, k]), bool(self.over[s, a, k])

    def values(self) -> tuple[float, float, Array]:
        """What an episode is worth to the best policy, to random play, and to each constant action, (A,)."""
        constant = [self.worth(([np.full(self.S, a)] * self.H).__getitem__) for a in range(self.A)]
        return float(self.start @ self.optimum.V[0]), self.worth(uniform_policy(self)), np.array(constant)

    def worth(self, policy: planning.PolicyOfStep) -> float:
        """The return of a policy."""
        return float(self.start @ planning.policy_value(self, policy)[0])

    @cached_property
    def optimum(self) -> Optimum:
        """Q* and V*, computed once."""
        return planning.optimum(self)


Outcomes = Iterable[tuple[float, Any, float]]
"""Chance, next state (None where the episode is over) and reward of what an action may lead to."""


def tabulated(S: int, A: int, H: int, start: Any, outcomes: Callable[[int, int], Outcomes]) -> Table:
    """The table of a task whose outcomes are listed by a function of (state, action); `start` is (S,) or one state."""
    rows = [[list(outcomes(s, a)) for a in range(A)] for s in range(S)]
    K = max(len(row) for of_state in rows for row in of_state)
    chance, reward = np.zeros((S, A, K)), np.zeros((S, A, K))
    following, over = np.zeros((S, A, K), dtype=np.int64), np.zeros((S, A, K), dtype=np.bool_)
    for s, of_state in enumerate(rows):
        for a, row in enumerate(of_state):
            for k, (p, to, pay) in enumerate(row):
                chance[s, a, k], reward[s, a, k], over[s, a, k] = p, pay, to is None
                following[s, a, k] = s if to is None else to
    first = np.eye(S)[start] if isinstance(start, int) else np.asarray(start, dtype=np.float64)
    return Table(H=H, chance=chance, next=following, reward=reward, over=over, start=first)


S = TypeVar("S", bound=Hashable)


def explored(start: Mapping[S, float], A: int, H: int, outcomes: Callable[[S, int], Outcomes]) -> tuple[Table, list[S]]:
    """The table of all states that can be reached from `start`, by any names, and what its states are.

    Parameters
    ----------
    start : the chance of each first state
    outcomes : of (state, action): chance, next state (None where the episode is over) and reward of each outcome;
        those of chance 0 are left out, and equal ones are put together
    """
    number = {s: i for i, s in enumerate(start)}
    states = list(start)
    rows: list[list[list[tuple[float, int | None, float]]]] = []
    for s in states:  # grows while it is read
        rows.append([])
        for a in range(A):
            chances: dict[tuple[int | None, float], float] = {}
            for p, to, reward in outcomes(s, a):
                if p <= 0:
                    continue
                if to is not None and to not in number:
                    number[to] = len(states)
                    states.append(to)
                key = None if to is None else number[to], reward
                chances[key] = chances.get(key, 0.0) + p
            rows[-1].append([(p, to, reward) for (to, reward), p in chances.items()])
    first = np.zeros(len(states))
    first[: len(start)] = list(start.values())
    return tabulated(len(states), A, H, first, lambda s, a: rows[s][a]), states


class TableInstance(Instance):
    """An instance that is played from its table; rewards may have Gaussian noise on top.

    Parameters
    ----------
    model : the table
    space, shown : of the observations, and the observation of each state; default: the state's number
    noise : standard deviation of the noise on rewards
    """

    def __init__(
        self,
        model: Table,
        *,
        space: spaces.Space[Any] | None = None,
        shown: Callable[[int], Any] | None = None,
        noise: float = 0.0,
        ends: bool = False,
    ) -> None:
        super().__init__(H=model.H, A=model.A, space=space or spaces.Discrete(model.S), ends=ends)
        self.model, self.noise, self.state = model, noise, 0
        self._shown = shown or int
        self._start = model.start.cumsum()

    def begin(self) -> None:
        u = self.np_random.random() * self._start[-1]
        self.state = int(self._start.searchsorted(u, side="right"))

    def move(self, action: int) -> tuple[float, bool]:
        self.state, reward, over = self.model.draw(self.state, action, self.np_random.random())
        return reward + self.noise * self.np_random.standard_normal() if self.noise else reward, over

    def show(self) -> Any:
        return self._shown(self.state)


Make = TypeVar("Make", bound=Callable[[np.random.Generator], Instance])


@dataclass(frozen=True, kw_only=True)
class Family:
    """A generator of tasks.

    Attributes
    ----------
    half : "made" where learners may be made on it, "kept" where they are only judged, "memory" where what is seen does
        not tell enough, so that nobody without a memory can do well: it stands apart and is no part of the means
    make : draws an instance
    H : the most steps of an episode; those of an instance are its own `H`
    episodes : of a run, by scale ("quick", "full"); at most about 2,500 and 6,000 steps in all
    extra : the optional dependency of the package that it needs
    """

    name: str
    half: Literal["made", "kept", "memory"]
    make: Callable[[np.random.Generator], Instance]
    H: int
    episodes: dict[str, int]
    extra: str | None = None


FAMILIES: dict[str, Family] = {}
"""Every family that has been imported, by its name."""


def family(
    name: str, half: Literal["made", "kept", "memory"], *, H: int, episodes: dict[str, int], extra: str | None = None
) -> Callable[[Make], Make]:
    """A decorator that makes a family of what draws its instances."""

    def known(make: Make) -> Make:
        FAMILIES[name] = Family(name=name, half=half, make=make, H=H, episodes=episodes, extra=extra)
        return make

    return known


def runs(H: int) -> dict[str, int]:
    """Episodes of runs that make at most about 2,500 (quick) and 6,000 (full) steps where episodes have H of them."""
    return {"quick": max(10, math.ceil(2500 / H)), "full": max(20, math.ceil(6000 / H))}
