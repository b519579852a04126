"""The bootstrap interval is the one that SciPy computes."""

from __future__ import annotations

import numpy as np
import pytest

from linmdp.results.stats import mean_interval


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


def test_coverage_of_the_interval() -> None:
    """About 95 in 100 intervals hold the mean, a little less for few values."""
    rng = np.random.default_rng(0)
    inside = [i.low <= 1.0 <= i.high for i in (mean_interval(rng.normal(1.0, size=15)) for _ in range(200))]
    assert 0.87 < np.mean(inside) < 0.99
