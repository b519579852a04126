"""Aggregates of scores: against values computed by hand, and with what any of them must satisfy."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest
from scipy.stats import trim_mean

from linmdp.results.stats import aggregate, difference, improvement, iqm, mean, profile

SCORES = np.array([[0.0, 0.4], [1.0, 0.6], [0.5, 0.9], [0.1, 0.2]])
"""4 runs on 2 tasks."""


def test_the_interquartile_mean_leaves_out_a_quarter_at_each_end() -> None:
    # 0, 0.1, | 0.2, 0.4, 0.5, 0.6, | 0.9, 1
    assert float(iqm(SCORES.ravel())) == pytest.approx((0.2 + 0.4 + 0.5 + 0.6) / 4)
    assert float(iqm(np.array([3.0, 1.0, 2.0]))) == 2.0  # three values have no quarter
    assert float(iqm(np.array([9.0, 1.0, 2.0, 4.0, -7.0]))) == pytest.approx(7 / 3)
    rng = np.random.default_rng(0)
    for n in range(1, 30):
        values = rng.normal(size=n)
        assert float(iqm(values)) == pytest.approx(trim_mean(values, 0.25))


def test_intervals_are_of_runs_and_not_of_tasks() -> None:
    """Where all runs of a task are equal there is nothing to draw, however different the tasks are."""
    flat = np.tile([0.0, 0.3, 1.0], (5, 1))
    for statistic in (iqm, mean):
        found = aggregate(flat, statistic)
        assert found.low == pytest.approx(found.mean)
        assert found.high == pytest.approx(found.mean)
    assert aggregate(flat, mean).mean == pytest.approx(1.3 / 3)


def test_the_bootstrap_has_the_distribution_that_can_be_counted() -> None:
    """Of two runs 0 and 1 on one task a resample has mean 0, 1/2, 1 with chances 1/4, 1/2, 1/4: all are in 95%."""
    found = aggregate(np.array([[0.0], [1.0]]), mean)
    assert found == (0.5, 0.0, 1.0)
    # of 64 runs, half of them 1, the mean is normal with deviation 1/16: the interval is 0.5 -+ 1.96 / 16
    many = aggregate((np.arange(64) % 2).astype(float)[:, None], mean)
    assert many.low == pytest.approx(0.5 - 1.96 / 16, abs=0.02)
    assert many.high == pytest.approx(0.5 + 1.96 / 16, abs=0.02)


def test_strata_are_drawn_on_their_own() -> None:
    """With two tasks the deviation of the mean is that of one divided by sqrt(2), which joint draws would not give."""
    one = np.linspace(0, 1, 40)[:, None]
    alone, both = aggregate(one, mean), aggregate(np.hstack([one, one]), mean)
    assert (both.high - both.low) / (alone.high - alone.low) == pytest.approx(1 / np.sqrt(2), rel=0.1)


def test_a_difference_that_is_the_same_for_every_seed_is_certain() -> None:
    found = difference(SCORES + 0.25, SCORES)
    assert found == pytest.approx((0.25, 0.25, 0.25))
    assert difference(SCORES, SCORES, iqm) == (0, 0, 0)
    assert difference(SCORES, SCORES[::-1], mean).mean == pytest.approx(0)


def test_the_probability_of_improvement_counts_pairs_within_each_task() -> None:
    better, base = np.array([[1.0, 5.0], [3.0, 5.0]]), np.array([[2.0, 9.0], [0.0, 5.0]])
    # task 1: 1>0, 3>2, 3>0 of four pairs: 3/4; task 2: 5<9, 5=5, twice: 1/4
    assert improvement(better, base).mean == pytest.approx((3 / 4 + 1 / 4) / 2)
    assert improvement(base, better).mean == pytest.approx(1 - improvement(better, base).mean)
    assert improvement(better, better[:1]).mean == pytest.approx((3 / 4 + 1 / 2) / 2)
    assert improvement(base + 100, base) == (1, 1, 1)


def test_a_profile_is_the_fraction_of_runs_above_each_score() -> None:
    share, low, high = profile(SCORES, np.array([-1.0, 0.0, 0.45, 1.0]))
    assert share.tolist() == [1, 7 / 8, 4 / 8, 0]
    assert (low <= share).all()
    assert (share <= high).all()
    assert low[0] == 1
    assert high[3] == 0


def test_many_seeds_take_little_memory() -> None:
    """Five thousand of each would be 25 million pairs in each of 2,000 resamples."""
    mine, others = np.random.default_rng(0).normal(size=(2, 3000, 1))
    tracemalloc.start()
    assert 0.4 < improvement(mine, others).low < improvement(mine, others).high < 0.6
    assert tracemalloc.get_traced_memory()[1] < 100e6
    tracemalloc.stop()
