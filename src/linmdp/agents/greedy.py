"""What agents share that play the best action of their Q: ties, random actions, saving, counting bytes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, NamedTuple

import numpy as np

from linmdp.agents.base import TIE, Agent, check_step
from linmdp.agents.held import check_range
from linmdp.agents.horizon import Horizon
from linmdp.errors import InvalidParameter, check_int, check_number
from linmdp.types import Array, BoolArray, IntArray, State, Task

USUAL_EPISODES = 100
"""Taken for the number of episodes where nobody says."""


class Falling(NamedTuple):
    """The chance of a random action: from 1 down to `last`, in a line over the first `episodes`."""

    last: float
    episodes: float = 0.0

    def __call__(self, k: int) -> float:
        """That of episode k = 0, 1, ..."""
        return max(self.last, 1 - (1 - self.last) * k / self.episodes) if self.episodes else self.last

    @classmethod
    def checked(cls, owner: str, epsilon: object, explore: object, episodes: object) -> Falling:
        """The same from an agent's parameters: `explore` is the share of the episodes in which it falls."""
        K = USUAL_EPISODES if episodes is None else check_int(owner, "episodes", episodes, low=1)
        last = check_number(owner, "epsilon", epsilon, low=0.0, high=1.0)
        return cls(last, check_number(owner, "explore", explore, low=0.0, high=1.0) * K)


class GreedyAgent(Agent):
    """An agent that plays the best action of its Q, one of them at random where they tie, or a random one.

    Attributes
    ----------
    _times : of the class; those of its arrays that say how often something was seen
    _falling : the chance of a random action, by the episode; None: there is none
    _Q : (H, S, A), unless `_q` is its own
    _k : episodes begun
    """

    _counters: ClassVar[tuple[str, ...]] = ("_k",)
    _times: ClassVar[tuple[str, ...]] = ()
    _Q: Array

    def __init__(self, task: Task, falling: Falling | None = None) -> None:
        super().__init__(task)
        self._falling, self._k, self._next = falling, 0, task.H

    def _caps_of_table(self) -> Array:
        """What the steps left can pay, (H,), where there is a table of finite states."""
        if self.task.S is None:
            raise InvalidParameter(f"{self.name} needs finite states: it has a table of them. Got a task without.")
        return Horizon(self.task.H).caps("remaining", self.task.reward_range[1])

    def _optimistic_table(self) -> Array:
        """A Q of the largest values that there are."""
        assert self.caps is not None
        return np.broadcast_to(self.caps[:, None, None], (self.task.H, self.task.S or 0, self.task.A)).copy()

    def _q(self, h: int, states: Any) -> Array:
        """Q_h of n states, (n, A)."""
        q: Array = self._Q[h, states]
        return q

    @property
    def chance(self) -> float:
        """Of a random action in this episode."""
        return 0.0 if self._falling is None else self._falling(max(self._k - 1, 0))

    def begin_episode(self) -> None:
        self._k += 1
        self._next = 0

    def observe(self, h: int, state: State, action: int, reward: float, next_state: State, terminated: bool) -> None:
        self._next = check_step(self.task, self._next, h, action, reward)

    def end_episode(self) -> None:
        self._next = self.task.H

    def _planned(self, steps: int = 1) -> None:
        """Note that there is another policy, planned in so many steps."""
        self.updates += steps
        self.policy_version += 1

    def act(self, h: int, state: State) -> int:
        """One of the best actions, each with the same chance, or any."""
        if self._falling is not None and self.rng.random() < self.chance:
            return int(self.rng.integers(self.task.A))
        tied = self._best(self._q(h, [state])[0]).nonzero()[0]
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
        best = self._best(self._q(h, np.arange(self.task.S)))
        chances: Array = (1 - self.chance) * best / best.sum(axis=1, keepdims=True) + self.chance / self.task.A
        return chances

    def _load(self, state: Mapping[str, np.ndarray]) -> None:
        super()._load(state)
        for name in self._times:
            check_range(name[1:], getattr(self, name), 0, np.inf)
            np.abs(getattr(self, name), out=getattr(self, name))  # of -0.0, with which nothing can be drawn
