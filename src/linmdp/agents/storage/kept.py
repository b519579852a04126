"""Unit vectors within a bound of memory: at most M links, and what does not fit is merged into its neighbours in value.

A link says how often a unit vector led to a state. Exact while all links fit. After that a link gives its weight to
those two of its unit vector between whose values its own lies, so that the mean stays as it is. Every target is made
again at every planning. See docs/bounded-memory.md.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, ClassVar

import numpy as np

from linmdp.agents.storage.base import Parts, Sample
from linmdp.agents.storage.unit import UnitStorage
from linmdp.errors import InvalidData
from linmdp.features.base import FeatureMap
from linmdp.types import Array, IntArray, State

FREE = 8
"""One link in so many is merged when there are too many."""

CHUNK = 256
"""Links that are summed at once."""

HEAVY = float(1 << 22)
"""The weight of a link from which on those of its unit vector are halved, to be counted in 24 bits each."""

SLIGHT, TINY, DIGITS = 1e-3, 1e-12, 9
"""A change of the mean by this share of all values, or this much, is none; decimals beyond are rounding."""


class Kept(UnitStorage):
    """At most M links, in the order of their keys; M should be the number of unit vectors or more: each keeps a link.

    Attributes
    ----------
    keys : (M,) (g d + cell) (S + 1) + to, where `to` is S if the episode ended
    weights, paid : (M,) how often, and the mean reward in units of `scale`, which serves the estimate of noise alone
    count, cursor : () number of links, and the next one to be looked at when some must be merged
    merged : (G,) samples whose link was merged or halved, at most
    errors : (H,) E_h of the last planning; certificate : () see `off`
    """

    _arrays: ClassVar = ("visits", "keys", "weights", "paid", "count", "cursor", "merged", "errors", "certificate")
    _derived: ClassVar = ("spans",)

    def __init__(self, parts: Parts, features: FeatureMap, index: IntArray | None, M: int, spans: Array) -> None:
        super().__init__(parts, features, index)
        self.M, self.spans, self.places, H = M, spans, self.S + 1, self.horizon.H
        self.keys = np.zeros(M, dtype=key_type(self.visits.size, self.S))
        self.weights, self.paid = np.zeros(M, dtype=np.float32), np.zeros(M, dtype=np.float16)
        self.count, self.cursor = np.zeros((), dtype=np.int64), np.zeros((), dtype=np.int64)
        self.scale = float(spans[0]) / self.horizon.effective_steps or 1.0
        self.merged, self.errors, self.certificate = np.zeros(len(self.visits)), np.zeros(H), np.zeros(())
        self._ahead, self._span = (0.0, 0.0), 0.0  # of the last target

    # samples

    def prepare(self, sample: Sample) -> None:
        sample.cell = self.cell(int(sample.state), sample.action)
        sample.to = self.S if sample.terminated else int(sample.next_state)

    def add(self, h: int, sample: Sample) -> None:
        g, cell = self.horizon.group(h), sample.cell
        if g < self.horizon.followed and not self._link(g * self.visits.shape[1] + cell, sample):
            self.merged[g] += sample.weight
            if not self.visits[g, cell]:  # no link for a new unit vector, which stays as if never tried
                return
        self.visits[g, cell] += sample.weight
        self.ridge.u[g, cell] += sample.weight * sample.reward

    def _link(self, row: int, sample: Sample) -> bool:
        """Count a transition; False where there is no space for it even if all that can be is merged."""
        i, there = self._find(key := row * self.places + sample.to)
        if not there and self.count == self.M:
            self._merge()
            i, there = self._find(key)
        reward, n = sample.reward / self.scale, int(self.count)
        if there:
            self.weights[i] += sample.weight
            self.paid[i] += (reward - self.paid[i]) * (sample.weight / self.weights[i])
            if self.weights[i] > HEAVY:  # what came before counts half from now on: as if each were misplaced
                self.merged.flat[row // self.visits.shape[1]] += self.visits.flat[row]
                self.weights[self._find(row * self.places)[0] : self._find((row + 1) * self.places)[0]] /= 2
        elif n < self.M:
            for array, new in zip(self._lists, (key, sample.weight, reward), strict=True):
                array[i + 1 : n + 1] = array[i:n].copy()
                array[i] = new
            self.count += 1
        return there or n < self.M

    def _find(self, key: int) -> tuple[int, bool]:
        """Where a key lies or belongs, and whether it is there."""
        n = int(self.count)
        i = int(self.keys[:n].searchsorted(self.keys.dtype.type(key)))
        return i, i < n and int(self.keys[i]) == key

    @property
    def _lists(self) -> tuple[Any, ...]:
        return self.keys, self.weights, self.paid

    def clear(self, runs: Any = ...) -> None:
        for array in (self.visits, self.merged, self.count, self.cursor):
            array[...] = 0

    def fade(self, factor: float) -> None:
        self.visits *= factor
        self.weights *= factor
        self.merged *= factor

    def _merge(self) -> None:
        """Make space: merge links of a few hundred, of the next ones if there is none to be merged among these."""
        worth = self._worth()
        for _ in range(0, int(self.count), CHUNK):
            first = self._row_start(int(self.cursor))
            last = self._row_end(min(first + CHUNK, int(self.count)) - 1)
            self.cursor[...] = last % int(self.count)
            if out := self._merge_within(slice(first, last), *worth):
                self.cursor[...] = max(0, last - out) % int(self.count)
                return

    def _row_start(self, i: int) -> int:
        """Where the links of the unit vector of link i begin."""
        return self._find(int(self.keys[i]) // self.places * self.places)[0]

    def _row_end(self, i: int) -> int:
        """Where they end."""
        return self._find((int(self.keys[i]) // self.places + 1) * self.places)[0]

    def _merge_within(self, part: slice, worth: Array, margins: Array) -> int:
        """Merge one link in eight into its neighbours in value, those first that could change what is best least."""
        n, d = part.stop - part.start, self.visits.shape[1]
        rows, to = np.divmod(self.keys[part].astype(np.int64), self.places)
        value = worth[rows // d, to]
        order = np.lexsort((value, rows))
        rows, value, weights = rows[order], value[order], self.weights[part][order].astype(np.float64)
        shares = weights / np.bincount(rows - rows[0], weights)[rows - rows[0]]
        gaps = np.where(rows[1:] == rows[:-1], np.diff(value), np.inf)
        below, above = np.append(np.inf, gaps), np.append(gaps, np.inf)
        loss = shares * np.minimum(below, above) / (margins.ravel()[rows] + SLIGHT * float(np.ptp(worth)) + TINY)
        out = apart(np.round(loss, DIGITS), max(1, n // FREE))
        lower, sums = to_lower(below[out], above[out]), np.stack((weights, weights * self.paid[part][order]))
        given = sums[:, out]
        np.add.at(sums.T, np.maximum(out - 1, 0), (lower * given).T)
        np.add.at(sums.T, np.minimum(out + 1, n - 1), ((1 - lower) * given).T)
        np.add.at(self.merged, rows[out] // d, self.visits.ravel()[rows[out]] * shares[out])
        self.weights[part][order], self.paid[part][order] = sums[0], sums[1] / sums[0]
        self._remove(part.start + order[out])
        return len(out)

    def _remove(self, which: IntArray) -> None:
        stays, n = np.ones(int(self.count), dtype=np.bool_), int(self.count) - len(which)
        stays[which] = False
        for array in self._lists:
            array[:n] = array[: len(stays)][stays]
        self.count[...] = n

    def _worth(self) -> tuple[Array, Array]:
        """V of each state and of an end after the steps of each regression, (G, S + 1), in the mean over its steps.

        And how far each unit vector would have to move to change which action is best, (G, d). Both without bonus.
        """
        G, ended = len(self.visits), self.exploration.terminal[: self.horizon.levels]
        q = self.w if G > 1 else self.w.mean(axis=0, keepdims=True)
        worth, margins = np.empty((G, self.places)), np.full(self.visits.shape, np.inf)
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

    def target(self, h: int) -> Array:
        self._ahead, self._span = (0.0, 0.0), 0.0
        z, g = super().target(h), self.horizon.group(h)
        self.errors[h] = self._span * min(float(self.merged[g]), float(self.visits[g].sum())) ** 0.5
        return z

    def _summed(self, h: int, V: Array, ended: float) -> Array:
        g, discount, values = self.horizon.group(h), self.horizon.discount, np.append(V, ended)
        z, total, squares = np.zeros(self.visits.shape[1]), 0.0, 0.0
        for cells, starts, to, weights, paid in self._links(g):
            visits, reached, heavy = self.visits[g, cells], values[to], np.add.reduceat(weights, starts)
            each = (reached, reached**2, paid, paid * reached)
            mean, square, pay, product = (np.add.reduceat(weights * x, starts) / heavy for x in each)
            z[cells] = visits * mean
            # rewards are exact in the mean; how they vary with the state that follows is rounded
            together = self.ridge.u[g, cells] @ mean + self.scale * visits @ (product - pay * mean)
            total += discount * float(visits @ mean)
            squares += discount * float(discount * visits @ square + 2 * together)
        self._ahead, self._span = (total, squares), float(np.ptp(values))
        return z

    def ahead(self, h: int) -> tuple[float, float]:
        return self._ahead

    def played(self, h: int, state: State, action: int) -> None:
        cell = self.cell(int(state), action)
        self.certificate += self.off(h, float(self.ridge.Lambda_inv[self.horizon.group(h), cell, 0, 0]))

    def _links(self, g: int) -> Iterator[tuple[IntArray, IntArray, IntArray, Array, Array]]:
        """The links of a regression, those of some unit vectors at a time: the vectors, where the links of each begin,
        and of all these links the states, weights and mean rewards."""
        d = self.visits.shape[1]
        first, stop = (self._find((g + i) * d * self.places)[0] for i in range(2))
        while first < stop:
            last = self._row_end(min(first + CHUNK, stop) - 1)
            rows, to = np.divmod(self.keys[first:last].astype(np.int64), self.places)
            starts = np.flatnonzero(np.diff(rows, prepend=-1))
            weights, paid = (x[first:last].astype(np.float64) for x in (self.weights, self.paid))
            yield rows[starts] - g * d, starts, to, weights, paid
            first = last

    # memory and files

    @property
    def nbytes(self) -> int:
        return super().nbytes + (0 if self.index is None else self.index.nbytes)

    def bytes_after(self, samples: int) -> int:
        return self.nbytes

    def load_state_dict(self, state: Mapping[str, np.ndarray]) -> None:
        super().load_state_dict(state)
        n, most = int(self.count), self.horizon.followed * self.visits.shape[1] * self.places
        keys, weights = self.keys[: max(n, 0)].astype(np.int64), self.weights[: max(n, 0)]
        ordered = 0 <= n <= self.M and 0 <= self.cursor <= n and (np.diff(keys) > 0).all() and (keys < most).all()
        if not ordered or not (weights > 0).all():
            raise InvalidData("'keys' and 'weights' of a saved agent must be transitions between its states.")
        held = (self.visits, weights, np.abs(self.paid), self.merged, self.errors, np.asarray(self.certificate))
        if not all(np.isfinite(x).all() and (x >= 0).all() for x in held):
            raise InvalidData("'visits', 'weights', 'paid' and 'merged' of a saved agent must be finite, and in range.")


def key_type(rows: int, S: int) -> Any:
    """The type of the keys of links from `rows` unit vectors to S states: four bytes where that is enough."""
    return np.uint32 if rows * (S + 1) < 1 << 32 else np.uint64


def link_bytes(rows: int, S: int) -> int:
    """Bytes of one link: its key, its weight and its reward."""
    return int(np.dtype(key_type(rows, S)).itemsize) + 4 + 2


def apart(loss: Array, most: int) -> IntArray:
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
