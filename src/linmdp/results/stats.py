"""Honest statistics of a few seeds, on one task and on many."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import combinations
from statistics import NormalDist
from typing import NamedTuple

import numpy as np

from linmdp.types import Array, IntArray

RESAMPLES, LEVEL = 4000, 0.95
TOGETHER = 64
"""Columns that are resampled at once."""
KEPT, BLOCK = 200, 1 << 19
"""Weights of so many values are kept; and numbers that are drawn at a time, whatever is resampled."""


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
    for picks in _picks(np.zeros((n, 1)), RESAMPLES):
        yield _counts(picks[..., 0], n) / n


def _picks(scores: Array, resamples: int, *others: Array) -> Iterator[IntArray]:
    """Which runs of each task stand where in each resample, (rows, n, m) for some resamples at a time.

    Where there are `others`, theirs of the same resamples come after it.
    """
    rng, block = np.random.default_rng(0), max(1, BLOCK // max(each.size for each in (scores, *others)))
    for begin in range(0, resamples, block):
        for each in (scores, *others):
            yield rng.integers(len(each), size=(min(block, resamples - begin), *each.shape))


def _counts(picks: IntArray, n: int) -> IntArray:
    """How often each of n values stands in each resample, (rows, n), from the places of those that do."""
    rows = len(picks)
    return np.bincount((picks + n * np.arange(rows)[:, None]).ravel(), minlength=rows * n).reshape(rows, n)


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


DRAWS = 2000
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
    drawn = [statistic(_resampled(scores, picks)) for picks in _picks(scores, DRAWS)]
    return _interval(float(statistic(scores.ravel())), np.concatenate(drawn))


def difference(scores: Array, base: Array, statistic: Statistic = mean) -> Interval:
    """How much more a statistic is than that of other runs on the same tasks and seeds, which are drawn together."""
    scores, base = np.asarray(scores, dtype=np.float64), np.asarray(base, dtype=np.float64)
    both = ((_resampled(each, picks) for each in (scores, base)) for picks in _picks(scores, DRAWS))
    drawn = [statistic(mine) - statistic(others) for mine, others in both]
    return _interval(float(statistic(scores.ravel()) - statistic(base.ravel())), np.concatenate(drawn))


def improvement(scores: Array, base: Array) -> Interval:
    """The probability that a run beats one of (n', m) others on the same task, on average over tasks; a tie is half."""
    scores, base = np.asarray(scores, dtype=np.float64), np.asarray(base, dtype=np.float64)
    (n, m), other, drawn = scores.shape, len(base), list[Array]()
    picks = _picks(scores, DRAWS, base)
    for mine, others in zip(picks, picks, strict=True):
        drawn.append(_won(scores, base, mine, others))
    everybody = np.broadcast_to(np.arange(max(n, other))[:, None], (1, max(n, other), m))
    return _interval(float(_won(scores, base, everybody[:, :n], everybody[:, :other])[0]), np.concatenate(drawn))


def _won(scores: Array, base: Array, mine: IntArray, others: IntArray) -> Array:
    """How often runs beat others, on average over tasks, (rows,), by the places of both, (rows, n or n', m)."""
    found = np.zeros(len(mine))
    for t, (s, b) in enumerate(zip(scores.T, base.T, strict=True)):
        order = np.argsort(b)
        low, high = (np.searchsorted(b[order], s, side) for side in ("left", "right"))
        counts = _counts(np.argsort(order)[others[..., t]], len(b))
        below = np.pad(np.cumsum(counts, axis=1), ((0, 0), (1, 0)))
        beaten = (below[:, low] + below[:, high]) / 2  # a tie is half
        found += np.take_along_axis(beaten, mine[..., t], axis=1).mean(axis=1) / len(b)
    return found / len(scores.T)


def profile(scores: Array, taus: Array) -> tuple[Array, Array, Array]:
    """The fraction of all runs with a score above each tau, and the ends of its 95% intervals, each (taus,)."""
    scores = np.asarray(scores, dtype=np.float64)
    above: Array = (scores[..., None] > taus).astype(np.float64)
    shares = (
        np.stack([_resampled(above[..., i], picks).mean(axis=-1) for i in range(len(taus))], axis=-1)
        for picks in _picks(scores, DRAWS)
    )
    low, high = np.quantile(np.concatenate(list(shares)), _ends(), axis=0)
    return above.mean(axis=(0, 1)), low, high


def _resampled(scores: Array, picks: IntArray) -> Array:
    """All scores of some resamples, (rows, n m)."""
    drawn: Array = scores[picks, np.arange(scores.shape[1])]
    return drawn.reshape(len(picks), -1)


def _interval(value: float, drawn: Array) -> Interval:
    low, high = np.quantile(drawn, _ends())
    return Interval(value, float(low), float(high))


def _ends() -> tuple[float, float]:
    return (1 - LEVEL) / 2, (1 + LEVEL) / 2


GROUP, GROUPS, WRONG = 5, 5, 0.05
"""Seeds of a group, and how many groups at most; how often any decision may be wrong."""
PERMUTATIONS = 10_000

Pair = tuple[str, str]


class AdaStop:
    """Which agents differ in the mean of their scores, tested by permutations after each group of runs.

    If two agents were the same, the scores of a group could as well be dealt out the other way. A pair is decided when
    its sums are further apart than those of every open pair in all but a few of `permutations`; up to group k those few
    are at most k / GROUPS of `WRONG` in all. Once decided, it no longer counts, and the others are looked at again.

    Attributes
    ----------
    open : the pairs that are not decided
    decided : those that are, who scores more first, with the seeds that it took
    seeds : so many were seen of an agent that is still wanted
    """

    def __init__(self, agents: Sequence[str], *, permutations: int = PERMUTATIONS) -> None:
        self.open, self.decided, self.seeds = list(combinations(agents, 2)), dict[Pair, int](), 0
        self._n, self._spent, self._rng = permutations, 0, np.random.default_rng(0)
        self._differences = {pair: np.zeros(permutations) for pair in self.open}
        """Sum of the first less that of the second, of each permutation that has not decided; row 0 is as it was."""

    @property
    def wanted(self) -> list[str]:
        """The agents that need another group."""
        return [] if self.seeds >= GROUP * GROUPS else list(dict.fromkeys(a for pair in self.open for a in pair))

    def add(self, scores: Mapping[str, Array]) -> None:
        """One more group: `GROUP` scores of each agent that is wanted."""
        self.seeds += GROUP
        rows, signs = len(self._differences[self.open[0]]), np.repeat([1.0, -1.0], GROUP)
        dealt = self._rng.permuted(np.tile(signs, (rows, 1)), axis=1)
        dealt[0] = signs
        for first, second in self.open:
            both = np.concatenate([scores[first], scores[second]])
            self._differences[first, second] += dealt @ both
        few = int(WRONG * self._n * self.seeds / (GROUP * GROUPS) + 1e-9) - self._spent
        while self.open:
            widest = np.max([np.abs(self._differences[pair]) for pair in self.open], axis=0)
            beyond = widest > np.sort(widest)[::-1][few] * (1 + 1e-12)  # the same values may add up to another last bit
            if not beyond[0]:
                break
            pair = max(self.open, key=lambda each: abs(float(self._differences[each][0])))
            self.open.remove(pair)
            self.decided[pair if self._differences[pair][0] > 0 else pair[::-1]] = self.seeds
        if self.open:
            self._spent += int(beyond.sum())
            self._differences = {pair: self._differences[pair][~beyond] for pair in self.open}
