"""Groups of cells: the last M transitions as the cells of their two ends, and a regression stage by stage."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np

from linmdp.agents.base import StateDict, prefixed, saved_array, under
from linmdp.agents.exploration.bonus import optimistic
from linmdp.agents.incumbent import BEST, Incumbent, with_rows
from linmdp.agents.stages import Rows, Stages
from linmdp.agents.storage.base import Parts, Sample, Storage
from linmdp.errors import InvalidData
from linmdp.features.groups import GroupFeatures
from linmdp.types import Array, BoolArray, IntArray, State

CHUNK = 4096
"""Transitions whose values are computed at once."""

FIRST_CELLS, MOST_CELLS = 256, 1 << 14
"""Cells that have weights of their own, at first and at most; new ones beyond share one for each group."""

MOST_BYTES = (4 << 20) - (1 << 14)
"""Of everything that is kept, where M is not given: cells with weights of their own are fewer where they would take
more. The rest is for the arrays of an agent that do not grow."""


def cell_bytes(C: int) -> int:
    """Bytes of a cell with C classes of actions: its group, visits, weights, and those of two older plans."""
    return 1 + (4 + 8 + 2 * 4) * (1 + C)


def most_cells(features: GroupFeatures, M: int) -> int:
    """The most cells with weights of their own beside M transitions."""
    left = MOST_BYTES - 2 * features.cells - M * (4 * features.G + 2 + 8 + 1) - 24 * features.A  # returns of actions
    return min(MOST_CELLS, max(2 * features.G, left // cell_bytes(features.C)))


def followed(z: Array, weight: Array) -> Array:
    """The z' with z'_i = z_i + weight_i z'_(i+1), (n,), in log n passes; after the last one comes the first.

    There must be a weight of 0 on every way around.
    """
    z, weight, step = z.copy(), weight.copy(), 1
    while weight.any():
        z += weight * np.roll(z, -step)
        weight *= np.roll(weight, -step)
        step *= 2
    return z


class Stagewise(Storage):
    """The last M transitions, each as the cells of its two ends: features are computed once, and states are not kept.

    A cell gets its number, and a row of weights, when it is first seen. The first G rows are those of cells that have
    none. Where the last number of a state is the step, an episode that is cut has ended: nothing follows.

    Attributes
    ----------
    number : (cells,) the row of each cell of the features; 0 before it is seen
    group : (R,) of each row
    before, after : (M, G) rows of the cells of state and next state
    action : (M,) class of the action; reward : (M,); ended : (M,)
    visits : (R, 1 + C) transitions held that start in a cell, and of those the ones of each class
    count, place, seen : transitions held, where the next one goes, and rows in use
    """

    _arrays: ClassVar = ("number", "group", "before", "after", "action", "reward", "ended", "visits")
    _counters: ClassVar = ("count", "place", "seen")
    keeps_samples = incremental = False
    compact = own_ends = True
    sweeps = 10

    def __init__(self, parts: Parts, features: GroupFeatures, M: int, *, opening: bool, K: int | None = None) -> None:
        super().__init__(parts)
        self.features, self.M, G = features, M, features.G
        self.most = most_cells(features, M)
        self.least = min(FIRST_CELLS, self.most)
        self.before, self.after = np.zeros((M, G), dtype=np.uint16), np.zeros((M, G), dtype=np.uint16)
        self.action, self.reward = np.zeros(M, dtype=np.uint16), np.zeros(M)
        self.ended, self.count, self.place, self.seen = np.zeros(M, dtype=np.bool_), 0, 0, G
        self.number = np.zeros(features.cells, dtype=np.uint16)
        self.group, self.visits = np.zeros(0, dtype=np.uint8), np.zeros((0, 1 + features.C), dtype=np.float32)
        self.incumbent = Incumbent(0, features.A if opening else 0, K)

    @property
    def stages(self) -> Stages:
        """The regression."""
        assert isinstance(self.ridge, Stages)
        return self.ridge

    def make_room(self, rows: int) -> None:
        """Room for that many cells with weights of their own."""
        self.group, self.visits = with_rows(self.group, rows), with_rows(self.visits, rows)
        self.group[: self.features.G] = np.arange(min(rows, self.features.G))
        self.resize(self.visits.size)
        self.incumbent.resize(self.visits.size)

    def rows(self, state: State) -> IntArray:
        """The rows of a state's cells, (G,); row g for one of group g that was not seen before."""
        rows = self.number[self.features.cells_of(state)].astype(np.int64)
        return np.where(rows > 0, rows, np.arange(len(rows)))

    def numbered(self, state: State) -> IntArray:
        """The same, after cells that were not seen before have got their rows."""
        cells = self.features.cells_of(state)
        for g in np.flatnonzero(self.number[cells] == 0).tolist():
            if self.seen >= len(self.group):
                if len(self.group) >= self.most:
                    break
                self.make_room(max(self.least, min(2 * len(self.group), self.most)))
            self.number[cells[g]], self.group[self.seen] = self.seen, g
            self.seen += 1
        return self.rows(state)

    # samples

    def add(self, h: int, sample: Sample) -> None:
        if self.incumbent.trial:  # one action all the time makes states look bad that are not
            return
        i, features = self.place, self.features
        if self.count == self.M:
            self._count(i, -1.0)
        self.before[i], self.after[i] = self.numbered(sample.state), self.numbered(sample.next_state)
        self.action[i], self.reward[i] = features.classes[sample.action], sample.reward
        self.ended[i] = sample.terminated or (features.clock and h == self.horizon.H - 1)
        self._count(i, 1.0)
        self.count, self.place = min(self.count + 1, self.M), (i + 1) % self.M

    def _count(self, i: int, times: float) -> None:
        self.visits[self.before[i], 0] += times
        self.visits[self.before[i], 1 + int(self.action[i])] += times

    def clear(self, runs: Any = ...) -> None:
        self.count = self.place = 0
        self.visits[:] = 0.0

    # planning

    def begin(self) -> None:
        held, order = slice(0, self.count), self.group.argsort(kind="stable")
        place, first = np.empty(len(order), dtype=np.int64), np.arange(self.features.G + 1)
        place[order] = np.arange(len(order))
        self.stages.rows = Rows(
            place[self.before[held]],
            self.action[held].astype(np.int64),
            self.reward[held],
            self.visits[order],
            self.group[order].searchsorted(first),
            place,
        )

    def target(self, h: int) -> Array:
        """What follows each transition, (count,): V and, while greedy actions were taken, most of what came instead.

        z_i = V(s'_i) + trace (r_j + discount z_j - min(phi(s_j, a_j)'w, cap)) where transition j = i + 1 starts in the
        cells in which i ends, and a_j is greedy there; else z_i = V(s'_i). Of other actions nothing is taken over: what
        is expected of them is not in V, and to correct it by what came runs away.
        """
        n, table, explore = self.count, self._table(self.w[0]), self.exploration
        z, trace, live = np.zeros(n), np.zeros(n), np.flatnonzero(~self.ended[:n])
        newest = (self.place or self.M) - 1
        for part in np.array_split(live, -(-len(live) // CHUNK) or 1):
            rows, then = self.after[part], (part + 1) % max(n, 1)
            taken, products = self.action[then, None].astype(np.int64), self._products(table, rows)
            expected = np.minimum(np.take_along_axis(products[0], taken, axis=-1)[:, 0], explore.caps[0])
            q = explore.q(0, products, self._forms(rows))
            greedy = np.take_along_axis(explore.best(q, axis=-1), taken, axis=-1)[:, 0]
            trace[part] = self.features.trace * (greedy & (self.before[then] == rows).all(axis=1) & (part != newest))
            z[part] = explore.largest(q, axis=-1) + trace[part] * (self.reward[then] - expected)
        return followed(z, self.horizon.discount * trace)

    def greedy_target(self, h: int, w: Array) -> Array:
        raise InvalidData("Stages plan with exploration only.")

    def _table(self, w: Array) -> Array:
        """What each cell adds to Q of each class, (cells, C)."""
        table = w.reshape(self.visits.shape)
        return np.asarray((table[:, :1] + table[:, 1:]) * self.features.scale)

    def _products(self, table: Array, rows: IntArray) -> Array:
        """phi'w of every class in states whose cells are rows (n, G), (1, n, C)."""
        total = table[rows[:, 0]]
        for g in range(1, self.features.G):
            total += table[rows[:, g]]
        return total[None]

    def _forms(self, rows: IntArray) -> Array:
        """In place of phi' Lambda^-1 phi: that of the finest cell with each class, alone, (n, C)."""
        scale = self.features.scale**2
        forms: Array = scale / (scale * self.visits[rows[:, -1], 1:].astype(np.float64) + float(self.ridge.lam))
        return forms

    def end(self, rng: np.random.Generator | None) -> None:
        self.incumbent.planned()
        self.forget()

    def forget(self) -> None:
        self.stages.rows = None

    def episode_over(self, earned: float) -> None:
        self.incumbent.see(earned, self.w[0], float(self.exploration.beta[0]))

    # acting

    def best_actions(self, h: int, state: State) -> BoolArray:
        action = self.incumbent.action
        if action is None:
            return np.asarray(super().best_actions(h, state), dtype=np.bool_)
        alone: BoolArray = np.arange(self.features.A) == action
        return alone

    def q_values(self, h: int, state: State) -> Array:
        if not len(self.group):
            self.make_room(self.least)
        rows, features = self.rows(state), self.features
        explore, best = self.exploration, self.incumbent.acting == BEST
        w, beta = (self.incumbent.w, self.incumbent.beta) if best else (self.w[0], explore.beta[0])
        table = w.reshape(self.visits.shape)[rows].sum(axis=0, dtype=np.float64) * features.scale
        q = optimistic(table[0] + table[1:], self._forms(rows[None])[0], beta)
        capped: Array = np.minimum(q, explore.caps[0])
        return capped[features.classes]

    def best_table(self, h: int) -> BoolArray:
        raise InvalidData("A policy for all states needs finite states.")

    # memory and files

    @property
    def nbytes(self) -> int:
        return super().nbytes + self.incumbent.nbytes

    def bytes_after(self, samples: int) -> int:
        """With two new cells of every group in each sample."""
        rows, needed = self.least, self.seen + 2 * self.features.G * samples
        while rows < min(self.most, needed):
            rows = min(2 * rows, self.most)
        return self.nbytes + max(0, rows - len(self.group)) * cell_bytes(self.features.C)

    def state_dict(self) -> StateDict:
        return super().state_dict() | prefixed("incumbent", self.incumbent.state_dict())

    def load_state_dict(self, state: Mapping[str, np.ndarray]) -> None:
        rows = len(saved_array(state, "group"))
        if rows != len(self.group) and (self.least <= rows <= self.most or not rows):
            self.make_room(rows)
        super().load_state_dict(state)
        self.incumbent.load_state_dict(under("incumbent", state))
        features, most = self.features, len(self.group)
        held = (
            0 <= self.count <= self.M and 0 <= self.place < self.M and features.G <= self.seen <= max(most, features.G)
        )
        limits = (self.before, most), (self.after, most), (self.number, most), (self.group, features.G)
        held = held and BEST <= self.incumbent.acting < len(self.incumbent.episodes)
        if not held or not all((x < max(limit, 1)).all() for x, limit in (*limits, (self.action, features.C))):
            raise InvalidData(
                "'before', 'after' and 'action' of a saved agent must be cells and classes of its features."
            )
        kept: list[Array] = [self.reward, self.visits, *self.incumbent.state_dict().values()]
        if not all(np.isfinite(x).all() for x in kept):
            raise InvalidData("The transitions of a saved agent must be finite.")
