"""What agents share whose Q is a table over finite states: acting, saving, counting bytes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

import numpy as np

from linmdp.agents.base import TIE, Agent, StateDict, check_step, load_array
from linmdp.agents.budget import as_it_is
from linmdp.agents.held import check_range
from linmdp.agents.horizon import Horizon
from linmdp.agents.schedules.base import SHORTEST
from linmdp.errors import InvalidParameter, check_int
from linmdp.types import Array, BoolArray, IntArray, State, Task


class TableAgent(Agent):
    """An agent that plays the best action of a table, one of them at random where they tie.

    Attributes
    ----------
    caps : (H,) what the steps left can pay
    _Q : (H, S, A) of the last planning
    _k : episodes begun
    """

    _ARRAYS: ClassVar[tuple[str, ...]] = ("_Q",)
    _TIMES: ClassVar[tuple[str, ...]] = ()
    """Those that say how often something was seen."""
    _SCRATCH: ClassVar[tuple[str, ...]] = ()
    _COUNTERS: ClassVar[tuple[str, ...]] = ("_k",)

    def __init__(self, task: Task, *, episodes: int | None, max_bytes: int | str | None) -> None:
        super().__init__(task)
        self.episodes, self.max_bytes = episodes, max_bytes
        if task.S is None:
            raise InvalidParameter(f"{self.name} needs finite states: it has a table of them. Got a task without.")
        self._K = None if episodes is None else check_int(self.name, "episodes", episodes, low=1)
        self.caps: Array = Horizon(task.H).caps("remaining", task.reward_range[1])
        self._Q = np.broadcast_to(self.caps[:, None, None], (task.H, task.S, task.A)).copy()
        self._k, self._next = 0, task.H

    def _limit(self, work: int) -> None:
        """Hold it to `max_bytes`, once all arrays are there; `work`: bytes that planning needs beside them."""
        self.chosen = as_it_is(self.name, self.max_bytes, self.nbytes + work)

    def begin_episode(self) -> None:
        self._k += 1
        self._next = 0

    def observe(self, h: int, state: State, action: int, reward: float, next_state: State, terminated: bool) -> None:
        self._next = check_step(self.task, self._next, h, action, reward)

    def end_episode(self) -> None:
        self._next = self.task.H

    def _planned(self) -> None:
        """Note that there is another policy."""
        self.updates += self.task.H
        self.policy_version += 1

    def _episodes(self) -> int:
        """K; where it is not known, it is doubled whenever it is reached."""
        return self._K if self._K is not None else 1 << max(self._k - 1, SHORTEST - 1).bit_length()

    def _best(self, q: Array) -> BoolArray:
        best: BoolArray = q >= q.max(axis=-1, keepdims=True) - TIE * max(1.0, float(self.caps[0]))
        return best

    def act(self, h: int, state: State) -> int:
        """One of the best actions, each with the same chance."""
        tied = self._best(self._Q[h, state]).nonzero()[0]
        return int(tied[0] if len(tied) == 1 else self.rng.choice(tied))

    def q_values(self, h: int, state: State) -> Array:
        q: Array = self._Q[h, state]
        return q.copy()

    def policy(self, h: int) -> Array | IntArray:
        best = self._best(self._Q[h])
        chances: Array = best / best.sum(axis=1, keepdims=True)
        return chances

    @property
    def nbytes(self) -> int:
        """Bytes of the tables."""
        return sum(int(getattr(self, name).nbytes) for name in (*self._ARRAYS, *self._SCRATCH, "caps"))

    def state_dict(self) -> StateDict:
        state = super().state_dict() | {name[1:]: getattr(self, name).copy() for name in self._ARRAYS}
        return state | {name[1:]: np.array(getattr(self, name)) for name in self._COUNTERS}

    def _load(self, state: Mapping[str, np.ndarray]) -> None:
        super()._load(state)
        for name in self._ARRAYS:
            load_array(getattr(self, name), state, name[1:])
            if name in self._TIMES:
                check_range(name[1:], getattr(self, name), 0, np.inf)
                np.abs(getattr(self, name), out=getattr(self, name))  # of -0.0, with which nothing can be drawn
        for name in self._COUNTERS:
            number = np.array(0)
            load_array(number, state, name[1:])
            setattr(self, name, int(number))
