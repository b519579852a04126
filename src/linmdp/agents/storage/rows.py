"""Storages that make the features they need from states, and whose Lambda may come in a block for each action."""

from __future__ import annotations

from typing import Any

import numpy as np

from linmdp.agents.exploration.base import stacked
from linmdp.agents.ridge import quadratic_forms
from linmdp.agents.storage.base import Parts, Sample, Storage
from linmdp.errors import InvalidData
from linmdp.features.base import CheckedFeatures, FeatureMap
from linmdp.features.blocks import BlockFeatures
from linmdp.types import Array, BoolArray, State, all_finite


class RowStorage(Storage):
    """Rows of features: psi(s), (p,), where phi(s, a) is psi(s) in the block of action a, else phi(s, .), (A, d)."""

    keeps_samples = incremental = False
    compact = own_ends = True

    def __init__(self, parts: Parts, features: FeatureMap) -> None:
        super().__init__(parts)
        self.features, self.blocks, self.A = features, block_features(features), features.A
        self._acted: tuple[Any, Array] = None, np.zeros(0)  # the last state that Q was asked for, and its row

    def rows(self, states: Any) -> Array:
        """What is computed once for each state, (n, p) or (n, A, d)."""
        return self.blocks.psi(states) if self.blocks else self.features.batch(states)

    def products(self, rows: Array, vector: Array) -> Array:
        """phi(s, a)'x for every row and action, (n, A)."""
        return rows @ vector.reshape(self.A, -1).T if self.blocks else rows @ vector

    def inverse_of(self, g: int) -> Array:
        """Lambda_g^-1 as `forms` takes it, (blocks, p, p)."""
        found: Array = self.ridge.Lambda_inv[g]
        return found

    def forms(self, rows: Array, inverse: Array) -> Array:
        """phi(s, a)' Lambda^-1 phi(s, a) for every row and action, (n, A)."""
        if not self.blocks:
            return quadratic_forms(rows, inverse[0])
        if len(rows) == 1:  # one state to act in: one product for all actions
            return np.asarray(np.abs(inverse @ rows[0] @ rows[0]))[None]
        found = np.empty((len(rows), self.A))
        for a, block in enumerate(inverse):
            np.einsum("np,np->n", rows @ block, rows, out=found[:, a])
        np.abs(found, out=found)
        return found

    def prepare(self, sample: Sample) -> None:
        acted, rows = self._acted
        if acted is not sample.state:
            rows = self.rows(np.asarray(sample.state)[None])
        rows = rows[0]
        sample.phi = rows if self.blocks else rows[sample.action]
        if not all_finite(sample.phi):
            raise InvalidData(f"Features of state {sample.state!r} must be finite.")

    def q_of(self, h: int, rows: Array) -> Array:
        """Q_h of every row and action, (n, A)."""
        explore = self.exploration
        products = stacked([self.products(rows, vector) for vector in explore.vectors(h)])
        inverse = self.inverse_of(self.horizon.group(h))
        q: Array = explore.q(h, products, self.forms(rows, inverse) if explore.keeps_forms else np.zeros(0))
        return q

    def q_values(self, h: int, state: State) -> Array:
        rows = self.rows(np.asarray(state)[None])
        self._acted = state, rows
        q: Array = self.q_of(h, rows)[0]
        return q

    def best_table(self, h: int) -> BoolArray:
        S = getattr(self.features, "S", None)
        if S is None:
            raise InvalidData("A policy for all states needs finite states.")
        best: BoolArray = self.exploration.best(self.q_of(h, self.rows(np.arange(S))), axis=-1)
        return np.ascontiguousarray(best.T)


def block_features(features: FeatureMap) -> BlockFeatures | None:
    """The map itself, where phi(s, a) is psi(s) in the block of action a."""
    inner = features.inner if isinstance(features, CheckedFeatures) else features
    return inner if isinstance(inner, BlockFeatures) else None


def group_blocks(features: FeatureMap) -> int:
    """Blocks of Lambda."""
    return features.A if block_features(features) else 1
