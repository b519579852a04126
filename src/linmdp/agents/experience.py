"""Transitions as they were seen: equal ones are counted, and where there are too many, near ones are merged."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from linmdp.agents.base import Component, saved_array
from linmdp.errors import InvalidData
from linmdp.types import Array, BoolArray, IntArray, State, Task

FIRST = 64
"""Rows at the start; they double."""

LEFT = 0.9
"""Merging goes on until this share of the states is left."""

WIDER = 1.05
"""By this the radius of merging grows: in twelve dimensions a quarter more would halve what is held."""

PROBES = 64
"""Transitions whose nearest neighbours decide the first radius of merging."""

TYPES: dict[str, type[np.generic]] = {"code": np.int64, "start": np.int64, "end": np.int64, "action": np.int32}
TYPES |= {"over": np.bool_, "others": np.int32, "times": np.float64, "reward": np.float64, "squared": np.float64}
"""Of the columns but `ends`, which is float32: a state is what single precision tells apart."""


MOST_BYTES = 1 << 16
"""Of a mask in a file."""

HALF = 1 << 20
"""A state that is a code of 40 bits becomes two numbers below this, which single precision tells apart."""


def coordinates(task: Task) -> int:
    """Numbers in a state of a task; the step is one, where dynamics depend on it."""
    numbers = 2 if task.state_bytes is None else max(task.state_bytes // 8, 1)
    return (1 if task.S is not None else numbers) + (not task.stationary)


def vectors(task: Task, h: int, states: Sequence[State]) -> Array:
    """States at step h as vectors, (n, k) in single precision."""
    X = np.empty((len(states), coordinates(task)), dtype=np.float32)
    X[:, -1] = h
    coded = task.S is None and task.state_bytes is None
    for x, state in zip(X, states, strict=True):
        x[: len(x) - (not task.stationary)] = divmod(int(state), HALF) if coded else np.ravel(state)
    return X


def code_of(x: np.ndarray) -> int:
    """64 bits that stand for the exact values of an array."""
    return int.from_bytes(hashlib.blake2b(np.ascontiguousarray(x).data, digest_size=8).digest(), "little", signed=True)


Masks = tuple[BoolArray | None, BoolArray | None]
"""Which actions may be taken, (A,), where a transition began and where it ended."""


class Cells(NamedTuple):
    """Transitions by what they began with: U states, and C cells, each a state with an action that was tried there."""

    X: Array  # (U, k) the states
    codes: IntArray  # (U,) of the states
    following: IntArray  # (m,) the state that each transition led to
    cell: IntArray  # (m,) the cell that each transition began with
    share: Array  # (m,) its share of the visits of that cell
    over: BoolArray  # (m,)
    state: IntArray  # (C,)
    action: IntArray  # (C,)
    times: Array  # (C,) visits
    stands: Array  # (C,) different states that it stands for, itself among them
    reward: Array  # (C,) mean reward
    closed: BoolArray  # (U, A) which actions a state does not allow, or (0, A) where all allow all

    def mean(self, values: Array) -> Array:
        """The mean over the transitions of each cell, (C,), of values (m,)."""
        found: Array = np.bincount(self.cell, self.share * values, len(self.times)).astype(np.float64)
        return found


class Experience(Component):
    """At most 4 N transitions from at most N states, each a real one with its number of times and its mean reward.

    With those that followed they are at most 2 N states, so that a planning has a size.

    Where there are more, transitions whose two ends are both within a radius of those of a kept one (same action, and
    both or neither an end) add to its times, heaviest first, and the radius grows until a tenth of the states is gone.
    The kept one is not moved: a real transition obeys the dynamics, a mean of several does not.

    Attributes
    ----------
    ends : (n, 2, k) where it began and what followed
    code, start, end : (n,) codes of the whole transition, of where it began and of what followed
    action, over, times, reward, squared : (n,) times, and means of the reward and of its square
    others : (n,) transitions from other states that were merged with it
    closed : (n, 2, ceil(A / 8)) bits of the actions that a mask forbids at both ends; (n, 2, 0) before the first mask
    count : transitions held; states : different ones among those that they began with; held : among both ends
    seen, again : transitions so far, and those of them that began where an earlier one did
    radius : of merging, () in units of the coordinates' ranges; 0 before the first
    centre, unit : (k,) mean of each coordinate, and one over its range
    """

    _arrays = ("ends", "closed", *TYPES, "radius", "centre", "unit")
    _counters = ("count", "states", "held", "seen", "again")
    code: IntArray
    start: IntArray
    end: IntArray
    action: IntArray
    over: BoolArray
    others: IntArray
    times: Array
    reward: Array
    squared: Array

    closed: npt.NDArray[np.uint8]

    def __init__(self, k: int, N: int) -> None:
        self.k, self.N = k, N
        self.count = self.states = self.held = self.seen = self.again = 0
        self.radius, self.centre, self.unit = np.zeros(()), np.zeros(k), np.zeros(k)
        self._allocate(FIRST)

    def _allocate(self, n: int) -> None:
        self.ends, self.closed = np.zeros((n, 2, self.k), dtype=np.float32), np.zeros((n, 2, 0), dtype=np.uint8)
        for name, kind in TYPES.items():
            setattr(self, name, np.zeros(n, dtype=kind))

    def _grow(self) -> None:
        more = self.rows_of(self.count, self.N) - len(self.code)
        for name in ("ends", "closed", *TYPES):
            old = getattr(self, name)
            setattr(self, name, np.concatenate([old, np.zeros((more, *old.shape[1:]), old.dtype)]))

    def add(self, x: Array, action: int, reward: float, y: Array, over: bool, masks: Masks = (None, None)) -> None:
        """One more transition, from x to y (k,), float32, and what may be done in both."""
        ends, start, end = np.stack([x, y]), code_of(x), code_of(y)
        code = code_of(ends) ^ (2 * action + over)
        same = self.code[: self.count] == code
        if not same.any() and self.radius > 0:
            same = self._near(ends, action, over)
        known, begun = self._known(start), bool((self.start[: self.count] == start).any())
        self.seen, self.again = self.seen + 1, self.again + begun
        if not same.any():
            self.held += (not known) + (end != start and not self._known(end))
            self.states += not begun
            i, self.count = self.count, self.count + 1
            if i == len(self.code):
                self._grow()
            self.ends[i], self.code[i], self.start[i], self.end[i] = ends, code, start, end
            self.action[i], self.over[i] = action, over
            self.others[i], self.times[i], self.reward[i], self.squared[i] = 0, 0.0, 0.0, 0.0
        else:
            i = int(same.argmax())
            self.others[i] += self.start[i] != start
        for end, mask in enumerate(masks):
            if mask is not None:
                self._close(i, end, np.packbits(~mask))
        self._weigh(i, 1.0, reward, reward * reward)
        if self._beyond(1.0):
            self._coarsen()

    def _close(self, i: int, end: int, bits: np.ndarray) -> None:
        """Note the forbidden actions at one end of a transition; the first mask makes space for all."""
        if not self.closed.shape[2]:
            self.closed = np.zeros((len(self.code), 2, len(bits)), dtype=np.uint8)
        self.closed[i, end] = bits

    def _known(self, code: int) -> bool:
        """Whether a state is held at either end of a transition."""
        n = self.count
        return bool((self.start[:n] == code).any() or (self.end[:n] == code).any())

    def _beyond(self, share: float) -> bool:
        """Whether more is held than this share of what may be."""
        return self.states > share * self.N or self.count > share * 4 * self.N or self.held > share * 2 * self.N

    def _weigh(self, i: int, times: float, reward: float, squared: float) -> None:
        self.times[i] += times
        share = times / self.times[i]
        self.reward[i] += share * (reward - self.reward[i])
        self.squared[i] += share * (squared - self.squared[i])

    def rescale(self) -> None:
        """Centre and unit of each coordinate follow the data: one over its range from 1 to 99%, 0 if it never moves."""
        Z = self.ends[: self.count].reshape(-1, self.k).astype(np.float64)
        low, high = np.percentile(Z, [1, 99], axis=0)
        spread = np.where(high > low, high - low, Z.max(axis=0) - Z.min(axis=0))
        self.centre[:], self.unit[:] = Z.mean(axis=0), 0.0
        np.divide(1.0, spread, out=self.unit, where=spread > 0)

    def _near(self, ends: Array, action: int, over: bool) -> BoolArray:
        """Where the nearest transition is that this one may be merged with: (count,), true at most once."""
        n, found = self.count, np.zeros(self.count, dtype=np.bool_)
        alike = np.flatnonzero((self.action[:n] == action) & (self.over[:n] == over))
        if len(alike):
            away = (((self.ends[alike] - ends) * self.unit.astype(np.float32)) ** 2).sum(axis=(1, 2))
            if away.min() <= self.radius**2:
                found[alike[away.argmin()]] = True
        return found

    def _coarsen(self) -> None:
        """Merge with a larger radius, the heaviest first, until there is space again."""
        n = self.count
        self.rescale()
        if not self.radius > 0:
            E, nearest = (self.ends[:n] * self.unit).reshape(n, -1), np.empty(PROBES)
            for i, probe in enumerate(np.linspace(0, n - 1, PROBES).astype(int).tolist()):
                away = ((E[probe] - E) ** 2).sum(axis=1)
                away[probe] = np.inf
                nearest[i] = away.min()
            self.radius[...] = 0.5 * np.sqrt(np.median(nearest)) + 1e-9
        while self._beyond(LEFT):
            self.radius *= WIDER
            self._merge_all()

    def _merge_all(self) -> None:
        n, old = self.count, {name: getattr(self, name)[: self.count].copy() for name in ("ends", "closed", *TYPES)}
        self.count = 0
        for i in np.argsort(-old["times"], kind="stable").tolist():
            same = self._near(old["ends"][i], old["action"][i], old["over"][i])
            j = int(same.argmax()) if same.any() else self.count
            if j == self.count:
                for name, rows in old.items():
                    getattr(self, name)[j] = rows[i]
                self.count += 1
            else:
                self.others[j] += old["others"][i] + (old["start"][i] != self.start[j])
                self._weigh(j, *(float(old[name][i]) for name in ("times", "reward", "squared")))
        self.code[self.count : n] = self.start[self.count : n] = self.end[self.count : n] = 0
        m = self.count
        self.states = len(np.unique(self.start[:m]))
        self.held = len(np.unique([self.start[:m], self.end[:m]]))

    @property
    def come_again(self) -> float:
        """The share of visits to states that had been visited before."""
        return self.again / max(self.seen, 1)

    def cells(self, A: int) -> Cells:
        """What is held, state by state in the order of their first transition, and cell by cell."""
        m = self.count
        codes = np.stack([self.start[:m], self.end[:m]], axis=1).ravel()
        _, first, which = np.unique(codes, return_index=True, return_inverse=True)
        begun, following = first.argsort().argsort()[which].reshape(m, 2).T
        first.sort()
        times = self.times[:m]
        cells, cell = np.unique(begun * A + self.action[:m], return_inverse=True)
        visits: Array = np.bincount(cell, times, len(cells)).astype(np.float64)
        share = times / visits[cell]
        return Cells(
            X=self.ends[:m].reshape(2 * m, self.k)[first],
            codes=codes[first],
            following=following,
            cell=cell,
            share=share,
            over=self.over[:m],
            state=cells // A,
            action=cells % A,
            times=visits,
            stands=1 + np.bincount(cell, self.others[:m], len(cells)).astype(np.float64),
            reward=np.bincount(cell, share * self.reward[:m], len(cells)).astype(np.float64),
            closed=self._closed(first, A),
        )

    def _closed(self, first: IntArray, A: int) -> BoolArray:
        bits = self.closed[: self.count].reshape(2 * self.count, self.closed.shape[2])[first]
        if not bits.shape[1]:
            return np.zeros((0, A), dtype=np.bool_)
        return np.unpackbits(bits, axis=1, count=A).astype(np.bool_)

    def doubled(self, x: Array, action: int) -> bool:
        """Whether visits of an action in x, a state that has come again, have just reached a power of two."""
        here, times = self.start[: self.count] == code_of(x), self.times[: self.count]
        visits = int(times[here & (self.action[: self.count] == action)].sum())
        return bool(visits and not visits & (visits - 1) and times[here].sum() > 1)

    def within(self) -> float:
        """The sum of squares of rewards around the means of their transitions."""
        n = self.count
        return float(self.times[:n] @ np.maximum(self.squared[:n] - self.reward[:n] ** 2, 0.0))

    @staticmethod
    def rows_of(count: int, N: int) -> int:
        """Rows that there are for so many transitions: twice as many again and again, but no more than can be held."""
        rows = FIRST
        while rows < count:
            rows *= 2
        return max(min(rows, 4 * N + 1), FIRST)

    @classmethod
    def bytes_of(cls, k: int, N: int, count: int, masks: int = 0) -> int:
        """Bytes of its arrays for so many transitions, with so many bytes of a mask at either end."""
        row = 8 * k + sum(np.dtype(kind).itemsize for kind in TYPES.values()) + 2 * masks
        return cls.rows_of(count, N) * row + 8 + 16 * k

    def load_state_dict(self, state: Mapping[str, np.ndarray]) -> None:
        rows = saved_array(state, "code").shape
        if len(rows) != 1 or not FIRST <= rows[0] <= 8 * max(self.N, FIRST):
            raise InvalidData(f"'code' of a saved agent must have a row for each transition. Got shape {rows}.")
        self._allocate(rows[0])
        closed = saved_array(state, "closed").shape
        if len(closed) != 3 or closed[2] > MOST_BYTES:
            raise InvalidData(
                f"'closed' of a saved agent must have the actions of each transition. Got shape {closed}."
            )
        self.closed = np.zeros((rows[0], 2, closed[2]), dtype=np.uint8)
        super().load_state_dict(state)
        n = self.count
        if not 0 <= n <= rows[0] or not (self.times[:n] > 0).all() or not (self.others[:n] >= 0).all():
            raise InvalidData("'count', 'times' and 'others' of a saved agent must be those of its transitions.")
        if not all(np.isfinite(getattr(self, name)).all() for name in ("ends", "times", "reward", "squared", "radius")):
            raise InvalidData("The transitions of a saved agent must be finite.")
