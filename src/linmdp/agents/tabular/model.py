"""What agents with a model of finite states share: counts of transitions, and planning in what they say."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from typing import ClassVar, TypedDict

import numpy as np

from linmdp.agents.base import TIE, Agent, StateDict, load_array
from linmdp.agents.budget import as_it_is
from linmdp.agents.horizon import Horizon
from linmdp.agents.schedules.base import SHORTEST
from linmdp.errors import InvalidParameter, check_int, invalid
from linmdp.types import Array, BoolArray, IntArray, State, Task


class Common(TypedDict, total=False):
    """The parameters that all of them take; `UCBVI` documents them."""

    stationary: bool | str
    episodes: int | None
    max_bytes: int | str | None


class TabularModel(Agent):
    """Counts of what followed every state and action, with a table per step or one for all, and a planned Q.

    What follows is one of S + 1 outcomes: a state, or the end of the episode, which is worth 0.

    Attributes
    ----------
    _C : (T, S, A, S+1) how often each outcome came, T = 1 or H
    _N, _R : (T, S, A) visits, and the sum of their rewards
    _Q : (H, S, A) of the last planning
    """

    _ARRAYS: ClassVar[tuple[str, ...]] = ("_Q", "_N", "_R", "_C")

    def __init__(
        self,
        task: Task,
        *,
        stationary: bool | str = "auto",
        episodes: int | None = None,
        max_bytes: int | str | None = None,
    ) -> None:
        super().__init__(task)
        self.stationary, self.episodes, self.max_bytes = stationary, episodes, max_bytes
        if task.S is None:
            raise InvalidParameter(f"{self.name} needs finite states: it counts what follows each. Got a task without.")
        if stationary != "auto" and not isinstance(stationary, bool):
            invalid(self.name, "stationary", "true, false or 'auto'", stationary)
        self._K = None if episodes is None else check_int(self.name, "episodes", episodes, low=1)
        self._shared = task.stationary if stationary == "auto" else bool(stationary)
        S, A, H = task.S, task.A, task.H
        T = 1 if self._shared else H
        self.chosen = as_it_is(self.name, max_bytes, 8 * S * A * (H + T * (S + 3) + 6 * S) + 64 * S)
        self.caps: Array = Horizon(H).caps("remaining", task.reward_range[1])
        self._Q = np.broadcast_to(self.caps[:, None, None], (H, S, A)).copy()
        self._N, self._R, self._C = np.zeros((T, S, A)), np.zeros((T, S, A)), np.zeros((T, S, A, S + 1))
        self._k = 0

    @abstractmethod
    def _backup(self, h: int, V: Array) -> Array:
        """Q_h before the cap, (S, A), from the values V (S+1,) of what follows."""

    def _due(self) -> bool:
        """Whether to plan before this episode."""
        return True

    def begin_episode(self) -> None:
        self._k += 1
        if self._due():
            self._plan()
            self.updates += self.task.H
            self.policy_version += 1

    def _plan(self) -> None:
        V = np.zeros(self._C.shape[-1])
        for h in reversed(range(self.task.H)):
            self._Q[h] = np.minimum(self._backup(h, V), self.caps[h])
            V[:-1] = self._Q[h].max(axis=1)

    def observe(self, h: int, state: State, action: int, reward: float, next_state: State, terminated: bool) -> None:
        at = (self._table(h), state, action)
        self._N[at] += 1
        self._R[at] += reward
        self._C[(*at, -1 if terminated else next_state)] += 1

    def _table(self, h: int) -> int:
        return 0 if self._shared else h

    def _means(self, h: int) -> tuple[Array, Array, Array]:
        """Visits (at least 1), mean rewards, (S, A) each, and frequencies of the outcomes, (S, A, S+1)."""
        t = self._table(h)
        n = np.maximum(self._N[t], 1.0)
        return n, self._R[t] / n, self._C[t] / n[..., None]

    def _steps(self) -> int:
        """T = KH; where K is not known, it is doubled whenever it is reached."""
        K = self._K if self._K is not None else 1 << max(self._k - 1, SHORTEST - 1).bit_length()
        return K * self.task.H

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
        return sum(int(getattr(self, name).nbytes) for name in (*self._ARRAYS, "caps"))

    def state_dict(self) -> StateDict:
        state = super().state_dict() | {name[1:]: getattr(self, name).copy() for name in self._ARRAYS}
        return state | {"k": np.array(self._k)}

    def _load(self, state: Mapping[str, np.ndarray]) -> None:
        super()._load(state)
        for name in self._ARRAYS:
            load_array(getattr(self, name), state, name[1:])
        k = np.array(0)
        load_array(k, state, "k")
        self._k = int(k)
