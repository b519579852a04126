"""From observations to [0, 1]^k, with the bounds of the space or the range of data."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from linmdp.errors import InvalidData
from linmdp.types import Array, BoolArray

LARGEST_BOUND = 1e10
"""A bound beyond this counts as none: some spaces use the largest float for "unbounded"."""

QUANTILE = 0.01
"""Of data, the lowest and the highest hundredth lie outside the range, and are clipped to it."""


def bounded(low: Array, high: Array) -> BoolArray:
    """Which coordinates have two bounds to scale by, (k,)."""
    return (np.abs(low) < LARGEST_BOUND) & (np.abs(high) < LARGEST_BOUND)


@dataclass(frozen=True, eq=False)
class Scaling:
    """x -> (x - low) / (high - low), clipped to [-margin, 1 + margin]; a coordinate whose range is empty becomes 0.

    Attributes
    ----------
    low, high : (k,)
    margin : how far beyond its range, in ranges, a coordinate is still told apart; (k,), or one number for all
    """

    low: Array
    high: Array
    margin: Array | float = 0.0

    def __post_init__(self) -> None:
        if not (np.isfinite(self.low).all() and np.isfinite(self.high).all() and (self.low <= self.high).all()):
            raise InvalidData("The bounds of a scaling must be finite, and each low at most its high.")

    @classmethod
    def fit(cls, low: Array, high: Array, states: Array | None = None, *, margin: float = 0.0) -> Scaling:
        """The bounds (k,) where both are finite; elsewhere quantiles of the states (n, k), with that margin."""
        finite = bounded(low, high)
        if finite.all():
            return cls(np.asarray(low, dtype=np.float64), np.asarray(high, dtype=np.float64))
        if states is None or not len(states):
            raise InvalidData("Coordinates without bounds need states to scale by. Got none.")
        seen = np.quantile(np.asarray(states, dtype=np.float64), (QUANTILE, 1 - QUANTILE), axis=0)
        wide: Array | float = np.where(finite, 0.0, margin) if margin else 0.0
        return cls(np.where(finite, low, seen[0]), np.where(finite, high, seen[1]), wide)

    @property
    def k(self) -> int:
        """Number of coordinates."""
        return len(self.low)

    @property
    def nbytes(self) -> int:
        """Bytes of the bounds."""
        return self.low.nbytes + self.high.nbytes + int(getattr(self.margin, "nbytes", 0))

    def __call__(self, states: np.ndarray) -> Array:
        """(n, ...) -> (n, k), in [-margin, 1 + margin]."""
        width, least, most = self._range
        part: Array = np.asarray(states, dtype=np.float64).reshape(len(states), -1) - self.low
        part /= width
        np.maximum(part, least, out=part)
        np.minimum(part, most, out=part)
        return part

    @cached_property
    def _range(self) -> tuple[Array, Array | float, Array | float]:
        """What to divide by, infinity where the range is empty, and the bounds of what comes of it."""
        width = np.where(self.high > self.low, self.high - self.low, np.inf)
        return width, -self.margin, 1 + self.margin
