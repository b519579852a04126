"""Many finite states: counts with a column for each state that has followed, and none for the others."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np

from linmdp.agents.backend import Backend
from linmdp.agents.base import StateDict, saved_array
from linmdp.agents.memory.base import Sample
from linmdp.agents.memory.table import Counts
from linmdp.errors import InvalidData
from linmdp.types import State

MANY_STATES = 20_000
"""From so many states on most have never been seen in a run that anyone waits for."""

FIRST = 256
"""Columns at the start; there are twice as many each time they are used up."""


class SeenCounts(Counts):
    """`Counts` for one agent, whose N has columns for the states that have followed alone: N V is the same sum.

    Attributes
    ----------
    N : (G, d, columns), those from `used` on zero
    states : (columns,) whose column each is; -1 from `used` on
    place : (S,) the column of each state, -1 where it has none
    """

    _arrays: ClassVar[tuple[str, ...]] = ("N", "forms", "V", "best", "seen", "states")
    _scratch: ClassVar[tuple[str, ...]] = (*Counts._scratch, "place")

    def make_counts(self, backend: Backend, shape: tuple[int, ...], dtype: str) -> Any:
        *rest, S = shape
        self.states = np.full(columns_for(0, S), -1)
        self.place = np.full(S, -1, dtype=np.int32)
        self.used = 0
        return backend.zeros((*rest, len(self.states)), dtype)

    def add(self, h: int, sample: Sample) -> None:
        counted = not sample.terminated and self.horizon.group(h) < len(self.N)
        if counted and self.place[sample.next_state] < 0:
            self._open(sample.next_state)
        super().add(h, sample)

    def _open(self, state: State) -> None:
        """A column for a state that has none."""
        if self.used == len(self.states):
            self._resize(columns_for(self.used + 1, len(self.place)))
        self.states[self.used], self.place[state] = state, self.used
        self.used += 1

    def _resize(self, columns: int) -> None:
        N, states = self.N, self.states
        self.N, self.states = np.zeros((*N.shape[:-1], columns), dtype=N.dtype), np.full(columns, -1)
        self.N[..., : N.shape[-1]], self.states[: len(states)] = N, states

    def count(self, N: Any, phi: Any, next_state: State) -> None:
        N[:, self.place[next_state]] += phi

    def clear(self, runs: Any = ...) -> None:
        self._become(self.N[..., :0], self.states[:0])
        self.seen[:] = 0.0

    def followed_by(self, g: int, V: Any) -> Any:
        n = self.used
        return self._product(self.N[g][:, :n], V[self.states[:n]])

    def bytes_after(self, samples: int) -> int:
        most = columns_for(min(len(self.place), samples * len(self.N)), len(self.place))
        each = self.N.nbytes // len(self.states) + self.states.itemsize
        return int(self.nbytes + each * max(0, most - len(self.states)))

    def state_dict(self) -> StateDict:
        return super().state_dict() | {"N": self.N[..., : self.used].copy(), "states": self.states[: self.used].copy()}

    def load_state_dict(self, state: Mapping[str, np.ndarray]) -> None:
        N, states = saved_array(state, "N"), saved_array(state, "states")
        whole = states.dtype == self.states.dtype and states.ndim == 1 and len(np.unique(states)) == len(states)
        known = whole and bool(((states >= 0) & (states < len(self.place))).all())
        if not known or N.shape != (*self.N.shape[:-1], len(states)) or N.dtype != self.N.dtype:
            raise InvalidData("'N' of a saved agent must have a column for each of its 'states'.")
        self._become(N, states)
        super().load_state_dict(dict(state) | {"N": self.N, "states": self.states})

    def _become(self, N: Any, states: Any) -> None:
        """Hold these columns (G, d, n) of the states (n,) and no others."""
        self.used, columns = len(states), columns_for(len(states), len(self.place))
        held = np.zeros((*N.shape[:-1], columns), dtype=self.N.dtype)
        held[..., : self.used] = N
        self.N, self.states = held, np.append(states, np.full(columns - self.used, -1)).astype(np.int64)
        self.place[:] = -1
        self.place[states] = np.arange(self.used)

    def take_run(self, batched: Any, i: int) -> None:
        N = batched.backend.host(batched.N[:, i])
        states = np.flatnonzero((N != 0).any(axis=(0, 1)))
        self._become(N[..., states], states)
        self.take_tables(batched, i)


def columns_for(used: int, S: int) -> int:
    """How many columns there are where so many are used."""
    columns = FIRST
    while columns < used:
        columns *= 2
    return min(columns, S)
