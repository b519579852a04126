"""Honest statistics of a few seeds."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache
from statistics import NormalDist
from typing import NamedTuple

import numpy as np

from linmdp.types import Array, IntArray

RESAMPLES, LEVEL = 4000, 0.95
TOGETHER = 64
"""Columns that are resampled at once."""
KEPT, BLOCK = 1000, 1 << 22
"""Weights of so many values are kept; of more, so many weights are made at a time."""


class Interval(NamedTuple):
    """A mean and its confidence interval; low and high equal the mean where there is one value."""

    mean: float
    low: float
    high: float

    def __str__(self) -> str:
        return self.text(".4g")

    def text(self, shown: Callable[[float], str] | str) -> str:
        """The mean and its interval as a function or a format shows them; the mean alone where both ends are as it."""
        mean, low, high = (format(x, shown) if isinstance(shown, str) else shown(x) for x in self)
        return mean if low == high else f"{mean} [{low}, {high}]"


def two(x: float) -> str:
    """A number with two digits, and no minus before 0."""
    return f"{round(x, 2) + 0.0:.2f}"


def mean_interval(values: Array) -> Interval:
    """The mean of n values with its BCa bootstrap interval (Efron 1987): bias-corrected and accelerated.

    The acceleration comes from the jackknife, which for a mean is the skewness of the values. With few seeds (n < 8) a
    bootstrap interval is somewhat too narrow; the number of seeds is therefore always shown beside it.
    """
    return mean_intervals(np.asarray(values, dtype=np.float64)[:, None])[0]


def mean_intervals(values: Array) -> list[Interval]:
    """The same of each column of (n, m) values, which share their resamples: a few matrix products for all of them."""
    values = np.asarray(values, dtype=np.float64)
    mean = values.mean(axis=0)
    found = [Interval(m, m, m) for m in mean.tolist()]
    spread = np.flatnonzero(np.ptp(values, axis=0) > 0) if len(values) > 1 else np.arange(0)
    for some in (spread[i : i + TOGETHER] for i in range(0, len(spread), TOGETHER)):
        means = np.concatenate([weights @ values[:, some] for weights in _weights(len(values))])
        for j, means_of_one in zip(some.tolist(), np.sort(means.T), strict=True):
            found[j] = Interval(found[j].mean, *_bca(values[:, j], found[j].mean, means_of_one))
    return found


def _bca(values: Array, mean: float, means: Array) -> tuple[float, float]:
    """The ends of the interval, from the means of the resamples in order."""
    near = 1e-12 * float(np.abs(values).max())  # the same values may add up to another last bit
    below, not_above = np.searchsorted(means, (mean - near, mean + near)) / len(means)
    normal, least = NormalDist(), 1 / len(means)
    z0 = normal.inv_cdf(min(max(float(below + not_above) / 2, least), 1 - least))
    centred = values - mean
    acceleration = float((centred**3).sum() / (6 * (centred**2).sum() ** 1.5))

    def quantile(p: float) -> float:
        z = z0 + normal.inv_cdf(p)
        place = normal.cdf(z0 + z / (1 - acceleration * z)) * (len(means) - 1)
        return float(np.interp(place, (int(place), int(place) + 1), means[int(place) : int(place) + 2]))

    return quantile((1 - LEVEL) / 2), quantile((1 + LEVEL) / 2)


def _weights(n: int) -> Iterable[Array]:
    """How much of each of n values is in the mean of each resample, (RESAMPLES, n) in all, some rows at a time."""
    return _kept_weights(n) if n <= KEPT else _drawn_weights(n)


def _drawn_weights(n: int) -> Iterator[Array]:
    rng, block = np.random.default_rng(0), max(1, BLOCK // n)
    for begin in range(0, RESAMPLES, block):
        rows = min(block, RESAMPLES - begin)
        picks = rng.integers(n, size=(rows, n)) + n * np.arange(rows)[:, None]
        yield np.bincount(picks.ravel(), minlength=rows * n).reshape(rows, n) / n


@lru_cache(maxsize=4)
def _kept_weights(n: int) -> tuple[Array, ...]:
    """The same for all settings of a table."""
    return tuple(_drawn_weights(n))


def paired_ratio(values: Array, base: Array) -> Interval:
    """The mean of value / base over pairs that share a seed, with its interval."""
    return mean_interval(np.asarray(values, dtype=np.float64) / np.asarray(base, dtype=np.float64))


def growth_exponent(sizes: Array, values: Array) -> Interval:
    """p in value ~ size^p: the slope of log value over log size, fitted for each seed; values (seeds, sizes)."""
    x = np.log(np.asarray(sizes, dtype=np.float64))
    centred = x - x.mean()
    return mean_interval(np.log(values) @ centred / (centred @ centred))


def regret_area(regret: Array, at: IntArray) -> float:
    """The area under the regret curve, divided by K: the mean of R_1, ..., R_K, the regret after each episode.

    `regret` holds R at the episodes `at`, counted from 0, the first and the last among them; between two of them the
    curve is a straight line. Of two learners with the same final regret, the one that lost it later has the less area.
    """
    regret, gaps = np.asarray(regret, dtype=np.float64), np.diff(at)
    # the sum over the n episodes from one point to just before the next: n R + (n - 1) / 2 (R_next - R)
    sums = gaps * regret[:-1] + (gaps - 1) / 2 * np.diff(regret)
    return float((sums.sum() + regret[-1]) / (at[-1] + 1))
