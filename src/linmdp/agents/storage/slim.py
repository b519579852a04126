"""Merged transitions in little memory: a few bytes each, and their features made a few at a time while planning."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, ClassVar, NamedTuple

import numpy as np

from linmdp.agents import symmetric
from linmdp.agents.afresh import InPlace
from linmdp.agents.base import saved_array
from linmdp.agents.exploration.base import Moments, stacked
from linmdp.agents.storage.base import FADED, Parts, Sample
from linmdp.agents.storage.merged import LEFT, ROUNDED, WIDER, Merged
from linmdp.agents.storage.rows import block_features
from linmdp.errors import InvalidData
from linmdp.features.base import FeatureMap
from linmdp.types import Array, BoolArray, IntArray

COMPARED = 384
"""Coordinates of the transitions that a new one is compared with at once."""


class Chunk(NamedTuple):
    """A few transitions of one regression, ready for planning; n of them."""

    at: Any  # where the values that are kept for them during a planning lie
    action: IntArray  # (n,)
    times: Array  # (n,)
    reward: Array  # (n,) mean reward
    ended: BoolArray  # (n,)
    begin: Array  # (n, k) where they began
    after: Array  # (n, k) what followed


class Once(NamedTuple):
    """What a planning needs to know of a regression once."""

    final: Array  # (p,) sum of psi(s') over the ends
    finals: float  # how many samples these are, one for each action
    within: float  # sum of squared rewards around their means


class Slim(Merged):
    """`Merged` for phi(s, a) = psi(s) in the block of action a: the same planning, with psi made anew for every step.

    Attributes
    ----------
    ends : (M + 1, k) where a transition began, in whole numbers of `unit` from `origin`
    origin, unit : (k,) the first state that came; a unit doubles when a state comes that is too far away
    change : (M + 1, k) what followed minus that, times `scale`, in half precision: steps are small, and so is the error
    key : (M + 1,) as in `Merged`, in as few bytes as hold it
    sums : (2, M + 1) times and mean reward, in single precision
    squares : (G,) sum of squared rewards of each regression
    """

    _arrays: ClassVar = ("ends", "origin", "unit", "change", "key", "sums", "squares", "radius", "scale")

    p: int
    ends: Any
    origin: Array
    unit: Array
    change: Any
    squares: Array
    _moments: Moments

    def __init__(self, parts: Parts, features: FeatureMap, M: int, state_bytes: int, at_once: int = 64) -> None:
        super().__init__(parts, features, M, state_bytes)
        self.at_once = at_once
        assert isinstance(self.ridge, InPlace)
        self.ridge.ready, self.ridge.gram, self.p = self.ready, self.gram_block, features.d // self.A
        self.ends, self.change = np.zeros((0, 0), dtype=np.int16), np.zeros((0, 0), dtype=np.float16)
        self.origin, self.unit = np.zeros(0), np.zeros(0)
        self.key = np.zeros(M + 1, dtype=key_type(self.horizon.groups, self.A))
        self.sums, self.squares = np.zeros((2, M + 1), dtype=np.float32), np.zeros(self.horizon.groups)
        self._once: dict[int, Once] = {}
        self._moments = Moments(0.0, 0.0, 0.0)

    # samples

    def add(self, h: int, sample: Sample) -> None:
        self.squares[self.horizon.group(h)] += sample.weight * sample.reward**2
        super().add(h, sample)

    def _make_space(self, state: Array) -> None:
        super()._make_space(state)
        self.scale[self.scale == 0] = 1.0
        self.origin, self.unit = np.array(state, dtype=np.float64).ravel(), np.full(state.size, SMALLEST)
        self.ends = np.zeros((self.M + 1, state.size), dtype=np.int16)
        self.change = np.zeros((self.M + 1, state.size), dtype=np.float16)

    def _ends_of(self, which: Any) -> Array:
        return np.concatenate((self.begun(which), self._following(which)), axis=1)

    def begun(self, which: Any) -> Array:
        """Where some transitions began, (n, k)."""
        found: Array = self.ends[which] * self.unit
        found += self.origin
        return found

    def _following(self, which: Any) -> Array:
        """What followed some transitions, (n, k)."""
        found: Array = self.change[which] / self.scale
        found += self.begun(which)
        return found

    def _candidates(self, ends: Array, key: int) -> IntArray:
        place, width = (ends[0] - self.origin[0]) / self.unit[0], self.radius / (self.scale[0] * self.unit[0])
        column, reach = self.ends[: self.count, 0], ROUNDED * float(width) + 1
        near = column >= place - reach
        near &= column <= place + reach
        near &= self.key[: self.count] == key
        return np.flatnonzero(near)

    def _distances(self, ends: Array, among: IntArray) -> Array:
        some = at_least_one(COMPARED, self.scale.size)
        parts = [among[i : i + some] for i in range(0, len(among), some)]
        return np.concatenate([super(Slim, self)._distances(ends, part) for part in parts])

    def _put(self, n: int, ends: Array, key: int, sums: Any) -> None:
        begin, after = ends.reshape(2, -1)
        self._reach(begin)
        self.ends[n] = np.rint((begin - self.origin) / self.unit)
        self.key[n], self.sums[:, n] = key, sums[:2]
        # what followed is counted from where the transition is said to have begun, rounding and all
        self.change[n] = ((after - self.begun(n)) * self.scale).clip(*LARGEST_CHANGE)

    def _reach(self, state: Array) -> None:
        """Double units until a state can be told from the origin."""
        away = np.abs(state - self.origin) / self.unit
        for i in np.flatnonzero(away > FARTHEST).tolist():
            doublings = math.ceil(math.log2(away[i] / FARTHEST))
            self.unit[i] *= 2.0**doublings
            column = self.ends[: self.count, i]
            column >>= min(doublings - 1, 15)
            column += 1  # rounded, not cut off
            column >>= 1

    def _increase(self, i: int, sums: Any) -> None:
        super()._increase(i, sums[:2])

    def _coarsen(self) -> None:
        """As in `Merged`, in place."""
        if not self.radius > 0:
            self._first_radius()
        while self.count > LEFT * self.M:
            self.radius *= WIDER
            self._keep_only(np.argsort(-self.sums[0, : self.count], kind="stable"))
            n, self.count = self.count, 0
            for i in range(n):
                ends = self._ends_of([i])[0]
                if (near := self._near(ends, self._candidates(ends, self.key[i]))) is None:
                    for column in self._columns:
                        column[self.count] = column[i]
                    self.count += 1
                else:
                    self._increase(near, self.sums[:, i])

    @property
    def _columns(self) -> tuple[Any, ...]:
        """What is kept of each transition."""
        return self.ends, self.change, self.key, *self.sums

    def _keep_only(self, which: IntArray) -> None:
        """Drop all transitions but these, and have them in this order."""
        self.count = len(which)
        for column in self._columns:
            column[: self.count] = column[which]

    def clear(self, runs: Any = ...) -> None:
        super().clear(runs)
        self.squares[:] = 0.0

    def fade(self, factor: float) -> None:
        self.squares *= factor
        self.sums[0] *= factor
        stay = np.flatnonzero(self.sums[0, : self.count] >= FADED)
        if len(stay) < self.count:
            self._keep_only(stay)

    # planning

    def _chunks(self, g: int, action: int | None = None) -> Iterator[Chunk]:
        """The transitions of a regression, or those with one action."""
        for first in range(0, self.count, self.at_once):
            part = slice(first, min(first + self.at_once, self.count))
            at, code = part, self.key[part].astype(np.int32) - self._key(g, 0, False)  # type: Any, IntArray
            actions, ended = code >> 1, code & 1
            wanted = (actions >= 0) & (actions < self.A) if action is None else actions == action
            if not wanted.all():
                at = first + np.flatnonzero(wanted)
                if not len(at):
                    continue
                actions, ended = actions[wanted], ended[wanted]
            times, reward = self.sums[:, at].astype(np.float64)
            times = self._weighed(at, times)
            yield Chunk(at, actions, times, reward, ended != 0, self.begun(at), self._following(at))

    def ready(self, g: int, scratch: Array) -> None:
        """A planning of regression g begins, and its matrix will be made; `scratch` may be used until then."""

    def _weighed(self, at: Any, times: Array) -> Array:
        """What transitions count in this planning."""
        return times

    def gram_block(self, g: int, a: int, out: Array) -> None:
        """Half of the block of action a of sum phi phi'."""
        out[:] = 0.0
        for chunk in self._chunks(g, a):
            symmetric.add_outer(out, weighted(self.rows(chunk.begin), chunk.times))
        for times, Y in self._ended(g):
            symmetric.add_outer(out, weighted(Y, times))

    def inverse_of(self, g: int) -> Array:
        """Its halves, (A, q, p + 1)."""
        assert isinstance(self.ridge, InPlace)
        halves: Array = self.ridge.halves[g]
        return halves

    def forms(self, rows: Array, inverse: Array) -> Array:
        found = np.empty((len(rows), self.A))
        for a, half in enumerate(inverse):
            found[:, a] = symmetric.forms(half, rows)
        np.abs(found, out=found)
        return found

    def _ended(self, g: int) -> Iterator[tuple[Array, Array]]:
        """Times, and features of what followed, of the transitions that ended an episode, a few at a time."""
        codes = [self._key(g, a, True) for a in range(self.A)]
        for first in range(0, self.count, self.at_once):
            at = first + np.flatnonzero(np.isin(self.key[first : min(first + self.at_once, self.count)], codes))
            if len(at):
                yield self._weighed(at, self.sums[0, at].astype(np.float64)), self.rows(self._following(at))

    def refresh(self, mask: BoolArray) -> None:
        self._forms.clear()
        self._once.clear()
        for g in np.flatnonzero(mask).tolist():
            z = np.zeros((self.A, self.p))
            for chunk in self._chunks(g):
                self._sum_up(z, chunk, chunk.reward)
            self.ridge.u[g] = z.ravel()

    def _once_of(self, g: int) -> Once:
        if g not in self._once:
            final, finals, within = np.zeros(self.p), 0.0, float(self.squares[g])
            for times, Y in self._ended(g):
                final += times @ Y
                finals += self.A * float(times.sum())
            for chunk in Slim._chunks(self, g):
                within -= float(self.sums[0, chunk.at] @ chunk.reward**2)
            self._once[g] = Once(final, finals, max(0.0, within))
        return self._once[g]

    def _sum_up(self, z: Array, chunk: Chunk, values: Array) -> None:
        """z += sum phi_i y_i, (A, p)."""
        weights = np.zeros((self.A, len(values)))
        weights[chunk.action, np.arange(len(values))] = chunk.times * values
        z += weights @ self.rows(chunk.begin)

    def target(self, h: int) -> Array:
        g, explore, discount = self.horizon.group(h), self.exploration, self.horizon.discount
        z, leads_on, after = np.zeros((self.A, self.p)), self.horizon.leads_on(h), h + 1
        n = total = squares = 0.0
        if leads_on:
            after = 0 if self.horizon.discounted else after
            forms = self._forms_after(g, after)
            vectors = explore.vectors(after)
        for chunk in self._chunks(g):
            V = np.zeros(len(chunk.times))
            if leads_on:
                products = self._products_after(chunk, vectors)
                V = explore.largest(explore.q(after, products, forms[chunk.at].astype(np.float64) ** 2), axis=-1)
                V[chunk.ended] = explore.terminal[h]
                self._sum_up(z, chunk, V)
            y = chunk.reward + discount * V
            n, total = n + float(chunk.times.sum()), total + float(chunk.times @ y)
            squares += float(chunk.times @ (y * y))
        (final, finals, within), ended = self._once_of(g), float(explore.ended_value[h])
        self._moments = Moments(n + finals, total + finals * ended, squares + within + finals * ended * ended)
        z += ended / discount * final
        return z.ravel()

    def _products_after(self, chunk: Chunk, vectors: Sequence[Array]) -> Array:
        """phi(s', a)'x for every vector, transition and action, (vectors, n, A)."""
        Y = self.rows(chunk.after)
        return stacked([self.products(Y, vector) for vector in vectors])

    def _forms_after(self, g: int, after: int) -> Array:
        """The roots of the forms of what followed, (n, A), in half precision: they serve the bonus alone."""
        if g not in self._forms:
            self._forms[g] = np.zeros((self._planned, self.A if self.exploration.keeps_forms else 0), dtype=np.float16)
            inverse = self.inverse_of(self.horizon.group(after))
            for chunk in self._chunks(g) if self.exploration.keeps_forms else ():
                self._forms[g][chunk.at] = np.sqrt(self.forms(self.rows(chunk.after), inverse)).clip(0.0, 6e4)
        return self._forms[g]

    @property
    def _planned(self) -> int:
        """Transitions that a planning goes through."""
        return self.count

    def greedy_target(self, h: int, w: Array) -> Array:
        g, cap = self.horizon.group(h), self.exploration.caps[self.horizon.level(h + 1)]
        z = np.zeros((self.A, self.p))
        for chunk in self._chunks(g):
            V = np.minimum(self._products_after(chunk, [w])[0], cap).max(axis=-1)
            self._sum_up(z, chunk, np.where(chunk.ended, 0.0, V))
        return z.ravel()

    def moments(self, h: int) -> Moments:
        return self._moments  # of the last target, which was that of step h

    def forget(self) -> None:
        super().forget()
        self._once = {}

    # memory and files

    def bytes_after(self, samples: int) -> int:
        k = coordinates(self.features, self._state_bytes)
        return self.nbytes + (0 if len(self.ends) else (self.M + 1) * ends_bytes(k) + 3 * 8 * k)

    def load_state_dict(self, state: Mapping[str, np.ndarray]) -> None:
        saved = saved_array(state, "change")
        if saved.shape[:1] in ((0,), (self.M + 1,)):
            self.change = np.zeros_like(saved)
            self.origin, self.unit = np.zeros((2, saved.shape[-1]))
        super().load_state_dict(state)
        numbers = (self.change, self.origin, self.unit)
        if not all(np.isfinite(x).all() for x in numbers) or self.change.shape != self.ends.shape:
            raise InvalidData("The transitions of a saved agent must be finite.")

    def _whole(self, ends: Array) -> bool:
        return bool(ends.ndim == 2 and ends.dtype == np.int16)


LARGEST_CHANGE = (-6e4, 6e4)
"""Of what half precision holds."""

FARTHEST, SMALLEST = 2.0**15 - 2, 2.0**-200
"""Units from the origin, at most, and the unit before any state has come that is not the first."""


def at_least_one(numbers: int, k: int) -> int:
    """States of k coordinates that have so many numbers in all."""
    return max(1, numbers // k)


def coordinates(features: FeatureMap, state_bytes: int) -> int:
    """Coordinates of a state: those that its features scale, or at most a byte each."""
    scaling = getattr(block_features(features), "scaling", None)
    return scaling.k if scaling else state_bytes


def weighted(rows: Array, weights: Array) -> Array:
    """Rows times the roots of their weights; in place."""
    rows *= np.sqrt(weights)[:, None]
    return rows


def key_type(groups: int, A: int) -> np.dtype[Any]:
    """The smallest whole numbers that tell all kinds of transitions apart."""
    return np.min_scalar_type(2 * groups * A)


def ends_bytes(k: int) -> int:
    """Bytes of the two ends of a transition between states of k coordinates."""
    return (2 + 2) * k
