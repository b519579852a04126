"""beta="auto" with lam="auto": how wide and how smooth, both from the data. See docs/auto.md.

What is regressed is the shortfall W = cap - Q, written here as Q - cap <= 0: rewards are counted from the best that a
step can pay (`offset`), a terminal state is worth -cap, and zero weights mean full optimism, whatever the sign and the
offset of the rewards. After each regression the noise of its targets is

    sigma_h^2 = (RSS_h + NU var(y)) / (max(n - dof, 0) + NU),   RSS_h = sum y_i^2 - w'z - lam |w|^2,

the width is beta_h = WIDTH / sqrt(H) sigma_h, and lam of the next planning is the evidence for it,
sum_h sigma_h^2 dof / sum_h |w_h|^2, within bounds.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from linmdp.agents.base import count_in, saved_array, tie_tolerance
from linmdp.agents.exploration.base import Moments
from linmdp.agents.exploration.bonus import Bonus
from linmdp.agents.horizon import Horizon
from linmdp.features.base import FeatureMap
from linmdp.features.tabular import TableFeatures
from linmdp.features.unit import is_unit
from linmdp.types import Array

if TYPE_CHECKING:
    from linmdp.agents.storage.base import Sample

WIDTH = 3.0
NU = 0.01
"""Weight, in samples, of the belief that all differences among targets are noise."""

ROUNDING = 1e-7
"""Squared residuals below this fraction of the squared targets may be rounding, and count as none."""

FIRST_LAM = 1e-4
UNIT_FLOOR = 0.03
"""Least lam for unit vectors, where it counts imagined perfect visits; less where the task looks deterministic."""

TABLE_FLOOR, SMOOTH_FLOOR = 0.1, 0.01
"""Least lam for other tables, and for features of continuous states, in units of the mean eigenvalue of phi phi'."""

SLACK = 0.01
"""An episode is as good as any can be if it falls short of the best by this share of the range, or less."""

HOPE = 2.0
"""With a discount no state is hoped to be worth more than so many times what the best episode paid."""

SURPRISE = 10.0
"""The floor of unit vectors is full where this share, inverted, of repeated visits leads to another state."""


class Evidence(Bonus):
    """A bonus whose width, and the ridge parameter, follow from the data.

    Attributes
    ----------
    lam : of the next planning
    ended : (G, d) sum of phi over terminal samples, where the storage does not count them
    sums : (G, 6) samples, rewards, squared rewards, terminal samples, their rewards, sum of |phi|^2
    last : (d,) the state that each unit vector led to last; -1 before the first visit. Empty for other features
    returns : (3,) number of episodes, mean of what they missed, and sum of squares around it, where `urge` is asked
    most : () the largest sum of rewards above 0 in an episode, at least one best reward
    repeats, surprises : visits of unit vectors seen before, and those that led elsewhere than the last one, both + 1
    """

    adaptive: ClassVar = True
    clipped: ClassVar = True
    shortfall: ClassVar = True
    batched: ClassVar = False
    _arrays: ClassVar = ("ended", "sums", "last", "beta", "_lam", "returns", "most", "caps")
    _counters: ClassVar = ("repeats", "surprises")
    _derived: ClassVar = ("floors", "terminal", "ended_value", "dof", "_gathered")

    def __init__(self, horizon: Horizon, features: FeatureMap, caps: Array, lows: Array, *, own_ends: bool) -> None:
        super().__init__(horizon, np.zeros(horizon.H), 0.0)
        G, d, H = horizon.groups, features.d, horizon.H
        caps = caps[-H:]
        following = caps[0] if horizon.discounted else (caps[1] if H > 1 else 0.0)
        self.offset = float(caps[0] - horizon.discount * following)
        self.floors = np.minimum(lows - caps, 0.0)
        self.terminal, self.ended_value = -np.append(caps[1:], caps[0] if horizon.discounted else 0.0), -caps
        self.d, self.tie = d, tie_tolerance(caps)
        self.table, self.unit = isinstance(features, TableFeatures), is_unit(features)
        self.ended, self.sums = np.zeros((G, 0 if own_ends else d)), np.zeros((G, 6))
        self.last, self.repeats, self.surprises = np.zeros(0, dtype=np.int64), 1, 1
        self._lam, self._gathered = np.full((), FIRST_LAM), np.zeros(2)
        self.dof: Array = np.zeros(G)
        self.returns, self.most = np.zeros(3), np.full((), caps[0] / horizon.effective_steps)
        self._hope()

    @property
    def lam(self) -> float:
        """That of the next planning."""
        return float(self._lam)

    def seen(self, g: int, sample: Sample) -> None:
        phi, reward, weight = sample.phi, sample.reward, sample.weight
        norm = 1.0 if self.unit else float(phi @ phi)
        self.sums[g] += weight * np.array((1.0, reward, reward * reward, 0.0, 0.0, norm))
        if sample.terminated and self.ended.size:
            self.ended[g] += weight * phi
            self.sums[g, 3:5] += weight, weight * reward
        if self.unit:
            cell = sample.cell if sample.cell >= 0 else int(phi.argmax())
            self._surprised(cell, sample.to if sample.to >= 0 else self.d if sample.terminated else sample.next_state)

    def _surprised(self, cell: int, to: int) -> None:
        """A unit vector came again or for the first time: did it lead elsewhere than last time?"""
        if cell >= len(self.last):
            length = min(self.d, max(cell + 1, 2 * len(self.last)))
            self.last = np.append(self.last, np.full(length - len(self.last), -1))
        self.repeats += int(self.last[cell] >= 0)
        self.surprises += int(0 <= self.last[cell] != to)
        self.last[cell] = to

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
        self._hope()
        self.dof = self.ridge.dof()
        self._gathered[:] = 0.0

    def ended_target(self, h: int) -> Any:
        return self.terminal[h] * self.ended[self.horizon.group(h)]

    def moments(self, h: int, total: float, squares: float) -> Moments:
        n, r, rr, ends, ended, _ = self.sums[self.horizon.group(h)]
        value = self.horizon.discount * self.terminal[h]
        return Moments(n, r + total + ends * value, rr + squares + ends * value * value + 2 * ended * value)

    def fitted(self, h: int, moments: Moments, rss: float) -> None:
        g, w, n = self.horizon.group(h), self.w[self.horizon.level(h)], max(moments.n, 1.0)
        spread, least = moments.squares / n - (moments.total / n) ** 2, ROUNDING * moments.squares
        rss, spread = rss * (rss > least), spread * (n * spread > least)
        variance = (rss + NU * spread) / (max(moments.n - self.dof[g], 0.0) + NU)
        self.beta[0 if self.horizon.discounted else h] = WIDTH / math.sqrt(self.horizon.H) * math.sqrt(variance)
        if self.horizon.discounted:  # of the last backup alone
            self._gathered[:] = 0.0
        self._gathered += (variance * self.dof[g], float(w @ w))

    def widen(self, h: int, error: float) -> None:
        self.beta[h] += self.inflate * error

    def urge(self, realised: float) -> int:
        """-1: no episode can be better, so that there is nothing to plan for. 1: worse than most, so plan at once."""
        n, mean, squares = self.returns
        spread = math.sqrt(max(0.0, squares / max(n, 1.0)))
        count_in(self.returns, realised)
        if realised >= SLACK * float(self.floors[0]):
            return -1 if n else 0
        return int(realised < mean - spread)

    def gained(self, total: float) -> None:
        self.most[...] = max(float(self.most), total)

    def _hope(self) -> None:
        """At a planning, so that a Q that is not planned again stays what it was."""
        if self.horizon.discounted:
            self.caps[:] = np.minimum(0.0, HOPE * self.most + self.ended_value)

    def end(self) -> None:
        if self.horizon.discounted:
            self.beta[:] = self.beta[0]
        else:  # the width belongs to the weights that are kept
            steps = np.arange(self.horizon.H)
            self.beta[:] = self.beta[steps - steps % self.horizon.stride]
        n = self.sums[:, 0].sum()
        if n:
            trace = self.sums[:, 5].sum() / n
            floor = self._floor(trace)
            self._lam[...] = min(max(self._gathered[0] / max(self._gathered[1], 1e-12), floor), max(trace, floor))

    def load_state_dict(self, state: Mapping[str, np.ndarray]) -> None:
        last = saved_array(state, "last")
        if last.ndim == 1 and last.dtype == np.int64:
            self.last = np.zeros_like(last)  # as long as the unit vectors that came
        super().load_state_dict(state)

    def _floor(self, trace: float) -> float:
        if self.unit:
            return UNIT_FLOOR * min(1.0, SURPRISE * self.surprises / self.repeats)
        return (TABLE_FLOOR if self.table else SMOOTH_FLOOR) * trace / self.d
