"""beta="auto" with lam="auto": how wide and how smooth, both from the data. See docs/evidence.md.

What is regressed is Q - cap <= 0: rewards are counted from the best that a step can pay (`offset`), a terminal state is
worth -cap, and zero weights mean full optimism, whatever the sign and the offset of the rewards.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from linmdp.agents.backend import NUMPY, Backend
from linmdp.agents.base import tie_tolerance
from linmdp.agents.exploration.base import Moments
from linmdp.agents.exploration.bonus import Bonus
from linmdp.agents.held import POSITIVE
from linmdp.agents.horizon import Horizon
from linmdp.agents.ridge import at_least, dot
from linmdp.features.base import FeatureMap
from linmdp.features.tabular import TableFeatures
from linmdp.features.unit import is_unit
from linmdp.types import Array

if TYPE_CHECKING:
    from linmdp.agents.memory.base import Sample

WIDTH = 3.0
NU = 0.01
"""Weight, in samples, of the belief that all differences among targets are noise."""

ROUNDING = 1e-7
"""Squared residuals below this fraction of the squared targets may be rounding, and count as none."""

FIRST_LAM = 1e-4
UNIT_FLOOR = 0.03
"""Least lam for unit vectors, where it counts imagined perfect visits."""

TABLE_FLOOR, SMOOTH_FLOOR = 0.1, 0.01
"""Least lam for other tables, and for features of continuous states, in units of the mean eigenvalue of phi phi'."""


class Evidence(Bonus):
    """A bonus whose width, and the ridge parameter, follow from the data; in lockstep those of each run from its own.

    Attributes
    ----------
    lam : (*batch) of the next planning
    ended : (G, *batch, d) sum of phi over terminal samples, where the storage does not count them
    sums : (G, *batch, 6) samples, rewards, squared rewards, terminal samples, their rewards, sum of |phi|^2
    """

    plain: ClassVar = False
    adaptive: ClassVar = True
    clipped: ClassVar = True
    _arrays: ClassVar = ("ended", "sums", "beta", "_lam")
    _saved_within: ClassVar = {"_lam": (POSITIVE, np.inf), "beta": (0, np.inf)}
    _derived: ClassVar = ("caps", "floors", "terminal", "ended_value", "dof", "_gathered")
    _run_axis: ClassVar = {"_lam": 0}

    def __init__(
        self,
        horizon: Horizon,
        features: FeatureMap,
        caps: Array,
        lows: Array,
        *,
        own_ends: bool,
        batch: tuple[int, ...] = (),
        backend: Backend = NUMPY,
    ) -> None:
        G, d, H = horizon.groups, features.d, horizon.H
        super().__init__(horizon, np.zeros((H, *batch)), np.zeros((H, *batch)), backend)
        caps = caps[-H:]
        following = caps[0] if horizon.discounted else (caps[1] if H > 1 else 0.0)
        self.offset = float(caps[0] - horizon.discount * following)
        self.floors = backend.array(np.minimum(lows - caps, 0.0))
        self.ended_value = -caps
        self.terminal = -np.append(caps[1:], caps[0] if horizon.discounted else 0.0)
        self.d, self.tie = d, tie_tolerance(caps)
        self.table, self.unit = isinstance(features, TableFeatures), is_unit(features)
        self.ended, self.sums = (backend.zeros((G, *batch, n)) for n in (0 if own_ends else d, 6))
        self._gathered, self.dof = backend.zeros((2, *batch)), backend.zeros((G, *batch))
        self._lam = backend.array(np.full(batch, FIRST_LAM))

    @property
    def lam(self) -> Any:
        """That of the next planning."""
        return self._lam

    def seen(self, g: int, sample: Sample) -> None:
        phi, reward, weight = sample.phi, sample.reward, sample.weight
        self.sums[g] += counted(weight, reward, 1.0 if self.unit else dot(phi, phi))
        if sample.terminated and self.ended.size:
            self.ended[g] += weight * phi
            self.sums[g, 3:5] += weight, weight * reward

    def seen_together(self, phi: Any, rewards: Any, store: Any) -> None:
        rewards = rewards - self.offset
        if not self.horizon.shared:
            self._count(self.sums, store, rewards, dot(phi, phi))
            return
        for h in range(len(phi)):
            self._count(self.sums[0], store[0], rewards[h], dot(phi[h], phi[h]))

    def _count(self, sums: Any, weight: Any, reward: Any, norm: Any) -> None:
        """Samples of several runs that count `weight`, in the sums (..., 6) of their regressions."""
        parts = counted(weight, reward, norm)
        for i in (0, 1, 2, 5):
            sums[..., i] += parts[i]

    def fade(self, factor: float) -> None:
        self.ended *= factor
        self.sums *= factor

    def forget(self, runs: Any = ...) -> None:
        self.ended[:, runs], self.sums[:, runs] = 0.0, 0.0

    def raised(self, h: int, products: Any, forms: Any) -> Any:
        q = super().raised(h, products, forms)
        self.backend.xp.maximum(q, self.floors[h], out=q)
        return q

    def begin(self) -> None:
        self.dof = self.ridge.dof()
        self._gathered[:] = 0.0

    def ended_target(self, h: int) -> Any:
        return float(self.terminal[h]) * self.ended[self.horizon.group(h)]

    def moments(self, h: int, total: Any, squares: Any) -> Moments:
        n, r, rr, ends, ended, _ = self.sums[self.horizon.group(h)].T
        value = self.horizon.discount * float(self.terminal[h])
        return Moments(n, r + total + ends * value, rr + squares + ends * value * value + 2 * ended * value)

    def fitted(self, h: int, w: Any, moments: Moments, rss: Any, mask: Any) -> None:
        g, n = self.horizon.group(h), at_least(moments.n, 1.0)
        spread, least = moments.squares / n - (moments.total / n) ** 2, ROUNDING * moments.squares
        rss, spread = rss * (rss > least), spread * (n * spread > least)
        variance = (rss + NU * spread) / (at_least(moments.n - self.dof[g], 0.0) + NU)
        step, beta = 0 if self.horizon.discounted else h, WIDTH / math.sqrt(self.horizon.H) * variance**0.5
        self.beta[step] = beta if mask is None else self.backend.xp.where(mask, beta, self.beta[step])
        for i, part in enumerate((variance * self.dof[g], dot(w, w))):
            total = part if self.horizon.discounted else self._gathered[i] + part  # of the last backup, or of all steps
            self._gathered[i] = total if mask is None else self.backend.xp.where(mask, total, self._gathered[i])

    def widen(self, h: int, error: float) -> None:
        self.beta[h] += self.inflate * error

    def end(self, runs: Any = True) -> None:
        if self.horizon.discounted:
            self.beta[:] = self.beta[0]
        elif self.horizon.stride > 1:  # the width belongs to the weights that are kept
            steps = np.arange(self.horizon.H)
            self.beta[:] = self.beta[steps - steps % self.horizon.stride]
        xp, n, norms = self.backend.xp, self.sums[..., 0].sum(0), self.sums[..., 5].sum(0)
        trace = norms / (n + (n == 0))
        floor = self._floor(trace)
        evidence = self._gathered[0] / at_least(self._gathered[1], 1e-12)
        lam = xp.minimum(xp.maximum(evidence, floor), xp.maximum(trace, floor))
        self._lam[...] = xp.where((n > 0) & runs, lam, self._lam)

    def _floor(self, trace: Any) -> Any:
        if self.unit:
            return UNIT_FLOOR
        return (TABLE_FLOOR if self.table else SMOOTH_FLOOR) * trace / self.d


def counted(weight: Any, reward: Any, norm: Any) -> tuple[Any, ...]:
    """What a sample that does not end an episode adds to `Evidence.sums`."""
    return weight, weight * reward, weight * reward * reward, 0.0, 0.0, weight * norm
