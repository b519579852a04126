"""Any states: at most M real transitions. A new one that is near a kept one only adds to its weight."""

from __future__ import annotations

import math
from collections.abc import Mapping
from itertools import pairwise
from typing import Any, ClassVar, NamedTuple

import numpy as np

from linmdp.agents.backend import zeros
from linmdp.agents.base import saved_array
from linmdp.agents.exploration.base import Moments, stacked
from linmdp.agents.memory.base import BUFFERS, FADED, Parts, RowStorage, Sample
from linmdp.errors import InvalidData
from linmdp.features.base import FeatureMap
from linmdp.types import Array, BoolArray, IntArray, all_finite

FIRST_RADIUS = 1 / 1.4
"""The first radius, in units of the median distance from a transition to the one nearest to it."""

WIDER = 1.2
"""The radius grows by this factor until enough transitions have been merged."""

LEFT = 0.9
"""Merging goes on until this share of M is left."""

ROUNDED = 1.01
"""A coordinate's distance beyond the radius by this factor is no rounding of one within it, in half floats neither."""

PROBED = 64
"""Transitions whose nearest neighbour is looked for, to find the first radius."""


class Held(NamedTuple):
    """The transitions of one regression, ready for planning; n of them, in the order of their actions."""

    X: Array  # (n, p) or (n, d): features of state and action, within their block
    Y: Array  # (n, p) or (n, A, d): features of what followed
    times: Array  # (n,)
    reward: Array  # (n,) mean reward
    ended: BoolArray  # (n,)
    part: list[slice]  # the transitions of each block
    within: float  # sum of squared rewards around their means
    final: Array  # (d,) sum of phi(s', a) over ends and actions
    finals: float  # how many that are


class Transitions(RowStorage):
    """At most M transitions, each as it was seen, with the number of times and the mean of its rewards.

    A transition whose two ends are within `radius` of those of a kept one (in scaled coordinates; same action, and both
    or neither end the episode) adds to its weight. The kept one is not moved: a real transition obeys the dynamics, a
    mean of several does not. When there are more than M, the radius grows until a tenth has been merged.

    A state in which an episode ended is worth nothing, whatever one would do there. That is known without playing: it
    counts as one sample for each action, of a state that nothing follows.

    Attributes
    ----------
    ends : (M + 1, 2, ...) of the type of a state: where it began and what followed; empty until the first has come
    key : (M + 1,) its regression, action, and whether the episode was over, in one number (see `_key`)
    sums : (3, M + 1) times, mean reward, mean squared reward
    count : transitions held; radius : () of merging, 0 before the first
    scale : (k,) what coordinates are multiplied by before distances are taken
    """

    _arrays: ClassVar[tuple[str, ...]] = ("ends", "key", "sums", "radius", "scale")
    _counters: ClassVar[tuple[str, ...]] = ("count",)

    def __init__(self, parts: Parts, features: FeatureMap, M: int, state_bytes: int) -> None:
        super().__init__(parts, features)
        self.M, self._state_bytes = M, state_bytes
        self.ends, self.key, self.sums = np.zeros((0, 2, 0)), zeros(M + 1, np.int32), zeros((3, M + 1))
        self.count, self.radius, self.scale = 0, np.zeros(()), np.zeros(0)
        self._held: dict[int, Held] = {}
        self._forms: dict[int, Array] = {}
        self._V = np.zeros(0)
        self._widest = 0  # the coordinate, of both ends, in which transitions differ most

    # samples

    def _key(self, group: int, action: int, ended: bool) -> int:
        """Only transitions with the same key are merged."""
        return 2 * (group * self.A + action) + ended

    def add(self, h: int, sample: Sample) -> None:
        if not len(self.ends):
            self._make_space(np.asarray(sample.state))
        ends = np.concatenate((np.ravel(sample.state), np.ravel(sample.next_state)))
        if not all_finite(ends):
            raise InvalidData(f"A state must be finite. Got {sample.next_state!r}.")
        key, squared = self._key(self.horizon.group(h), sample.action, sample.terminated), sample.reward * sample.reward
        self._merge(ends, key, (sample.weight, sample.reward, squared))
        if self.count > self.M:
            self._coarsen()
            self.ridge.behind[:] = True  # of other steps as well

    def _make_space(self, state: Array) -> None:
        self.ends = np.zeros((self.M + 1, 2, *state.shape), dtype=state.dtype)
        scaling = getattr(self.blocks, "scaling", None)
        self.scale = np.zeros(state.size)
        if scaling is not None:
            np.divide(1.0, scaling.high - scaling.low, out=self.scale, where=scaling.high > scaling.low)

    def _candidates(self, ends: Array, key: int) -> IntArray:
        """Those of the same key that are not too far away in one coordinate, all within the radius among them."""
        n, j, reach = self.count, self._widest, ROUNDED * float(self.radius)
        if not reach:
            return np.arange(0)
        away = np.abs(_difference(self.ends.reshape(self.M + 1, -1)[:n, j], ends[j]))
        away *= float(self.scale[j % len(self.scale)])
        near: IntArray = ((away <= reach) & (self.key[:n] == key)).nonzero()[0]
        return near

    def _distances(self, ends: Array, among: IntArray) -> Array:
        """Squared distances from both ends of a transition, (2k,), to those of some others, (n,)."""
        away = _difference(self._ends_of(among), ends)
        away.reshape(len(among), 2, -1)[...] *= self.scale
        squares: Array = np.einsum("nk,nk->n", away, away)
        return squares

    def _ends_of(self, which: Any) -> Array:
        """Where some transitions began and what followed, (n, 2k)."""
        found: Array = self.ends.reshape(self.M + 1, -1).take(which, axis=0)
        return found

    def _merge(self, ends: Array, key: int, sums: Any) -> None:
        """Add to the weight of the kept transition that is nearest, if it is within the radius, or keep this one."""
        n = self.count
        if (i := self._near(ends, self._candidates(ends, key))) is not None:
            self.sums[0, i] += sums[0]
            self.sums[1:, i] += sums[0] / self.sums[0, i] * (np.array(sums[1:]) - self.sums[1:, i])
            return
        self.ends[n].flat, self.key[n], self.sums[:, n] = ends, key, sums
        self.count = n + 1

    def _near(self, ends: Array, alike: IntArray) -> int | None:
        """Which of these transitions is nearest, if one is within the radius."""
        if not len(alike):
            return None
        distances = self._distances(ends, alike)
        nearest = int(distances.argmin())
        return int(alike[nearest]) if distances[nearest] <= self.radius**2 else None

    def _coarsen(self) -> None:
        """Merge with a larger radius, the heaviest first, until there is space again."""
        if not self.radius > 0:
            self._first_radius()
        spread = self.ends[: self.count].reshape(self.count, 2, -1).astype(np.float64).std(axis=0)
        self._widest = int((spread * self.scale).argmax())
        while self.count > LEFT * self.M:
            self.radius *= WIDER
            n, self.count = self.count, 0
            ends, key, sums = self.ends[:n].reshape(n, -1).copy(), self.key[:n].tolist(), self.sums[:, :n].copy()
            for i in np.argsort(-sums[0], kind="stable").tolist():
                self._merge(ends[i], key[i], sums[:, i])

    def _first_radius(self) -> None:
        n = self.count
        if not self.scale.any():  # the features have no scaling: that of the data
            spread = self.ends[:n, 0].reshape(n, -1).astype(np.float64).std(axis=0)
            np.divide(1.0, spread, out=self.scale, where=spread > 0)
        nearest = []
        for i in np.linspace(0, n - 1, PROBED).astype(int):
            distances = self._distances(self._ends_of([i])[0], np.arange(n))
            distances[i] = np.inf
            nearest.append(float(distances.min()))
        self.radius[...] = FIRST_RADIUS * np.sqrt(sorted(nearest)[PROBED // 2]) + 1e-9

    def clear(self, runs: Any = ...) -> None:
        self.count = 0
        self.radius[...] = 0.0

    def fade(self, factor: float) -> None:
        self.sums[0] *= factor
        stay = np.flatnonzero(self.sums[0, : self.count] >= FADED)
        if len(stay) < self.count:
            self.count = len(stay)
            self.sums[:, : self.count] = self.sums[:, stay]
            self.ends[: self.count], self.key[: self.count] = self.ends[stay], self.key[stay]

    # planning

    def hold(self, g: int) -> Held:
        """The transitions of regression g with their features; they are kept until the planning is over."""
        if g not in self._held:
            self._held[g] = self._make_held(g)
        return self._held[g]

    def _by_action(self, g: int) -> tuple[IntArray, IntArray, BoolArray]:
        """The transitions of regression g in the order of their actions, these, and whether they ended an episode."""
        action, ended = np.divmod(self.key[: self.count] - self._key(g, 0, False), 2)
        mine = np.flatnonzero((action >= 0) & (action < self.A))
        mine = mine[np.argsort(action[mine], kind="stable")]
        return mine, action[mine], ended[mine] > 0

    def _make_held(self, g: int) -> Held:
        """The transitions in the order of their actions."""
        mine, actions, ended = self._by_action(g)
        times, reward, squared = self.sums[:, mine]
        if not len(mine):  # nobody knows yet what a state looks like
            none, d = np.zeros((0, self.ridge.Lambda_inv.shape[-1])), self.ridge.u.shape[1]
            Y = none if self.blocks else none[:, None].repeat(self.A, axis=1)
            parts = [slice(0, 0)] * self.ridge.Lambda_inv.shape[1]
            return Held(none, Y, times, reward, ended, parts, 0.0, np.zeros(d), 0.0)
        X, Y = self.rows(self.ends[mine, 0]), self.rows(self.ends[mine, 1])
        if not self.blocks:
            X = X[np.arange(len(mine)), actions]
        part = [slice(0, len(mine))]
        if self.blocks:
            cuts = np.searchsorted(actions, np.arange(self.A + 1)).tolist()
            part = [slice(a, b) for a, b in pairwise(cuts)]
        ends = np.tensordot(times[ended], Y[ended], 1)
        final = np.tile(ends, self.A) if self.blocks else ends.sum(axis=0)
        within = float(times @ (squared - reward**2))
        return Held(X, Y, times, reward, ended, part, within, final, self.A * float(times[ended].sum()))

    def gram(self, g: int) -> Array:
        held = self.hold(g)
        weighted = held.X * held.times[:, None]
        total = np.stack([held.X[part].T @ weighted[part] for part in held.part])
        Y, times = held.Y[held.ended], held.times[held.ended]
        if self.blocks:
            total += (Y * times[:, None]).T @ Y
        else:
            total += np.einsum("n,nad,nae->de", times, Y, Y)
        return total

    def refresh(self, mask: BoolArray) -> None:
        self._forms.clear()
        for g in np.flatnonzero(mask).tolist():
            self.ridge.u[g] = self._summed(self.hold(g), self.hold(g).reward)

    def _summed(self, held: Held, values: Array) -> Array:
        """sum phi_i y_i, (d,)."""
        weighted = held.times * values
        return np.concatenate([weighted[part] @ held.X[part] for part in held.part])

    def target(self, h: int) -> Array:
        g, explore = self.horizon.group(h), self.exploration
        held = self.hold(g)
        self._V = np.zeros(len(held.times))
        if self.horizon.leads_on(h) and len(held.times):
            after = 0 if self.horizon.discounted else h + 1
            products = stacked([self.products(held.Y, vector) for vector in explore.vectors(after)])
            q = explore.q(after, products, self._forms_after(g, after).copy())
            self._V = explore.largest(q, axis=-1)
            self._V[held.ended] = explore.terminal[h]
        ended: Array = explore.ended_value[h] / self.horizon.discount * held.final
        return self._summed(held, self._V) + ended

    def _forms_after(self, g: int, after: int) -> Array:
        if not self.exploration.keeps_forms:
            return np.zeros(0)
        if g not in self._forms:
            self._forms[g] = self.forms(self.hold(g).Y, self.ridge.Lambda_inv[self.horizon.group(after)])
        return self._forms[g]

    def greedy_target(self, h: int, w: Array) -> Array:
        held, cap = self.hold(self.horizon.group(h)), self.exploration.caps[self.horizon.level(h + 1)]
        V = np.minimum(self.products(held.Y, w), cap).max(axis=-1, initial=-np.inf)
        V[held.ended] = 0.0
        return self._summed(held, V)

    def moments(self, h: int) -> Moments:
        held = self.hold(self.horizon.group(h))
        y, final = held.reward + self.horizon.discount * self._V, float(self.exploration.ended_value[h])
        squares = float(held.times @ (y * y)) + held.within + held.finals * final * final
        return Moments(float(held.times.sum()) + held.finals, float(held.times @ y) + held.finals * final, squares)

    def forget(self) -> None:
        self._held, self._forms, self._V = {}, {}, np.zeros(0)

    # memory and files

    def bytes_after(self, samples: int) -> int:
        return self.nbytes + (0 if len(self.ends) else (2 * (self.M + 1) + 1) * self._state_bytes)

    def working_bytes(self, samples: int) -> int:
        """Features of both ends of all transitions, twice, or another copy of these."""
        blocks, p = self.ridge.Lambda_inv.shape[1:3]
        rows = p if self.blocks else self.A * p
        held = 8 * self.M * (4 * rows + 6 * self.A + 12) + 24 * blocks * p * p
        return int(BUFFERS + held + (self.M + 1) * (2 * self._state_bytes + 28))

    def load_state_dict(self, state: Mapping[str, np.ndarray]) -> None:
        for name in ("ends", "scale"):
            saved = saved_array(state, name)
            if name == "scale" or saved.shape[:1] in ((0,), (self.M + 1,)):
                setattr(self, name, np.zeros_like(saved))  # of a shape that only the first state has shown
        super().load_state_dict(state)
        fits = 0 <= self.count <= self.M and self.ends.shape[1] == 2 and (len(self.ends) or not self.count)
        if not fits or not ((self.key >= 0) & (self.key < self._key(self.horizon.groups, 0, False))).all():
            raise InvalidData("'count', 'ends' and 'key' of a saved agent must be those of its transitions.")
        if not all(np.isfinite(x).all() for x in (self.ends, self.sums, self.scale, self.radius)):
            raise InvalidData("The transitions of a saved agent must be finite.")


def _difference(kept: Array, ends: Array) -> Array:
    """kept - ends, in single precision at least: a difference of bytes would wrap around."""
    difference: Array = np.subtract(kept, ends, dtype=np.result_type(kept, np.float32))
    return difference


def least_merged(groups: int, A: int) -> int:
    """The least M of so many regressions and actions: one transition of each key fits, and space is left."""
    return math.ceil(2 * groups * A / LEFT)
