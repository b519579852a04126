"""Merged transitions in little memory: a few bytes each, and their features made a few at a time while planning."""

from __future__ import annotations

import itertools
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


class Starting(NamedTuple):
    """Weights that a fit starts from, and Lambda times them, (A, p) each."""

    w: Array
    image: Array


class Slim(Merged):
    """`Merged` for phi(s, a) = psi(s) in the block of action a: the same planning, with psi made anew for every step.

    Attributes
    ----------
    ends : (M + 1, 3, k) two whole numbers of 12 bits for each coordinate: where a transition began, and the change from
        there to what followed; the eight high bits of each in a byte, the others in one
    origin : (k,) the first state that came, from which the first of these numbers counts
    unit : (2, k) of these numbers; it doubles when one comes that is too large
    key : (M + 1,) as in `Merged`, in as few bytes as hold it
    sums : (1, M + 1) times, in single precision
    reward : (M + 1,) mean rewards, in whole numbers of `paid`, a unit that doubles as well
    squares : (G,) sum of squared rewards of each regression
    """

    _arrays: ClassVar = ("ends", "origin", "unit", "key", "sums", "reward", "paid", "squares", "radius", "scale")

    p: int
    ends: Any
    origin: Array
    unit: Array
    reward: Any
    paid: Array
    squares: Array
    _moments: Moments

    def __init__(self, parts: Parts, features: FeatureMap, M: int, state_bytes: int, at_once: int = 64) -> None:
        super().__init__(parts, features, M, state_bytes)
        self.at_once = at_once
        assert isinstance(self.ridge, InPlace)
        self.ridge.ready, self.ridge.gram, self.ridge.image = self.ready, self.gram_block, self.image
        self.p = features.d // self.A
        self.ends, self.origin, self.unit = np.zeros((0, 3, 0), dtype=np.uint8), np.zeros(0), np.zeros((2, 0))
        self.key = np.zeros(M + 1, dtype=key_type(self.horizon.groups, self.A))
        self.sums, self.squares = np.zeros((1, M + 1), dtype=np.float32), np.zeros(self.horizon.groups)
        self.reward, self.paid = np.zeros(M + 1, dtype=np.int16), np.full((), SMALLEST)
        self._once: dict[int, Once] = {}
        self._moments = Moments(0.0, 0.0, 0.0)

    # samples

    def add(self, h: int, sample: Sample) -> None:
        self.squares[self.horizon.group(h)] += sample.weight * sample.reward**2
        super().add(h, sample)

    def _make_space(self, state: Array) -> None:
        super()._make_space(state)
        self.scale[self.scale == 0] = 1.0
        self.origin, self.unit = np.array(state, dtype=np.float64).ravel(), np.full((2, state.size), SMALLEST)
        self.ends = np.zeros((self.M + 1, 3, state.size), dtype=np.uint8)

    def between(self, which: Any) -> tuple[Array, Array]:
        """Where some transitions began, and what followed, (n, k) each."""
        moved = unpacked(self.ends[which]) * self.unit
        begin, after = moved[:, 0], moved[:, 1]
        begin += self.origin
        after += begin
        return begin, after

    def _ends_of(self, which: Any) -> Array:
        return np.concatenate(self.between(which), axis=1)

    def _candidates(self, ends: Array, key: int) -> IntArray:
        unit = LOW * float(self.unit[0, 0])  # of the high bits of the first coordinate, which are enough
        place, reach = (ends[0] - self.origin[0]) / unit, ROUNDED * float(self.radius) / (self.scale[0] * unit) + 1
        column = self.ends[: self.count, 0, 0].view(np.int8)
        near = column >= place - reach
        near &= column <= place + reach
        near &= self.key[: self.count] == key
        return np.flatnonzero(near)

    def _in_parts(self, among: IntArray) -> Iterator[IntArray]:
        """Transitions, so few at a time as are compared at once."""
        some = at_least_one(COMPARED, self.scale.size)
        return (among[i : i + some] for i in range(0, len(among), some))

    def _near(self, ends: Array, alike: IntArray) -> int | None:
        found, least = None, float(self.radius) ** 2
        for part in self._in_parts(alike):
            distances = self._distances(ends, part)
            i = int(distances.argmin())
            if distances[i] < least or (found is None and distances[i] == least):
                found, least = int(part[i]), float(distances[i])
        return found

    def _nearest(self, ends: Array, but: int) -> float:
        others = np.flatnonzero(np.arange(self.count) != but)
        return min(float(self._distances(ends, part).min()) for part in self._in_parts(others))

    def _put(self, n: int, ends: Array, key: int, sums: Any) -> None:
        begin, after = ends.reshape(2, -1)
        self._reach(0, begin - self.origin)
        numbers = np.rint((begin - self.origin) / self.unit[0])
        # what followed is counted from where the transition is said to have begun, rounding and all
        change = after - (numbers * self.unit[0] + self.origin)
        self._reach(1, change)
        self.ends[n] = packed(np.stack((numbers, np.rint(change / self.unit[1]))))
        self.key[n], self.sums[0, n] = key, sums[0]
        self._pay(n, sums[1])

    def _reach(self, end: int, away: Array) -> None:
        """Double units until these changes (k,) can be told, or those from the origin."""
        for i in np.flatnonzero(np.abs(away) > FARTHEST * self.unit[end]).tolist():
            factor = doubled(abs(away[i]) / (FARTHEST * self.unit[end, i]))
            self.unit[end, i] *= factor
            for j in range(0, self.count, COMPARED):
                some = self.ends[j : min(j + COMPARED, self.count), :, i : i + 1]
                numbers = unpacked(some)
                numbers[:, end] = np.rint(numbers[:, end] / factor)
                some[:] = packed(numbers)

    def _pay(self, n: int, reward: float) -> None:
        """Write the mean reward of transition n."""
        if abs(reward) > MOST_PAID * self.paid:
            factor = doubled(abs(reward) / (MOST_PAID * float(self.paid)))
            self.paid *= factor
            self.reward[: self.count] = np.rint(self.reward[: self.count] / factor)
        self.reward[n] = round(reward / float(self.paid))

    def _increase(self, i: int, sums: Any) -> None:
        self.sums[0, i] += sums[0]
        mean = float(self.reward[i] * self.paid)
        self._pay(i, mean + float(sums[0] / self.sums[0, i]) * (sums[1] - mean))

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
                    self._increase(near, (self.sums[0, i], float(self.reward[i] * self.paid)))

    @property
    def _columns(self) -> tuple[Any, ...]:
        """What is kept of each transition, a number at a time."""
        return *self.ends.reshape(self.M + 1, -1).T, self.key, self.reward, self.sums[0]

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
            times, reward = self._weighed(at, self.sums[0, at].astype(np.float64)), self.reward[at] * self.paid
            yield Chunk(at, actions, times, reward, ended != 0, *self.between(at))

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

    def image(self, g: int, a: int, x: Array) -> Array:
        """That block times x (p, n)."""
        found = np.zeros_like(x)
        rows = ((chunk.times, self.rows(chunk.begin)) for chunk in self._chunks(g, a))
        for times, Y in itertools.chain(rows, self._ended(g)):
            found += Y.T @ (times[:, None] * (Y @ x))
        return found

    def inverse_of(self, g: int) -> Any:
        """The halves of its factors, for each action."""
        assert isinstance(self.ridge, InPlace)
        return self.ridge.factors(g)

    def forms(self, rows: Array, inverse: Any) -> Array:
        return np.stack([symmetric.forms(half, rows) for half in inverse], axis=1).astype(np.float64)

    def _ended(self, g: int) -> Iterator[tuple[Array, Array]]:
        """Times, and features of what followed, of the transitions that ended an episode, a few at a time."""
        key = self.key[: self.count]
        over = np.flatnonzero((key & 1) & (key >= self._key(g, 0, False)) & (key < self._key(g + 1, 0, False)))
        for at in (over[i : i + self.at_once] for i in range(0, len(over), self.at_once)):
            yield self._weighed(at, self.sums[0, at].astype(np.float64)), self.rows(self.between(at)[1])

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

    def _sum_up(self, z: Array, chunk: Chunk, values: Array, start: Starting | None = None) -> None:
        """z += sum phi_i y_i, (A, p)."""
        X, each = self.rows(chunk.begin), np.arange(len(values))
        weights = np.zeros((self.A, len(values)))
        weights[chunk.action, each] = chunk.times * values
        z += weights @ X
        if start is not None:
            weights[chunk.action, each] = chunk.times * (X @ start.w.T)[each, chunk.action]
            start.image[:] += weights @ X

    def _starting(self, g: int, w: Array) -> Starting:
        """What the fits of a regression start from: Lambda w, but for the transitions that `_sum_up` counts."""
        start = Starting(w.reshape(self.A, self.p), self.ridge.lam * w.reshape(self.A, self.p))
        for times, Y in self._ended(g):
            start.image[:] += (times[:, None] * (Y @ start.w.T)).T @ Y
        return start

    def target(self, h: int) -> Array:
        g, explore, discount = self.horizon.group(h), self.exploration, self.horizon.discount
        z, leads_on, after, start = np.zeros((self.A, self.p)), self.horizon.leads_on(h), h + 1, None
        n = total = squares = 0.0
        if leads_on:
            after = 0 if self.horizon.discounted else after
            forms = self._forms_after(g, after)
            vectors, start = explore.vectors(after), self._starting(g, self.w[self.horizon.level(after)])
        for chunk in self._chunks(g):
            V = np.zeros(len(chunk.times))
            if leads_on:
                products = self._products_after(chunk, vectors)
                V = explore.largest(explore.q(after, products, self._read_forms(forms[chunk.at])), axis=-1)
                V[chunk.ended] = explore.terminal[h]
                self._sum_up(z, chunk, V, start)
            y = chunk.reward + discount * V
            n, total = n + float(chunk.times.sum()), total + float(chunk.times @ y)
            squares += float(chunk.times @ (y * y))
        (final, finals, within), ended = self._once_of(g), float(explore.ended_value[h])
        self._moments = Moments(n + finals, total + finals * ended, squares + within + finals * ended * ended)
        z += ended / discount * final
        self._start_from(start)
        return z.ravel()

    def _start_from(self, start: Starting | None) -> None:
        assert isinstance(self.ridge, InPlace)
        self.ridge.near = None if start is None else (start.w.ravel(), start.image.ravel())

    def _products_after(self, chunk: Chunk, vectors: Sequence[Array]) -> Array:
        """phi(s', a)'x for every vector, transition and action, (vectors, n, A)."""
        Y = self.rows(chunk.after)
        return stacked([self.products(Y, vector) for vector in vectors])

    def _forms_after(self, g: int, after: int) -> Array:
        """The forms of what followed, (n, A), in a byte each (see `_read_forms`): they serve the bonus alone."""
        if g not in self._forms:
            self._forms[g] = np.zeros((self._planned, self.A if self.exploration.keeps_forms else 0), dtype=np.uint8)
            inverse = self.inverse_of(self.horizon.group(after))
            for chunk in self._chunks(g) if self.exploration.keeps_forms else ():
                found = self.forms(self.rows(chunk.after), inverse) * self.ridge.lam
                self._forms[g][chunk.at] = np.rint(PER_OCTAVE * -np.log2(found.clip(2.0**-31, 1.0)))
        return self._forms[g]

    def _read_forms(self, written: Array) -> Array:
        """What the bytes say: how often, in eighths, a form must be doubled to be 1 / lam, of which none is larger."""
        return np.asarray(OCTAVES[written] / self.ridge.lam)

    @property
    def _planned(self) -> int:
        """Transitions that a planning goes through."""
        return self.count

    def greedy_target(self, h: int, w: Array) -> Array:
        g, cap = self.horizon.group(h), self.exploration.caps[self.horizon.level(h + 1)]
        z, start = np.zeros((self.A, self.p)), self._starting(g, w)
        for chunk in self._chunks(g):
            V = np.minimum(self._products_after(chunk, [w])[0], cap).max(axis=-1)
            self._sum_up(z, chunk, np.where(chunk.ended, 0.0, V), start)
        self._start_from(start)
        return z.ravel()

    def moments(self, h: int) -> Moments:
        return self._moments  # of the last target, which was that of step h

    def forget(self) -> None:
        super().forget()
        self._once = {}

    # memory and files

    def bytes_after(self, samples: int) -> int:
        k = coordinates(self.features, self._state_bytes)
        return self.nbytes + (0 if len(self.ends) else (self.M + 1) * ends_bytes(k) + 4 * 8 * k)

    def load_state_dict(self, state: Mapping[str, np.ndarray]) -> None:
        saved = saved_array(state, "ends")
        if saved.ndim == 3:
            self.origin, self.unit = np.zeros(saved.shape[2]), np.zeros((2, saved.shape[2]))
        super().load_state_dict(state)
        units = np.append(self.unit, self.paid)
        if not (np.isfinite(self.origin).all() and np.isfinite(units).all() and (units > 0).all()):
            raise InvalidData("The transitions of a saved agent must be finite, in units above 0.")

    def _whole(self, ends: Array) -> bool:
        return bool(ends.shape[1:] == (3, self.origin.size) and ends.dtype == np.uint8)


LOW = 16
"""What the four low bits of a number of 12 can tell apart."""

FARTHEST, MOST_PAID, SMALLEST = 2.0**11 - 1, 2.0**15 - 1, 2.0**-200
"""Units that changes and rewards have at most, and the unit before any has come."""

PER_OCTAVE = 8
OCTAVES: Array = 2.0 ** (-np.arange(256) / PER_OCTAVE)
"""What bytes stand for where only the order of magnitude counts."""


def packed(numbers: Any) -> Any:
    """Whole numbers of 12 bits (..., 2, k) as bytes, (..., 3, k): their high bits, and the low ones of both."""
    whole = numbers.astype(np.int16)
    low = (whole[..., :1, :] % LOW) + LOW * (whole[..., 1:, :] % LOW)
    return np.concatenate((whole >> 4, low), axis=-2).astype(np.uint8)


def unpacked(found: Any) -> Any:
    """The numbers that `packed` made bytes of, (..., 2, k)."""
    numbers = found[..., :2, :].view(np.int8).astype(np.int16)
    numbers *= LOW
    numbers[..., 0, :] += found[..., 2, :] % LOW
    numbers[..., 1, :] += found[..., 2, :] // LOW
    return numbers


def doubled(times: float) -> float:
    """The least power of two that is as large."""
    return 2.0 ** math.ceil(math.log2(times))


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
    return 3 * k
