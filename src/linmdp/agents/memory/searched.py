"""Many actions on finite states: counts of what followed, and Q of all actions at once in place of a table."""

from __future__ import annotations

from functools import partial
from typing import Any, ClassVar

import numpy as np

from linmdp.agents.exploration.base import stacked
from linmdp.agents.memory.base import Parts, Storage
from linmdp.agents.memory.table import Counts
from linmdp.agents.ridge import matvec
from linmdp.features.bilinear import BilinearFeatures
from linmdp.types import Array, BoolArray, State


class Searched(Counts):
    """`Counts` of bilinear features: nothing is kept per action, and Q is that of `BilinearFeatures.scan`.

    Attributes
    ----------
    N, seen, V : as in `Counts`
    """

    _arrays: ClassVar = ("N", "V", "seen")
    _scratch: ClassVar = ()
    incremental = False

    def __init__(self, parts: Parts, features: BilinearFeatures) -> None:
        Storage.__init__(self, parts)
        self.bilinear, self.tables = features, not self.horizon.shared
        self.N = np.zeros((self.horizon.followed, features.d, features.S))
        self.seen = np.zeros((self.horizon.followed * self.exploration.adaptive, 2, features.S))
        self.V = np.zeros((self.horizon.H + 1 if self.tables else 1, features.S))
        self.forms, self._runs, self._product = np.zeros(0), None, matvec

    def sweep(self, h: int, v: Any) -> None:
        if self.tables or h > 0 or self.horizon.discounted:  # with one regression nobody asks for that of step 0
            vectors, metric = self._linear(h)
            self.V[h if self.tables else 0] = [
                self.bilinear.scan(state, vectors, metric, partial(self._score, h)).max()
                for state in range(self.bilinear.S)
            ]

    def _score(self, h: int, products: Array, forms: Array) -> Array:
        q: Array = self.exploration.q(h, products, forms)
        return q

    def _linear(self, h: int) -> tuple[Array, Array]:
        explore = self.exploration
        return stacked(explore.vectors(h)), explore.metric(self.horizon.group(h))

    def q_values(self, h: int, state: State) -> Array:
        return self.bilinear.scan(state, *self._linear(h), partial(self._score, h))

    def best_actions(self, h: int, state: State) -> BoolArray:
        best: BoolArray = self.exploration.best(self.q_values(h, state))
        return best

    def best_table(self, h: int) -> BoolArray:
        return np.stack([self.best_actions(h, state) for state in range(self.bilinear.S)], axis=1)
