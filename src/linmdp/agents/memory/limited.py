"""Unit vectors within a limit of M links: where states are finite links merge, where they have no bound states join.

Exact while all links fit, and no sample is dropped after that. See docs/bounded-memory.md.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np

from linmdp.agents.memory.base import Parts, Sample
from linmdp.agents.memory.links import Links, Sparse, table_size
from linmdp.errors import InvalidData
from linmdp.features.base import FeatureMap
from linmdp.features.unit import CODES
from linmdp.types import Array, IntArray, State

FREE = 8
"""One link, or one state, in so many goes when there are too many."""

SLIGHT, TINY, DIGITS = 1e-3, 1e-12, 9
"""A change of the mean by this share of all values, or this much, is none; decimals beyond are rounding."""

REST = CODES
"""What the rest is called: no state has this name."""

FEWEST = 4
"""States, at least: the rest, and both ends of a transition while another state joins."""


class Merging(Sparse):
    """At most M links of finite states; M should be the number of unit vectors or more: each keeps a link.

    A link that does not fit gives its weight to those two of its unit vector between whose values its own lies, so that
    the mean stays as it is.

    Attributes
    ----------
    merged : (G,) samples whose link was merged, at most
    errors : (H,) E_h of the last planning; certificate : () see `off`
    """

    _arrays: ClassVar = (*Sparse._arrays, "merged", "errors", "certificate")
    _saved_within: ClassVar = dict.fromkeys(_arrays, (0, np.finfo(np.float64).max))
    _derived: ClassVar = (*Sparse._derived, "spans")
    M: int

    def __init__(self, parts: Parts, features: FeatureMap, index: IntArray | None, M: int, spans: Array) -> None:
        super().__init__(parts, features, index)
        self.M, self.spans, self.links = M, spans, Links(table_size(M))
        self.merged, self.errors, self.certificate = np.zeros(len(self.visits)), np.zeros(len(spans)), np.zeros(())

    def add(self, h: int, sample: Sample) -> None:
        g = self.horizon.group(h)
        if g >= self.horizon.followed or self._fits(sample.cell * len(self.visits) + g, sample.to):
            super().add(h, sample)
            return
        self.merged[g] += sample.weight
        if self.visits[g, sample.cell]:  # no link for a new unit vector, which stays as if never tried
            self._count(g, sample)

    def _fits(self, row: int, to: int) -> bool:
        """Whether a transition has a link or gets one, for which others may have to merge."""
        if self.links.count < self.M or self.links.has(row, to):
            return True
        self._merge()
        return self.links.count < self.M or self.links.has(row, to)

    def clear(self, runs: Any = ...) -> None:
        super().clear(runs)
        self.links = Links(table_size(self.M))
        self.merged[:] = 0.0

    def fade(self, factor: float) -> None:
        super().fade(factor)
        self.merged *= factor

    def _merge(self) -> None:
        """Merge one link in eight into its neighbours in value, those first that could change what is best least."""
        (rows, to, sums), G = self.links.entries(), len(self.visits)
        worth, margins = self._worth()
        value = worth[rows % G, np.minimum(to, self.S)]
        order = np.lexsort((value, rows // G, rows % G))
        rows, to, sums, value = rows[order], to[order], sums[:, order], value[order]
        cells, groups = np.divmod(rows, G)
        shares = sums[0] / np.bincount(rows, sums[0])[rows]
        gaps = np.where(rows[1:] == rows[:-1], np.diff(value), np.inf)
        below, above = np.append(np.inf, gaps), np.append(gaps, np.inf)
        loss = shares * np.minimum(below, above) / (margins[groups, cells] + SLIGHT * float(np.ptp(worth)) + TINY)
        out = spread_out(np.round(loss, DIGITS), max(1, len(rows) // FREE))
        lower, given = to_lower(below[out], above[out]), sums[:, out]
        np.add.at(sums.T, np.maximum(out - 1, 0), (lower * given).T)
        np.add.at(sums.T, np.minimum(out + 1, len(rows) - 1), ((1 - lower) * given).T)
        np.add.at(self.merged, groups[out], self.visits[groups[out], cells[out]] * shares[out])
        stay = np.delete(np.arange(len(rows)), out)
        self.links = Links.of(rows[stay] << 32 | to[stay], sums[:, stay], len(self.links.keys))

    def _worth(self) -> tuple[Array, Array]:
        """V of each state and of an end after the steps of each regression, (G, S + 1), in the mean over its steps.

        And how far each unit vector would have to move to change which action is best, (G, d). Both without bonus.
        """
        G, ended = len(self.visits), self.exploration.terminal[: self.horizon.levels]
        q = self.w if G > 1 else self.w.mean(axis=0, keepdims=True)
        worth, margins = np.empty((G, self.S + 1)), np.full(self.visits.shape, np.inf)
        for g in range(G):
            of_states = self.of_states(q[g])
            best = of_states.max(axis=1, keepdims=True)
            others = np.partition(of_states, -2, axis=1)[:, -2:-1] if self.A > 1 else best
            margin = np.where(of_states == best, best - others, best - of_states)
            if self.index is None:
                margins[g] = margin.ravel()
            else:  # several actions may share a unit vector
                np.minimum.at(margins[g], self.index, margin)
            worth[g - 1, : self.S] = best[:, 0]  # what follows the step before
        worth[:, self.S] = ended if G > 1 else ended.mean()
        return np.round(worth, DIGITS), np.round(margins, DIGITS)

    # planning

    def begin(self) -> None:
        super().begin()
        for g, (cells, _, sums) in enumerate(self._split):  # visits that have no link count as those that have one
            held = np.bincount(cells, sums[0], self.visits.shape[1])
            sums *= (self.visits[g] / np.where(held > 0, held, 1.0))[cells]

    def target(self, h: int) -> Array:
        values, g = self._following(h), self.horizon.group(h)
        self.errors[h] = float(np.ptp(values)) * min(float(self.merged[g]), float(self.visits[g].sum())) ** 0.5
        return self._summed(h, values)

    def played(self, h: int, state: State, action: int) -> None:
        cell = self.cell(int(state), action)
        self.certificate += self.off(h, float(self.ridge.Lambda_inv[self.horizon.group(h), cell, 0, 0]))

    # memory and files

    def bytes_after(self, samples: int) -> int:
        return self.nbytes

    def load_state_dict(self, state: Mapping[str, np.ndarray]) -> None:
        super().load_state_dict(state)
        rows, to, sums = self.links.entries()
        if len(rows) > self.M or not (sums[0] > 0).all() or (rows % len(self.visits) >= self.horizon.followed).any():
            raise InvalidData(f"'links' of a saved agent must be at most {self.M}, each of a sample that came.")
        self.links = Links.of(rows << 32 | to, sums, table_size(self.M))


def spread_out(loss: Array, most: int) -> IntArray:
    """The indices of the least finite losses, none beside another, in order."""
    beside, out = np.isinf(loss), list[int]()
    for i in np.argsort(loss, kind="stable").tolist():
        if not beside[i] and len(out) < most:
            out.append(i)
            beside[max(i - 1, 0) : i + 2] = True
    return np.sort(np.array(out, dtype=np.int64))


def to_lower(below: Array, above: Array) -> Array:
    """The share of its weight that a value gives to the lower of its neighbours, at these distances from it.

    The mean stays; what has one neighbour alone (the other is at an infinite distance) goes there.
    """
    there = np.isfinite(below)
    both = there & np.isfinite(above)
    total = np.where(both, below + above, 1.0)
    return np.where(both, np.where(total > 0, above / np.where(total > 0, total, 1.0), 0.5), there)


class Joining(Sparse):
    """At most M links of states without a bound, and a state for every unit vector of them.

    Those states that came least are one, the rest: their samples count as those of the rest, and a transition to one of
    them leads to it. A state that has joined the rest is new if it comes again.

    Attributes
    ----------
    most : the most states, with the rest
    """

    M: int

    def __init__(self, parts: Parts, features: FeatureMap, M: int) -> None:
        super().__init__(parts, features, None)
        self.M, self.most, self._free = M, most_states(M, self.A * self.horizon.groups), list[int]()

    # states

    def _numbered(self, state: State) -> int:
        if not self._free or self.number(state) >= 0:
            return super()._numbered(state)
        i = self._number[int(state)] = self._free.pop()
        self.names[i] = int(state)
        return i

    def prepare(self, sample: Sample) -> None:
        while self._full:
            self._join()
        super().prepare(sample)

    @property
    def _full(self) -> bool:
        """Whether there is no space for two more states, beside the rest, or for another link."""
        return len(self._number) + 3 > self.most or (self.links.count >= self.M and len(self._number) > 1)

    def _join(self) -> None:
        """Let the states that came least join the rest."""
        rest, G = self._numbered(REST), len(self.visits)
        numbers = np.flatnonzero((self.names >= 0) & (self.names != REST))
        came = self.visits.reshape(G, -1, self.A).sum(axis=(0, 2))[numbers]
        joining = numbers[np.argsort(came, kind="stable")[: max(2, len(numbers) // FREE)]]
        for sums in (self.visits, self.ridge.u):
            of_states = sums.reshape(G, -1, self.A)
            of_states[:, rest] += of_states[:, joining].sum(axis=1)
            of_states[:, joining] = 0.0
        self._relink(joining, rest)
        self._release(joining)

    def _relink(self, joining: IntArray, rest: int) -> None:
        """Every link from or to one of these states becomes one of the rest."""
        (rows, to, sums), G = self.links.entries(), len(self.visits)
        cells, joins = rows // G, np.zeros(len(self.names) + 1, dtype=np.bool_)
        joins[joining] = True
        cells = np.where(joins[cells // self.A], rest * self.A + cells % self.A, cells)
        to = np.where(joins[np.minimum(to, len(self.names))], rest, to)
        keys, where = np.unique((cells * G + rows % G) << 32 | to, return_inverse=True)
        summed: Array = np.stack([np.bincount(where, row, len(keys)).astype(np.float64, copy=False) for row in sums])
        self.links = Links.of(keys, summed, len(self.links.keys))

    def _release(self, joining: IntArray) -> None:
        """Their numbers are free; the states that get them were never tried."""
        for name in self.names[joining].tolist():
            del self._number[name]
        self.names[joining] = -1
        self._free = holes(self.names)
        cells = (joining[:, None] * self.A + np.arange(self.A)).ravel()
        self.ridge.Lambda_inv[:, cells] = 1 / float(self.ridge.lam)
        self.ridge.behind[:] = True
        self.w[:, cells] = 0.0

    # memory and files

    def load_state_dict(self, state: Mapping[str, np.ndarray]) -> None:
        super().load_state_dict(state)
        self._free = holes(self.names)


def most_states(M: int, cells: int) -> int:
    """The states that M links have, with so many unit vectors each."""
    return max(FEWEST, M // cells)


def holes(names: IntArray) -> list[int]:
    """The numbers below the largest that are free, the smallest last."""
    used = np.flatnonzero(names >= 0)
    return [int(i) for i in np.flatnonzero(names[: used.max(initial=-1) + 1] < 0)[::-1]]
