"""What agents with a model of finite states share: counts of transitions, and planning in what they say."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np

from linmdp.agents.budget import held_within
from linmdp.agents.greedy import GreedyAgent
from linmdp.agents.schedules.base import SHORTEST
from linmdp.errors import check_int, invalid
from linmdp.types import Array, State, Task


class TabularModel(GreedyAgent):
    """Counts of what followed every state and action, with a table per step or one for all, and a planned Q.

    What follows is one of S + 1 outcomes: a state, or the end of the episode, which is worth 0.

    Attributes
    ----------
    _C : (T, S, A, S+1) how often each outcome came, T = 1 or H
    _N, _R : (T, S, A) visits, and the sum of their rewards
    """

    _arrays: ClassVar[tuple[str, ...]] = ("_Q", "_N", "_R", "_C")
    _times = ("_N", "_C")
    _sums: ClassVar[tuple[str, ...]] = ()
    """Those that are all it has learned, if the others follow."""

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
        if stationary != "auto" and not isinstance(stationary, bool):
            invalid(self.name, "stationary", "true, false or 'auto'", stationary)
        self._shared = task.stationary if stationary == "auto" else bool(stationary)
        self._K = None if episodes is None else check_int(self.name, "episodes", episodes, low=1)
        self.caps: Array = self._caps_of_table()
        self._Q = self._optimistic_table()
        H, S, A = self._Q.shape
        T = 1 if self._shared else H
        self._N, self._R, self._C = np.zeros((T, S, A)), np.zeros((T, S, A)), np.zeros((T, S, A, S + 1))

    def _hold_to_limit(self) -> None:
        """Check `max_bytes`; to be called when all arrays are there."""
        H, S, A = self._Q.shape
        self.chosen = held_within(self.name, self.max_bytes, self.nbytes + 8 * S * A * (7 * S + H))

    @abstractmethod
    def _backup(self, h: int, V: Array) -> Array:
        """Q_h before the cap, (S, A), from the values V (S+1,) of what follows."""

    def _due(self) -> bool:
        """Whether to plan before this episode."""
        return True

    def begin_episode(self) -> None:
        super().begin_episode()
        if self._due():
            self._plan()
            self._planned(self.task.H)

    def _plan(self) -> None:
        V = np.zeros(self._C.shape[-1])
        for h in reversed(range(self.task.H)):
            self._Q[h] = np.minimum(self._backup(h, V), self.caps[h])
            V[:-1] = self._Q[h].max(axis=1)

    def observe(self, h: int, state: State, action: int, reward: float, next_state: State, terminated: bool) -> None:
        super().observe(h, state, action, reward, next_state, terminated)
        at = (self._table(h), state, action)
        self._N[at] += 1
        self._R[at] += reward
        self._C[(*at, -1 if terminated else next_state)] += 1

    def summed(self) -> list[Array]:
        return [getattr(self, name) for name in self._sums]

    def sum_up(self, others: Sequence[Any], base: Any) -> None:
        super().sum_up(others, base)
        self._k = sum(other._k for other in others) - (len(others) - 1) * base._k

    def log_determinants(self) -> Array:
        return np.asarray(np.log1p(self._N).sum(axis=(1, 2)))

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
