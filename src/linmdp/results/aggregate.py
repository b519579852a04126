"""Scores of several runs on several tasks, summed up as Agarwal et al. (2021) do, whose package is rliable.

Scores are (n, m): n runs (seeds) on each of m tasks. The bootstrap is stratified: it draws runs anew within each task,
and never tasks, so that an interval says how much other seeds would change on these tasks.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from linmdp.results.stats import LEVEL, Interval
from linmdp.types import Array, IntArray

RESAMPLES = 2000
FEW = 4
"""Of fewer runs there is no middle half, and no profile to speak of."""

Statistic = Callable[[Array], Array]
"""From all scores of each resample, (..., n m), to one number of each, (...)."""


def iqm(scores: Array) -> Array:
    """The interquartile mean along the last axis: a quarter of the values, rounded down, is left out at each end."""
    cut = scores.shape[-1] // 4
    kept: Array = np.sort(scores, axis=-1)[..., cut : scores.shape[-1] - cut]
    return np.asarray(kept.mean(axis=-1))


def mean(scores: Array) -> Array:
    """The mean along the last axis."""
    return np.asarray(scores.mean(axis=-1))


def aggregate(scores: Array, statistic: Statistic = iqm) -> Interval:
    """A statistic of all n m scores together, with its 95% percentile interval."""
    scores = np.asarray(scores, dtype=np.float64)
    return _interval(float(statistic(scores.ravel())), statistic(_resampled(scores, _picks(scores.shape))))


def difference(scores: Array, base: Array, statistic: Statistic = mean) -> Interval:
    """How much more a statistic is than that of other runs on the same tasks and seeds, which are drawn together."""
    scores, base = np.asarray(scores, dtype=np.float64), np.asarray(base, dtype=np.float64)
    picks = _picks(scores.shape)
    drawn = statistic(_resampled(scores, picks)) - statistic(_resampled(base, picks))
    return _interval(float(statistic(scores.ravel()) - statistic(base.ravel())), drawn)


def improvement(scores: Array, base: Array) -> Interval:
    """The probability that a run beats one of (n', m) others on the same task, on average over tasks; a tie is half."""
    wins = np.sign(np.asarray(scores)[:, None, :] - np.asarray(base)[None, :, :]) / 2 + 0.5  # (n, n', m)
    (n, other, m), rng = wins.shape, np.random.default_rng(0)
    rows, columns = rng.integers(n, size=(RESAMPLES, n, 1, m)), rng.integers(other, size=(RESAMPLES, 1, other, m))
    drawn = wins[rows, columns, np.arange(m)].mean(axis=(1, 2, 3))
    return _interval(float(wins.mean()), drawn)


def profile(scores: Array, taus: Array) -> tuple[Array, Array, Array]:
    """The fraction of all runs with a score above each tau, and the ends of its 95% intervals, each (taus,)."""
    scores = np.asarray(scores, dtype=np.float64)
    above: Array = (scores[..., None] > taus).astype(np.float64)
    picks = _picks(scores.shape)
    drawn = np.stack([_resampled(above[..., i], picks).mean(axis=-1) for i in range(len(taus))], axis=-1)
    low, high = np.quantile(drawn, _ends(), axis=0)
    return above.mean(axis=(0, 1)), low, high


def _picks(shape: tuple[int, ...]) -> IntArray:
    """Which run of each task stands where in each resample, (RESAMPLES, n, m)."""
    return np.random.default_rng(0).integers(shape[0], size=(RESAMPLES, *shape))


def _resampled(scores: Array, picks: IntArray) -> Array:
    """All scores of each resample, (RESAMPLES, n m)."""
    drawn: Array = scores[picks, np.arange(scores.shape[1])]
    return drawn.reshape(len(picks), -1)


def _interval(value: float, drawn: Array) -> Interval:
    low, high = np.quantile(drawn, _ends())
    return Interval(value, float(low), float(high))


def _ends() -> tuple[float, float]:
    return (1 - LEVEL) / 2, (1 + LEVEL) / 2
