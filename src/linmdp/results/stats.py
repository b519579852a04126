"""Honest statistics of a few seeds."""

from __future__ import annotations

from functools import lru_cache
from statistics import NormalDist
from typing import NamedTuple

import numpy as np

from linmdp.types import Array, IntArray

RESAMPLES = 4000


class Interval(NamedTuple):
    """A mean and its confidence interval; low and high equal the mean where there is one value."""

    mean: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"{self.mean:.4g} [{self.low:.4g}, {self.high:.4g}]"


def mean_interval(values: Array, *, level: float = 0.95, seed: int = 0) -> Interval:
    """The mean of n values with its BCa bootstrap interval (Efron 1987): bias-corrected and accelerated.

    The acceleration comes from the jackknife, which for a mean is the skewness of the values. With few seeds (n < 8) a
    bootstrap interval is somewhat too narrow; the number of seeds is therefore always shown beside it.
    """
    values = np.asarray(values, dtype=np.float64)
    mean = float(values.mean())
    if len(values) < 2 or np.ptp(values) == 0:
        return Interval(mean, mean, mean)
    means = np.sort(values[_picks(len(values), seed)].mean(axis=1))
    below = float(np.mean(means < mean) + np.mean(means == mean) / 2)
    normal = NormalDist()
    z0 = normal.inv_cdf(min(max(below, 1 / RESAMPLES), 1 - 1 / RESAMPLES))
    centred = mean - values
    acceleration = float((centred**3).sum() / (6 * (centred**2).sum() ** 1.5)) * -1

    def quantile(p: float) -> float:
        z = z0 + normal.inv_cdf(p)
        return float(np.quantile(means, normal.cdf(z0 + z / (1 - acceleration * z))))

    return Interval(mean, quantile((1 - level) / 2), quantile((1 + level) / 2))


@lru_cache(maxsize=4)
def _picks(n: int, seed: int) -> IntArray:
    """Which of n values each resample holds, (RESAMPLES, n); the same for all settings of a table."""
    return np.random.default_rng(seed).integers(n, size=(RESAMPLES, n))


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
