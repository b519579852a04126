"""Many actions on finite states: counts of what followed, and a search for the best action in place of a table."""

from __future__ import annotations

from functools import partial
from typing import Any, ClassVar

import numpy as np

from linmdp.agents.exploration.base import stacked
from linmdp.agents.memory.base import Parts, Storage
from linmdp.agents.memory.table import Counts
from linmdp.agents.ridge import matvec
from linmdp.features.bilinear import BilinearFeatures, Found
from linmdp.types import Array, BoolArray, IntArray, State


class Searched(Counts):
    """`Counts` of bilinear features: nothing is kept per action, and Q is found by `BilinearFeatures.best`.

    Attributes
    ----------
    N, seen, V : as in `Counts`
    searches : (2,) how many there were for an action, and the sum of the shares of actions that they looked at
    """

    _arrays: ClassVar = ("N", "V", "seen", "searches")
    _scratch: ClassVar = ()
    incremental = False

    def __init__(self, parts: Parts, features: BilinearFeatures) -> None:
        Storage.__init__(self, parts)
        self.bilinear, self.tables = features, not self.horizon.shared
        self.N = np.zeros((self.horizon.followed, features.d, features.S))
        self.seen = np.zeros((self.horizon.followed * self.exploration.adaptive, 2, features.S))
        self.V = np.zeros((self.horizon.H + 1 if self.tables else 1, features.S))
        self.searches = np.zeros(2)
        self.forms, self._runs, self._product = np.zeros(0), None, matvec

    def sweep(self, h: int, v: Any) -> None:
        if self.tables or h > 0 or self.horizon.discounted:  # with one regression nobody asks for that of step 0
            vectors, metric = self._linear(h)
            self.V[h if self.tables else 0] = [
                self.bilinear.largest(state, vectors, metric, partial(self._score, h))
                for state in range(self.bilinear.S)
            ]

    def found(self, h: int, state: State) -> Found:
        """The best actions of a state at step h."""
        found = self.bilinear.best(state, *self._linear(h), partial(self._score, h), self.exploration.tie)
        self.searches += 1.0, found.opened
        return found

    def _score(self, h: int, products: Array, forms: Array) -> Array:
        q: Array = self.exploration.q(h, products, forms)
        return q

    def _linear(self, h: int) -> tuple[Array, Array]:
        explore = self.exploration
        return stacked(explore.vectors(h)), explore.metric(self.horizon.group(h))

    def tied(self, h: int, state: State) -> IntArray:
        return self.found(h, state).actions

    def q_values(self, h: int, state: State) -> Array:
        return self.bilinear.scan(state, *self._linear(h), partial(self._score, h))

    def best_actions(self, h: int, state: State) -> BoolArray:
        best = np.zeros(self.bilinear.A, dtype=np.bool_)
        best[self.tied(h, state)] = True
        return best

    def best_table(self, h: int) -> BoolArray:
        return np.stack([self.best_actions(h, state) for state in range(self.bilinear.S)], axis=1)

    def diagnostics(self) -> dict[str, float]:
        return {"actions_scored": float(self.searches[1] / max(self.searches[0], 1.0))}
