"""Ridge regression on groups of cells, stage by stage: each group fits what the coarser ones have left."""

from __future__ import annotations

from itertools import pairwise
from typing import Any, ClassVar, NamedTuple

import numpy as np

from linmdp.agents.base import Component
from linmdp.agents.ridge import Rebuild
from linmdp.features.groups import GroupFeatures
from linmdp.types import Array, BoolArray, IntArray


class Rows(NamedTuple):
    """The samples of a planning, n of them, and the table of weights with its R rows in the order of their groups.

    cells : (n, G) rows of that table; classes : (n,) of the actions; rewards : (n,)
    visits : (R, 1 + C) how often each weight is asked for; first : (G + 1,) where each group begins
    place : (R,) where each row of the table as it is kept lies in this one
    """

    cells: IntArray
    classes: IntArray
    rewards: Array
    visits: Array
    first: IntArray
    place: IntArray


class Stages(Component):
    """w of phi with several ones, with no matrix: block Gauss-Seidel on the ridge regression, from w = 0.

    Within a group every cell stands alone, so that its part of Lambda is diagonal. One pass, from the coarsest group to
    the finest, is what a hierarchy of means does: a cell says how it differs from what the coarser ones expect, shrunk
    by lam. Passes without end would be the ridge regression itself. The interface is that of `Ridge`.

    Attributes
    ----------
    lam : () the ridge parameter
    behind, empty : (1,) as in `Ridge`
    rows : what the storage holds, during a planning
    """

    _arrays: ClassVar = ("lam", "behind", "empty")
    exact, incremental, stale, absorbed = True, False, False, 0

    def __init__(self, features: GroupFeatures, lam: float) -> None:
        self.features, self.lam = features, np.full((), lam)
        self.behind, self.empty = np.zeros(1, dtype=np.bool_), np.zeros(1, dtype=np.bool_)
        self.rows: Rows | None = None

    def drop(self, mask: BoolArray) -> None:
        """The storage has forgotten its samples. The old Q acts on."""
        self.behind |= mask
        self.empty |= mask

    def restart(self, mask: BoolArray) -> None:
        """Let the next Q start from nothing."""
        self.empty &= ~mask

    def add(self, g: int, phi: Any, reward: Any) -> None:
        """One sample, which the storage holds."""
        self.behind[g], self.empty[g] = True, False

    def defer(self, mask: Any, where: BoolArray) -> None:
        """Nothing waits."""

    def change_lam(self, lam: Any, runs: Any = ...) -> None:
        """Another ridge parameter, from the next regression on."""
        self.lam[...] = lam

    def refactor(self, mask: BoolArray, rebuild: Rebuild) -> None:
        """There is no inverse to be made."""
        self.behind &= ~mask
        self.empty &= ~mask

    def solve(self, g: int, z: Any) -> Array:
        """The weights for targets rewards + z (n,), (d,)."""
        assert self.rows is not None
        features, (cells, classes, rewards, visits, first, place) = self.features, self.rows
        scale, lam, residual = features.scale, float(self.lam), rewards + z
        w = np.zeros(visits.shape)
        for _ in range(features.passes):
            for g, (low, high) in enumerate(pairwise(first.tolist())):
                for column, which in ((slice(0, 1), None), (slice(1, None), classes)):
                    part, times = w[low:high, column], visits[low:high, column]
                    at = cells[:, g] - low if which is None else (cells[:, g] - low) * features.C + which
                    sums = scale * np.bincount(at, residual, part.size).reshape(part.shape) + scale**2 * times * part
                    new = sums / (scale**2 * times + lam)
                    residual -= scale * (new - part).ravel()[at]
                    part[:] = new
        return w[place].ravel()

    def resize(self, d: int) -> None:
        """Nothing here has a number for each weight."""

    def drift(self, rebuild: Rebuild) -> Array:
        """There is no inverse that could drift."""
        return np.zeros(())
