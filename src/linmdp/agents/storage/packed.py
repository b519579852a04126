"""Merged transitions in a few bytes each: whole numbers of few bits, in units that double when one is too large."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any, ClassVar

import numpy as np

from linmdp.agents.base import saved_array
from linmdp.agents.storage.base import FADED, Parts, Sample
from linmdp.agents.storage.merged import LEFT, ROUNDED, WIDER, Merged
from linmdp.agents.storage.rows import block_features
from linmdp.errors import InvalidData
from linmdp.features.base import FeatureMap
from linmdp.types import Array, IntArray

COMPARED = 384
"""Coordinates of the transitions that a new one is compared with at once."""

LOW = 16
"""What the four low bits of a number of 12 can tell apart."""

FARTHEST, MOST_PAID, SMALLEST = 2.0**11 - 1, 2.0**15 - 1, 2.0**-200
"""Units that changes and rewards have at most, and the unit before any has come."""


class Packed(Merged):
    """`Merged`, packed; how it is planned with is `Slim`'s.

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

    ends: Any
    origin: Array
    unit: Array
    reward: Any
    paid: Array
    squares: Array

    def __init__(self, parts: Parts, features: FeatureMap, M: int, state_bytes: int) -> None:
        super().__init__(parts, features, M, state_bytes)
        self.ends, self.origin, self.unit = np.zeros((0, 3, 0), dtype=np.uint8), np.zeros(0), np.zeros((2, 0))
        self.key = np.zeros(M + 1, dtype=key_type(self.horizon.groups, self.A))
        self.sums, self.squares = np.zeros((1, M + 1), dtype=np.float32), np.zeros(self.horizon.groups)
        self.reward, self.paid = np.zeros(M + 1, dtype=np.int16), np.full((), SMALLEST)

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


def key_type(groups: int, A: int) -> np.dtype[Any]:
    """The smallest whole numbers that tell all kinds of transitions apart."""
    return np.min_scalar_type(2 * groups * A)


def ends_bytes(k: int) -> int:
    """Bytes of the two ends of a transition between states of k coordinates."""
    return 3 * k
