"""States without a bound, in bounded memory: those that come most are kept apart, and all others are one state.

Exact while all states and links fit. After that the states that came least join the rest: their samples count as those
of the rest, and a transition to one of them leads to it. No sample is dropped. See docs/bounded-memory.md.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from linmdp.agents.storage.base import Parts, Sample
from linmdp.agents.storage.sparse import NAMED, Links, Sparse, links_bytes
from linmdp.features.base import FeatureMap
from linmdp.features.unit import CODES
from linmdp.types import Array, IntArray, State

REST = CODES
"""What the rest is called: no state has this name."""

JOINING = 8
"""One state in so many joins the rest when there are too many."""

FEWEST = 4
"""States, at least: the rest, and both ends of a transition while another state joins."""


class Frequent(Sparse):
    """At most M links, and a state for every unit vector of them. A state that has joined the rest is new if it comes.

    Attributes
    ----------
    most : the most states, with the rest
    """

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
        joining = numbers[np.argsort(came, kind="stable")[: max(2, len(numbers) // JOINING)]]
        for sums in (self.visits, self.ridge.u):
            of_states = sums.reshape(G, -1, self.A)
            of_states[:, rest] += of_states[:, joining].sum(axis=1)
            of_states[:, joining] = 0.0
        self._relink(joining, rest)
        self._vacate(joining)

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

    def _vacate(self, joining: IntArray) -> None:
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

    def bytes_after(self, samples: int) -> int:
        full: int = links_bytes(self.M) + self.most * (8 * self.visits.shape[0] * self.A + NAMED)
        return min(super().bytes_after(samples), full)

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
