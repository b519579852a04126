"""Messages: exceptions in one line, hints that name the fix, and amounts of memory as people write them."""

from __future__ import annotations

import numpy as np
import pytest

from linmdp.errors import InvalidData, UnknownName, check_reward, described, unknown
from linmdp.io.units import human_bytes, memory_unit
from linmdp.report.plots import mean_curve
from linmdp.results.curves import spaced


@pytest.mark.parametrize(
    ("error", "line"),
    [
        (ValueError("bad\n  value."), "ValueError: bad value"),
        (KeyError("name"), "KeyError: 'name'"),
        (RuntimeError(), "RuntimeError"),
        (InvalidData("The reward must be finite."), "The reward must be finite"),
    ],
)
def test_an_exception_is_described_in_one_line(error: Exception, line: str) -> None:
    assert described(error) == line
    assert len(described(ValueError("x" * 999), 50)) == 50


@pytest.mark.parametrize(
    ("name", "known", "hint"),
    [
        ("gamma", ["discount", "beta"], "Did you mean 'discount'?"),
        ("gamma", ["beta", "lam"], "There are: beta, lam."),
        ("Pong-v5", ["gym", "lock"], "Did you mean 'gym:Pong-v5'?"),
        ("Pong-v5", ["lock"], "There are: lock."),
        ("lokc", ["gym", "lock"], "Did you mean 'lock'?"),
    ],
)
def test_an_unknown_name_comes_with_the_one_that_was_meant(name: str, known: list[str], hint: str) -> None:
    with pytest.raises(UnknownName) as caught:
        unknown("name", name, known)
    assert str(caught.value) == f"There is no name '{name}'. {hint}"


@pytest.mark.parametrize(
    ("reward", "hint"), [(-2.0, "Give reward_low=-2, or reward=clip."), (7, "Give reward_high=7"), (np.nan, "Got nan.")]
)
def test_a_reward_out_of_range_names_the_parameter_that_widens_it(reward: float, hint: str) -> None:
    with pytest.raises(InvalidData) as caught:
        check_reward(reward, (-1.0, 1.0), 3, 2)
    assert str(caught.value).startswith("The reward of episode 3, step 2 must be in [-1, 1].")
    assert hint in str(caught.value)


def test_amounts_of_memory() -> None:
    amounts = (0, 800, 1023, 1024, 1536, 1_023_999, 2**20, 5 * 2**30, 3000 * 2**30)
    shown = ["0 B", "800 B", "1023 B", "1 KiB", "1.5 KiB", "1000 KiB", "1 MiB", "5 GiB", "3000 GiB"]
    assert [human_bytes(n) for n in amounts] == shown
    assert memory_unit(17_000) == ("KiB", 1024)
    assert memory_unit(0) == ("bytes", 1)


@pytest.mark.parametrize(("count", "most"), [(1, 60), (7, 60), (60, 60), (61, 60), (5000, 60), (5000, 2)])
def test_a_thinned_curve_keeps_both_ends(count: int, most: int) -> None:
    points = spaced(count, most)
    assert (points[0], points[-1]) == (0, count - 1)
    assert len(points) == min(count, most)
    assert (np.diff(points) > 0).all()


def test_a_mean_curve_lies_within_its_interval() -> None:
    values = np.cumsum(np.random.default_rng(0).random((5, 300)), axis=1)
    curve = mean_curve(values, np.arange(300) + 1.0)
    np.testing.assert_allclose(curve.mean, values.mean(axis=0))
    assert (curve.low <= curve.mean).all()
    assert (curve.mean <= curve.high).all()
    assert values[:, -1].min() <= curve.low[-1] < curve.high[-1] <= values[:, -1].max()
