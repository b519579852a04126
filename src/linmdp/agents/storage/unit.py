"""Unit vectors: Lambda is diagonal, and a sample is a link from one of them to a state; storages vary in the links."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

import numpy as np

from linmdp.agents.storage.base import Parts, Storage
from linmdp.features.base import FeatureMap
from linmdp.types import Array, BoolArray, IntArray, State


class UnitStorage(Storage):
    """Lambda is diagonal: one number for each unit vector.

    Attributes
    ----------
    visits : (G, d) how often each unit vector came
    """

    keeps_samples = incremental = False
    compact = own_ends = True

    def __init__(self, parts: Parts, features: FeatureMap, index: IntArray | None) -> None:
        super().__init__(parts)
        self.index, self.A, self.S = index, features.A, getattr(features, "S", None) or 0
        self.visits = np.zeros(self.ridge.u.shape)

    def number(self, state: State) -> int:
        """The number of a state; -1 where it has none yet."""
        return int(state)

    def cells(self, i: int) -> Any:
        """The unit vectors of state number i, (A,)."""
        return slice(i * self.A, (i + 1) * self.A) if self.index is None else self.index[i]

    def cell(self, i: int, action: int) -> int:
        """That of an action."""
        return i * self.A + action if self.index is None else int(self.index[i, action])

    def of_states(self, values: Array) -> Array:
        """One number for each unit vector, (d,), as one for each state and action, (S, A)."""
        return values.reshape(-1, self.A) if self.index is None else values[self.index]

    def gram(self, g: int) -> Array:
        return self.visits[g, :, None, None]

    # planning

    def end(self, rng: np.random.Generator | None) -> None:
        self.forget()

    def target(self, h: int) -> Array:
        if self.horizon.leads_on(h):
            after = 0 if self.horizon.discounted else h + 1
            q = self.exploration.q(after, self._products(after), self._forms(after))
            return self._summed(h, self.exploration.largest(q, axis=-1), float(self.exploration.terminal[h]))
        return np.zeros(self.visits.shape[1])

    def greedy_target(self, h: int, w: Array) -> Array:
        cap = self.exploration.caps[self.horizon.level(h + 1)]
        return self._summed(h, np.minimum(self.of_states(w), cap).max(axis=-1), 0.0)

    @abstractmethod
    def _summed(self, h: int, V: Array, ended: float) -> Array:
        """sum phi V(s') over the samples of step h, from V of every state and the value of an end."""

    def _products(self, h: int) -> Array:
        return np.stack([self.of_states(vector) for vector in self.exploration.vectors(h)])

    def _forms(self, h: int) -> Array:
        return self.of_states(self.ridge.Lambda_inv[self.horizon.group(h), :, 0, 0])

    # acting

    def q_values(self, h: int, state: State) -> Array:
        explore, i, A = self.exploration, self.number(state), self.A
        products, forms = np.zeros((explore.width, A)), np.full(A, 1 / float(self.ridge.lam))
        if i >= 0:
            cells = self.cells(i)
            products = np.stack([vector[cells] for vector in explore.vectors(h)])
            forms = self.ridge.Lambda_inv[self.horizon.group(h), cells, 0, 0]
        q: Array = explore.q(h, products, forms)
        return q

    def best_table(self, h: int) -> BoolArray:
        best: BoolArray = self.exploration.best(self.exploration.q(h, self._products(h), self._forms(h)), axis=-1)
        return np.ascontiguousarray(best.T)
