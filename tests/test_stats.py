"""The bootstrap interval is the one that SciPy computes."""

from __future__ import annotations

import numpy as np
import pytest

from linmdp.report.narrative import paired_comparisons
from linmdp.results.curves import thinned
from linmdp.results.stats import (
    KEPT,
    TOGETHER,
    growth_exponent,
    mean_interval,
    mean_intervals,
    paired_ratio,
    regret_area,
)
from linmdp.results.summary import by_agent
from linmdp.runner.batch import jobs_for, run_jobs


@pytest.mark.parametrize("seed", range(4))
def test_bca_interval_agrees_with_scipy(seed: int) -> None:
    from scipy.stats import bootstrap

    values = np.random.default_rng(seed).gamma(1.5, size=12)
    ours = mean_interval(values)
    theirs = bootstrap((values,), np.mean, method="BCa", n_resamples=20_000, rng=seed).confidence_interval
    assert ours.mean == pytest.approx(values.mean())
    assert ours.low == pytest.approx(theirs.low, rel=0.03)
    assert ours.high == pytest.approx(theirs.high, rel=0.03)


def test_interval_of_one_value_or_of_equal_values_is_that_value() -> None:
    assert mean_interval(np.array([2.0])) == (2.0, 2.0, 2.0)
    assert mean_interval(np.array([3.0, 3.0, 3.0])) == (3.0, 3.0, 3.0)


def test_intervals_of_columns_are_those_of_each_column() -> None:
    """Of few values and of many, whose resamples are made in several blocks."""
    rng = np.random.default_rng(0)
    for n, m in ((2, 3), (5, TOGETHER + 3), (KEPT + 200, 2)):
        values = rng.gamma(1.5, size=(n, m))
        values[:, 1] = 7.0
        for one, column in zip(mean_intervals(values), values.T, strict=True):
            assert one == pytest.approx(mean_interval(column), rel=1e-12)


def test_an_interval_does_not_depend_on_the_last_bits_of_a_sum() -> None:
    """0.1 + 0.2 + 0.3 adds up to two numbers: resamples that hold all values once are the mean, in any order."""
    values = np.array([0.1, 0.2, 0.3])
    whole = mean_interval(np.array([1.0, 2.0, 3.0]))
    assert mean_interval(values) == pytest.approx(tuple(x / 10 for x in whole), rel=1e-9)


def test_coverage_of_the_interval() -> None:
    """About 95 in 100 intervals hold the mean, a little less for few values."""
    rng = np.random.default_rng(0)
    inside = [i.low <= 1.0 <= i.high for i in (mean_interval(rng.normal(1.0, size=15)) for _ in range(200))]
    assert 0.87 < np.mean(inside) < 0.99


def test_paired_ratios_are_tighter_than_the_seeds_are_apart() -> None:
    base = np.array([10.0, 100.0, 1000.0])
    assert paired_ratio(2 * base, base) == (2.0, 2.0, 2.0)


def test_growth_exponents_of_powers() -> None:
    K = np.array([100, 200, 400, 800])
    values = np.stack([3 * K**0.5, 7 * K**0.5, K**0.6])
    found = growth_exponent(K, values)
    assert found.mean == pytest.approx((0.5 + 0.5 + 0.6) / 3)
    assert 0.5 - 1e-9 <= found.low <= found.mean <= found.high <= 0.6 + 1e-9


def test_regret_area_is_the_mean_of_the_curve_with_straight_lines_where_it_is_thinned() -> None:
    assert regret_area(np.array([1.0, 3.0, 4.0]), np.arange(3)) == pytest.approx(8 / 3)
    assert regret_area(np.array([5.0]), np.arange(1)) == 5.0
    curve = np.random.default_rng(0).random(1000).cumsum()
    assert regret_area(curve, np.arange(1000)) == pytest.approx(curve.mean())
    at = thinned(50_000)
    line = 0.5 * np.arange(1, 50_001)
    assert regret_area(line[at], at) == pytest.approx(line.mean())
    bent = np.minimum(line, 7000.0)
    assert regret_area(bent[at], at) == pytest.approx(np.interp(np.arange(50_000), at, bent[at]).mean())


def test_a_comparison_paired_comparisons() -> None:
    agents = ["lsvi-ucb:beta=1,lam=1", "lsvi-ucb-fixed:beta=1,lam=1,storage=features", "random", "optimal"]
    results = list(run_jobs(jobs_for("lock:H=5,A=3", agents, episodes=150, seeds=3), processes=1))
    (sentence,) = paired_comparisons(by_agent(results))
    assert sentence.startswith("Fixed (beta=1, lam=1, storage=features) uses ")
    assert "x the memory of LSVI-UCB (beta=1, lam=1) and loses " in sentence
    assert sentence.endswith("(3 seeds, paired).")
