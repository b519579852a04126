"""Merged transitions where rewards take many values: the best plan so far goes on acting until another earns more."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from linmdp.agents.base import StateDict, prefixed, under
from linmdp.agents.incumbent import BEST, Incumbent
from linmdp.agents.storage.base import Parts
from linmdp.agents.storage.merged import Merged
from linmdp.errors import InvalidData
from linmdp.features.base import FeatureMap
from linmdp.types import Array, State


class Improving(Merged):
    """`Merged` with one discounted Q, and the plan whose episodes earned most: see `Incumbent`."""

    def __init__(self, parts: Parts, features: FeatureMap, M: int, state_bytes: int) -> None:
        super().__init__(parts, features, M, state_bytes)
        self.incumbent = Incumbent(self.w.shape[-1], 0)

    def end(self, rng: np.random.Generator | None) -> None:
        super().end(rng)
        self.incumbent.planned()

    def episode_over(self, earned: float) -> None:
        self.incumbent.see(earned, self.w[0], float(self.exploration.beta[0]))

    def q_values(self, h: int, state: State) -> Array:
        if self.incumbent.acting != BEST:
            return super().q_values(h, state)
        newest = self.w[0].copy()
        self.w[0] = self.incumbent.w
        q = super().q_values(h, state)
        self.w[0] = newest
        return q

    @property
    def nbytes(self) -> int:
        return super().nbytes + self.incumbent.nbytes

    def state_dict(self) -> StateDict:
        return super().state_dict() | prefixed("incumbent", self.incumbent.state_dict())

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        super().load_state_dict(state)
        self.incumbent.load_state_dict(under("incumbent", state))
        if not (np.isfinite(self.incumbent.w).all() and np.isfinite(self.incumbent.episodes).all()):
            raise InvalidData("The best plan of a saved agent must be finite.")
