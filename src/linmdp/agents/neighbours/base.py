"""What these agents share: acting on raw states, random actions that grow rare, saving, counting bytes."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from typing import ClassVar, NamedTuple

import numpy as np

from linmdp.agents.base import TIE, Agent, Component, StateDict, check_step, load_array, prefixed, under
from linmdp.errors import check_int, check_number
from linmdp.types import Array, BoolArray, IntArray, State, Task

USUAL_EPISODES = 100
"""Taken for the number of episodes where nobody says."""


class Falling(NamedTuple):
    """The chance of a random action: from 1 down to `last`, in a line over the first `episodes`."""

    last: float
    episodes: float

    def __call__(self, k: int) -> float:
        """That of episode k = 0, 1, ..."""
        return max(self.last, 1 - (1 - self.last) * k / self.episodes) if self.episodes else self.last

    @classmethod
    def checked(cls, owner: str, epsilon: object, explore: object, episodes: object) -> Falling:
        """The same from an agent's parameters: `explore` is the share of the episodes in which it falls."""
        K = USUAL_EPISODES if episodes is None else check_int(owner, "episodes", episodes, low=1)
        last = check_number(owner, "epsilon", epsilon, low=0.0, high=1.0)
        return cls(last, check_number(owner, "explore", explore, low=0.0, high=1.0) * K)


class Growth(Component):
    """Says when the steps have grown by a fraction since the last planning; with 0 it is always time.

    Attributes
    ----------
    steps, planned : steps so far; those at the last planning
    """

    _counters = ("steps", "planned")

    def __init__(self, owner: str, replan: object) -> None:
        self._fraction = check_number(owner, "replan", replan, low=0.0)
        self.steps = self.planned = 0

    def due(self) -> bool:
        """Whether it is time; if so, it is noted as done."""
        if not self.steps or self.steps < self.planned * (1 + self._fraction):
            return False
        self.planned = self.steps
        return True


class Neighbour(Agent):
    """An agent that plays the best action of its Q, one of them at random where they tie, or a random one.

    Attributes
    ----------
    _parts : of the class; names of the components that own its arrays
    _falling : the chance of a random action, by the episode
    _k : episodes begun
    """

    needs_features = False
    _parts: ClassVar[tuple[str, ...]] = ()

    def __init__(self, task: Task, falling: Falling | None = None) -> None:
        super().__init__(task)
        self._falling = falling or Falling(0.0, 0.0)
        self._k, self._next = 0, task.H

    @abstractmethod
    def _q(self, h: int, states: Sequence[State]) -> Array:
        """Q_h of n states, (n, A)."""

    @property
    def chance(self) -> float:
        """Of a random action in this episode."""
        return self._falling(max(self._k - 1, 0))

    def begin_episode(self) -> None:
        self._k += 1
        self._next = 0

    def observe(self, h: int, state: State, action: int, reward: float, next_state: State, terminated: bool) -> None:
        self._next = check_step(self.task, self._next, h, action, reward)

    def end_episode(self) -> None:
        self._next = self.task.H

    def _planned(self) -> None:
        """Note that there is another policy."""
        self.updates += 1
        self.policy_version += 1

    def act(self, h: int, state: State) -> int:
        """One of the best actions, or any."""
        if self.rng.random() < self.chance:
            return int(self.rng.integers(self.task.A))
        tied = self._best(self.q_values(h, state)).nonzero()[0]
        return int(tied[0] if len(tied) == 1 else self.rng.choice(tied))

    def _best(self, q: Array) -> BoolArray:
        top = q.max(axis=-1, keepdims=True)
        best: BoolArray = q >= top - TIE * np.maximum(1.0, np.abs(top))
        return best

    def q_values(self, h: int, state: State) -> Array:
        q: Array = self._q(h, [state])[0]
        return q

    def policy(self, h: int) -> Array | IntArray:
        assert self.task.S is not None
        best = self._best(self._q(h, range(self.task.S)))
        chances: Array = (1 - self.chance) * best / best.sum(axis=1, keepdims=True) + self.chance / self.task.A
        return chances

    def _components(self) -> dict[str, Component]:
        return {name: getattr(self, name) for name in self._parts}

    @property
    def nbytes(self) -> int:
        """Bytes of the arrays of its parts."""
        return sum(part.nbytes for part in self._components().values())

    def state_dict(self) -> StateDict:
        state = super().state_dict() | {"episodes_begun": np.array(self._k)}
        for name, part in self._components().items():
            state |= prefixed(name, part.state_dict())
        return state

    def _load(self, state: Mapping[str, np.ndarray]) -> None:
        super()._load(state)
        number = np.array(0)
        load_array(number, state, "episodes_begun")
        self._k = int(number)
        for name, part in self._components().items():
            part.load_state_dict(under(name, state))
