"""Unit vectors: which state followed which of them, and how often. Exact, in memory for what was seen and no more.

Lambda is diagonal, one number for each unit vector, and a sample is a link from one of them to a state.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np

from linmdp.agents.afresh import with_columns
from linmdp.agents.backend import zeros
from linmdp.agents.base import StateDict, saved_array
from linmdp.agents.memory.base import Parts, Sample, Storage
from linmdp.errors import InvalidData
from linmdp.features.base import FeatureMap
from linmdp.types import Array, BoolArray, IntArray, State

FIRST_LINKS = 64
END = (1 << 32) - 1
"""In place of the number of a state: the episode ended there."""

NAMED = 200
"""Bytes that the name of a state and its number take, at most."""

SCATTER = 0x9E3779B97F4A7C15
"""An odd number: its multiples spread keys over a table."""


class Links:
    """How often row i led to state j, and the rewards on the way: a table of those pairs that came up.

    Attributes
    ----------
    keys : (size,) i * 2^32 + j, or -1; a pair lies at the first free place after the one that its key points to
    sums : (2, size) times (or the sum of weights), and the sum of rewards
    """

    def __init__(self, size: int = FIRST_LINKS) -> None:
        self.keys, self.sums, self.count = zeros(size, np.int64, fill=-1), zeros((2, size)), 0

    @classmethod
    def of(cls, keys: IntArray, sums: Array, size: int = FIRST_LINKS) -> Links:
        """A table of these, (n,) and (2, n), with that many places at least."""
        links = cls(max(size, table_size(len(keys))))
        for n in range(len(keys)):
            i = links.place(int(keys[n]))
            links.keys[i], links.sums[:, i] = keys[n], sums[:, n]
        links.count = len(keys)
        return links

    @property
    def nbytes(self) -> int:
        return self.keys.nbytes + self.sums.nbytes

    def place(self, key: int) -> int:
        """Where a key lies, or belongs."""
        size = len(self.keys)
        i = (key * SCATTER & 0xFFFFFFFFFFFFFFFF) >> 32 & (size - 1)
        while int(self.keys[i]) not in (-1, key):
            i = (i + 1) & (size - 1)
        return i

    def has(self, row: int, to: int) -> bool:
        """Whether the pair came up."""
        return bool(self.keys[self.place(row << 32 | to)] >= 0)

    def add(self, row: int, to: int, weight: float, reward: float) -> None:
        """One more time; the table doubles before it is two thirds full."""
        i = self.place(key := row << 32 | to)
        if self.keys[i] < 0:
            if 3 * (self.count + 1) > 2 * len(self.keys):
                self._double()
                i = self.place(key)
            self.keys[i] = key
            self.count += 1
        self.sums[:, i] += weight, weight * reward

    def _double(self) -> None:
        there = np.flatnonzero(self.keys >= 0)
        wider = Links.of(self.keys[there], self.sums[:, there], 2 * len(self.keys))
        self.keys, self.sums = wider.keys, wider.sums

    def entries(self) -> tuple[IntArray, IntArray, Array]:
        """Rows, states and sums of all pairs, (n,), (n,) and (2, n)."""
        there = np.flatnonzero(self.keys >= 0)
        there = there[self.keys[there].argsort()]  # an order that no history of the table decides: sums to the last bit
        keys = self.keys[there]
        return keys >> 32, keys & END, self.sums[:, there]


class Sparse(Storage):
    """A link for each different transition.

    Where the states have no bound, each is numbered when it is first seen, and gets A unit vectors of its own.

    Attributes
    ----------
    visits : (G, d) how often each unit vector came; d grows where the states have no bound
    names : (n,) what the environment calls the states seen, where they have no bound
    links : of the regressions that lead to a next step; row cell * G + g is that of unit vector `cell` in regression g
    """

    _arrays: ClassVar[tuple[str, ...]] = ("visits",)
    _saved_within: ClassVar = {"visits": (0, np.inf)}
    _scratch: ClassVar = ("_V",)
    _derived: ClassVar[tuple[str, ...]] = ("index",)
    keeps_samples = incremental = False
    compact = True
    most = END
    """States that are numbered, at most."""
    M: int | None = None
    """Links, at most."""

    def __init__(self, parts: Parts, features: FeatureMap, index: IntArray | None) -> None:
        super().__init__(parts)
        self.index, self.A, self.S = index, features.A, getattr(features, "S", None) or 0
        self.visits, self.links = zeros(self.ridge.u.shape), Links()
        self.names, self._number = np.zeros(0, dtype=np.int64), dict[int, int]()
        self._split: list[tuple[IntArray, IntArray, Array]] = []  # the links of each regression, during a planning
        self._V: Array = np.zeros(0)

    # states and their unit vectors

    def number(self, state: State) -> int:
        """The number of a state; -1 where it was not seen before and states have no bound."""
        return int(state) if self.S else self._number.get(int(state), -1)

    def _numbered(self, state: State) -> int:
        i = self.number(state)
        if i < 0:
            i = self._number[int(state)] = len(self._number)
            if len(self._number) > len(self.names):
                size = min(max(16, 2 * len(self.names)), self.most)
                self.names = np.append(self.names, np.full(size - len(self.names), -1))
                self._make_space()
            self.names[i] = int(state)
        return i

    def _make_space(self) -> None:
        d = len(self.names) * self.A
        self.visits = with_columns(self.visits, d, 0.0)
        ridge: Any = self.ridge  # in blocks of one number
        ridge.resize(d)
        self.w = with_columns(self.w, d, 0.0)
        self.exploration.bind(self.ridge, self.w)

    def cells(self, i: int) -> Any:
        """The unit vectors of state number i, (A,)."""
        return slice(i * self.A, (i + 1) * self.A) if self.index is None else self.index[i]

    def cell(self, i: int, action: int) -> int:
        """That of an action."""
        return i * self.A + action if self.index is None else int(self.index[i, action])

    def of_states(self, values: Array) -> Array:
        """One number for each unit vector, (d,), as one for each state and action, (S, A)."""
        return values.reshape(-1, self.A) if self.index is None else values[self.index]

    # samples

    def prepare(self, sample: Sample) -> None:
        i = self._numbered(sample.state)
        sample.to = END if sample.terminated else self._numbered(sample.next_state)
        sample.cell = self.cell(i, sample.action)

    def add(self, h: int, sample: Sample) -> None:
        g = self.horizon.group(h)
        self._count(g, sample)
        if g < self.horizon.followed:
            self.links.add(sample.cell * len(self.visits) + g, sample.to, sample.weight, sample.reward)

    def _count(self, g: int, sample: Sample) -> None:
        self.visits[g, sample.cell] += sample.weight
        self.ridge.u[g, sample.cell] += sample.weight * sample.reward

    def clear(self, runs: Any = ...) -> None:
        self.visits[:] = 0.0
        self.links = Links()

    def fade(self, factor: float) -> None:
        self.visits *= factor
        self.links.sums *= factor

    def gram(self, g: int) -> Array:
        return self.visits[g, :, None, None]

    # planning

    def begin(self) -> None:
        rows, to, sums = self.links.entries()
        G = len(self.visits)
        groups = [slice(None)] if G == 1 else [rows % G == g for g in range(G)]
        self._split = [(rows[one] // G, to[one], sums[:, one]) for one in groups]

    def forget(self) -> None:
        self._split, self._V = [], np.zeros(0)

    def target(self, h: int) -> Array:
        return self._summed(h, self._following(h))

    def greedy_target(self, h: int, w: Array) -> Array:
        if not self._split:
            self.begin()
        cap = self.exploration.caps[self.horizon.level(h + 1)]
        return self._summed(h, np.append(np.minimum(self.of_states(w), cap).max(axis=-1), 0.0))

    def _following(self, h: int) -> Array:
        """What every state is worth after step h, and then an end, (S + 1,)."""
        if not self.horizon.leads_on(h):
            return np.zeros(1)
        after = 0 if self.horizon.discounted else h + 1
        q = self.exploration.q(after, self._products(after), self._forms(after))
        return np.append(self.exploration.largest(q, axis=-1), self.exploration.terminal[h])

    def _summed(self, h: int, values: Array) -> Array:
        """sum phi V(s') over the samples of step h, from V of every state and of an end."""
        cells, to, (times, _) = self._split[self.horizon.group(h)]
        self._V = values[np.minimum(to, len(values) - 1)]
        total: Array = np.bincount(cells, times * self._V, self.visits.shape[1]).astype(np.float64, copy=False)
        return total

    def ahead(self, h: int) -> tuple[float, float]:
        _, _, (times, rewards) = self._split[self.horizon.group(h)]
        V = self.horizon.discount * self._V
        return float(times @ V), float(times @ (V * V) + 2 * rewards @ V)

    def _products(self, h: int) -> Array:
        return np.stack([self.of_states(vector) for vector in self.exploration.vectors(h)])

    def _forms(self, h: int) -> Array:
        return self.of_states(self.ridge.Lambda_inv[self.horizon.group(h), :, 0, 0])

    # acting

    def q_values(self, h: int, state: State) -> Array:
        explore, i, A = self.exploration, self.number(state), self.A
        products, forms = np.zeros((explore.per_step, A)), np.full(A, 1 / float(self.ridge.lam))
        if i >= 0:
            cells = self.cells(i)
            products = np.stack([vector[cells] for vector in explore.vectors(h)])
            forms = self.ridge.Lambda_inv[self.horizon.group(h), cells, 0, 0]
        q: Array = explore.q(h, products, forms)
        return q

    def best_table(self, h: int) -> BoolArray:
        best: BoolArray = self.exploration.best(self.exploration.q(h, self._products(h), self._forms(h)), axis=-1)
        return np.ascontiguousarray(best.T)

    # memory and files

    @property
    def nbytes(self) -> int:
        names = self.names.nbytes + (0 if self.S else sys.getsizeof(self._number) + 64 * len(self._number))
        return super().nbytes + self.links.nbytes + names

    def most_links(self, samples: int) -> int:
        """A different transition in every sample, up to each of them once."""
        most = samples * len(self.visits)
        most = min(most, self.visits.size * (self.S + 1)) if self.S else most
        return most if self.M is None else min(most, self.M)

    def most_states(self, samples: int) -> int:
        """All or, where each is numbered when it is seen, as many as arrays that double have space for."""
        return self.S or min(self.most, 2 * (samples * len(self.visits) + 1))

    def states_bytes(self, states: int) -> int:
        """Of the names of states without a bound, and of all weights of their unit vectors."""
        return 0 if self.S else states * (NAMED + 8 * self.A * (3 * len(self.visits) + len(self.w)))

    def bytes_after(self, samples: int) -> int:
        states = self.states_bytes(self.most_states(samples)) - self.states_bytes(len(self.names))
        return self.nbytes + states + links_bytes(self.most_links(samples)) - links_bytes(self.links.count)

    def working_bytes(self, samples: int) -> int:
        states, links, G = self.most_states(samples), self.most_links(samples), len(self.visits)
        cells = max(self.A * states, self.visits.shape[1])
        grown = 0 if self.S else 8 * G * cells  # beside the old array while a new one is filled
        planning = grown + 8 * (self.A * states + 12 * links + 8 * cells + 2 * states)
        if self.M is None:
            return int(planning)
        # two tables and all links, while some of them go
        leaving = links_bytes(links) + 8 * (21 * links + 4 * G * cells + (G + 3 * self.A) * (states + 1))
        return int(max(planning, leaving))

    def state_dict(self) -> StateDict:
        rows, to, sums = self.links.entries()
        return super().state_dict() | {"names": self.names.copy(), "links": rows << 32 | to, "sums": sums.copy()}

    def load_state_dict(self, state: Mapping[str, np.ndarray]) -> None:
        keys, sums = (saved_array(state, name) for name in ("links", "sums"))
        if not self.S:
            self.names = saved_array(state, "names").astype(np.int64)
            self._number = {name: i for i, name in enumerate(self.names.tolist()) if name >= 0}
            self._make_space()
        super().load_state_dict(state)
        G, d = self.visits.shape
        states = self.S or len(self.names)
        known = (keys >> 32 < G * d) & ((keys & END < states) | (keys & END == END)) if keys.ndim == 1 else keys < 0
        known &= len(np.unique(keys)) == len(keys)
        if keys.dtype != np.int64 or sums.shape != (2, len(keys)) or not known.all() or (keys < 0).any():
            raise InvalidData("'links' of a saved agent must be transitions between its states.")
        if not (np.isfinite(self.visits).all() and np.isfinite(sums).all()):
            raise InvalidData("'visits' and 'sums' of a saved agent must be finite.")
        self.links = Links.of(keys, sums)


def table_size(count: int) -> int:
    """Places of a table of so many links."""
    size = FIRST_LINKS
    while 3 * count > 2 * size:
        size *= 2
    return size


def links_bytes(count: int) -> int:
    """Bytes of a table of so many links."""
    return 24 * table_size(count)
