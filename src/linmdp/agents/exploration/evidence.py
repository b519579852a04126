"""beta="auto" with lam="auto": how wide and how smooth, both from the data. See docs/auto.md.

What is regressed is the shortfall W = cap - Q, written here as Q - cap <= 0: rewards are counted from the best that a
step can pay (`offset`), a terminal state is worth -cap, and zero weights mean full optimism, whatever the sign and the
offset of the rewards. After each regression the noise of its targets is

    sigma_h^2 = (RSS_h + NU yy_h / n) / (max(n - dof, 0) + NU),   RSS_h = yy_h - w'z - lam |w|^2,   yy_h = sum y_i^2,

the width is beta_h = WIDTH / sqrt(H) sigma_h, and lam of the next planning is the evidence for it,
sum_h sigma_h^2 dof / sum_h |w_h|^2, within bounds.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from linmdp.agents.base import tie_tolerance
from linmdp.agents.exploration.bonus import Bonus
from linmdp.agents.horizon import Horizon
from linmdp.features.base import FeatureMap
from linmdp.features.tabular import TableFeatures
from linmdp.types import Array

if TYPE_CHECKING:
    from linmdp.agents.storage.base import Sample

WIDTH = 3.0
NU = 0.01
"""Weight, in samples, of the belief that all of a target is noise."""

FIRST_LAM = 1e-4
UNIT_FLOOR = 0.03
"""Least lam for unit vectors, where it counts imagined perfect visits; less where the task looks deterministic."""

TABLE_FLOOR, SMOOTH_FLOOR = 0.1, 0.01
"""Least lam for other tables, and for features of continuous states, in units of the mean eigenvalue of phi phi'."""

SURPRISE = 10.0
"""The floor of unit vectors is full where this share, inverted, of repeated visits leads to another state."""


class Evidence(Bonus):
    """A bonus whose width, and the ridge parameter, follow from the data.

    Attributes
    ----------
    lam : of the next planning
    ended : (G, d) sum of phi over terminal samples
    sums : (G, 5) samples, sum of squared rewards, terminal samples, their rewards, sum of |phi|^2
    last : (d,) the state that each unit vector led to last; -1 before the first visit. Empty for other features
    repeats, surprises : visits of unit vectors seen before, and those that led elsewhere than the last one, both + 1
    """

    adaptive: ClassVar = True
    batched: ClassVar = False
    _arrays: ClassVar = ("ended", "sums", "last", "beta", "_lam")
    _counters: ClassVar = ("repeats", "surprises")
    _derived: ClassVar = ("caps", "floors", "terminal", "dof", "_gathered")

    def __init__(self, horizon: Horizon, features: FeatureMap, caps: Array, lows: Array) -> None:
        super().__init__(horizon, np.zeros(horizon.H), 0.0)
        G, d, H = horizon.groups, features.d, horizon.H
        following = caps[0] if horizon.discounted else (caps[1] if H > 1 else 0.0)
        self.offset = float(caps[0] - horizon.discount * following)
        self.floors = np.minimum(lows - caps, 0.0)
        self.terminal = -np.append(caps[1:], caps[0] if horizon.discounted else 0.0)
        self.d, self.tie = d, tie_tolerance(caps)
        self.table, self.unit = isinstance(features, TableFeatures), _unit(features)
        self.ended, self.sums = np.zeros((G, d)), np.zeros((G, 5))
        self.last, self.repeats, self.surprises = np.full(d * self.unit, -1), 1, 1
        self._lam, self._gathered, self.dof = np.full((), FIRST_LAM), np.zeros(2), np.zeros(G)

    @property
    def lam(self) -> float:
        """That of the next planning."""
        return float(self._lam)

    def seen(self, g: int, sample: Sample) -> None:
        phi, reward, weight = sample.phi, sample.reward, sample.weight
        self.sums[g] += weight * np.array((1.0, reward * reward, 0.0, 0.0, phi @ phi))
        if sample.terminated:
            self.ended[g] += weight * phi
            self.sums[g, 2:4] += weight, weight * reward
        if self.unit:
            i, to = int(phi.argmax()), self.d if sample.terminated else int(sample.next_state)
            self.repeats += int(self.last[i] >= 0)
            self.surprises += int(0 <= self.last[i] != to)
            self.last[i] = to

    def fade(self, factor: float) -> None:
        self.ended *= factor
        self.sums *= factor

    def forget(self) -> None:
        self.ended[:], self.sums[:], self.last[:] = 0.0, 0.0, -1

    def raised(self, h: int, products: Any, forms: Any) -> Any:
        q = super().raised(h, products, forms)
        np.maximum(q, self.floors[h], out=q)
        return q

    def begin(self) -> None:
        inverses = self.ridge.Lambda_inv
        self.dof = self.d - float(self.ridge.lam) * np.trace(inverses, axis1=1, axis2=2)
        self._gathered[:] = 0.0

    def ended_target(self, h: int) -> Any:
        return self.terminal[h] * self.ended[self.horizon.group(h)]

    def fitted(self, h: int, target: Array, squares: float) -> None:
        """The regression of step h has just been solved: w = Lambda^-1 target.

        `squares`: sum of (discount V)^2 + 2 r discount V over the samples that a state follows.
        """
        g, discount = self.horizon.group(h), self.horizon.discount
        (n, rr, ends, ended, _), w = self.sums[g], self.w[self.horizon.level(h)]
        value = discount * self.terminal[h]
        yy = rr + squares + ends * value * value + 2 * ended * value
        ww = float(w @ w)
        rss = max(0.0, yy - float(w @ target) - float(self.ridge.lam) * ww)
        variance = (rss + NU * yy / max(n, 1.0)) / (max(n - self.dof[g], 0.0) + NU)
        self.beta[self.horizon.level(h)] = WIDTH / math.sqrt(self.horizon.H) * math.sqrt(variance)
        if self.horizon.discounted:  # of the last backup alone
            self._gathered[:] = 0.0
        self._gathered += (variance * self.dof[g], ww)

    def end(self) -> None:
        if self.horizon.discounted:
            self.beta[:] = self.beta[0]
        n = self.sums[:, 0].sum()
        if n:
            trace = self.sums[:, 4].sum() / n
            floor = self._floor(trace)
            self._lam[...] = min(max(self._gathered[0] / max(self._gathered[1], 1e-12), floor), max(trace, floor))

    def _floor(self, trace: float) -> float:
        if self.unit:
            return UNIT_FLOOR * min(1.0, SURPRISE * self.surprises / self.repeats)
        return (TABLE_FLOOR if self.table else SMOOTH_FLOOR) * trace / self.d


def _unit(features: FeatureMap) -> bool:
    """Whether every phi(s, a) is a unit vector."""
    if not isinstance(features, TableFeatures):
        return False
    return bool(((features.columns == 0) | (features.columns == 1)).all() and (features.columns.sum(0) == 1).all())
