"""Feature maps for numbers and for whole numbers: norms, blocks, scaling, and what each promises."""

from __future__ import annotations

import math
import pickle
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

import linmdp
from linmdp.features import BlockFeatures, FeatureMap, Fourier, RandomFourier, Scaling
from linmdp.features.base import NORM_SLACK
from linmdp.features.basis import LARGEST_D, coefficients
from linmdp.types import Array

LOW, HIGH = np.array([-2.0, 0.0, 5.0]), np.array([3.0, 1.0, 9.0])
SCALING = Scaling(LOW, HIGH)
MAPS: dict[str, Callable[[int], BlockFeatures]] = {
    "fourier": lambda A: Fourier(A, SCALING, order=2),
    "fourier coupled": lambda A: Fourier(A, SCALING, order=4, coupling=2),
    "auto": lambda A: RandomFourier(A, SCALING, dim=30),
}
every_map = pytest.mark.parametrize("name", MAPS)


def states_of(n: int, seed: int) -> np.ndarray:
    """States within the bounds, on them, or far outside."""
    rng = np.random.default_rng(seed)
    inside, outside = rng.uniform(LOW, HIGH, (n, 3)), rng.normal(0, 1e6, (n, 3))
    return np.choose(rng.integers(4, size=(n, 1)), [inside, np.tile(LOW, (n, 1)), np.tile(HIGH, (n, 1)), outside])


@every_map
@settings(max_examples=40, deadline=None)
@given(seed=st.integers(0, 10_000), n=st.integers(1, 12), A=st.integers(1, 4))
def test_norm_is_at_most_1_and_batch_is_phi_row_by_row(name: str, seed: int, n: int, A: int) -> None:
    features, states = MAPS[name](A), states_of(n, seed)
    assert isinstance(features, FeatureMap)
    batch = features.batch(states)
    assert batch.shape == (n, A, features.d)
    assert np.linalg.norm(batch, axis=-1).max() <= 1 + NORM_SLACK
    for one, state in zip(batch, states, strict=True):
        np.testing.assert_allclose(features.phi(state), one, atol=1e-12)


@every_map
def test_phi_is_psi_in_the_block_of_its_action(name: str) -> None:
    features, states = MAPS[name](3), states_of(6, 1)
    psi = features.psi(states)
    assert psi.shape == (6, features.p)
    assert features.d == 3 * features.p
    blocks = features.batch(states).reshape(6, 3, 3, features.p)
    for a in range(3):
        np.testing.assert_array_equal(blocks[:, a, a], psi)
        np.testing.assert_array_equal(np.delete(blocks[:, a], a, axis=1), 0.0)


@every_map
def test_a_map_is_the_same_when_it_is_made_again_or_pickled(name: str) -> None:
    states = states_of(5, 3)
    one, two = MAPS[name](2), MAPS[name](2)
    np.testing.assert_array_equal(one.psi(states), two.psi(states))
    np.testing.assert_array_equal(one.psi(states), pickle.loads(pickle.dumps(one)).psi(states))
    assert one.nbytes > 0


@given(
    low=arrays(np.float64, 4, elements=st.floats(-1e6, 1e6)),
    width=arrays(np.float64, 4, elements=st.floats(1e-3, 1e6)),
    u=arrays(np.float64, (3, 4), elements=st.floats(0, 1)),
)
def test_scaling_takes_the_bounds_to_0_and_1_and_cuts_beyond(low: Array, width: Array, u: Array) -> None:
    scaling = Scaling.fit(low, low + width)
    np.testing.assert_allclose(scaling(np.stack((low, low + width))), [[0] * 4, [1] * 4], atol=1e-12)
    np.testing.assert_array_equal(scaling(np.stack((low - 1, low + width + 1))), [[0] * 4, [1] * 4])
    np.testing.assert_allclose(scaling(low + u * width), u, atol=1e-6)


def test_scaling_without_bounds_reads_the_range_off_data() -> None:
    low, high = np.array([-np.inf, 0.0, -3.4e38]), np.array([np.inf, 1.0, 3.4e38])
    data = np.random.default_rng(0).uniform((-5, 0, 10), (5, 0.2, 20), size=(5000, 3))
    scaling = Scaling.fit(low, high, data)
    np.testing.assert_allclose(scaling.low, (-4.9, 0, 10.1), atol=0.1)
    np.testing.assert_allclose(scaling.high, (4.9, 1, 19.9), atol=0.1)
    assert scaling(data).min() == 0.0
    with pytest.raises(linmdp.InvalidData, match="need states to scale by"):
        Scaling.fit(low, high)


def test_a_coordinate_that_never_varies_is_0() -> None:
    scaling = Scaling(np.array([1.0, 0.0]), np.array([1.0, 1.0]))
    np.testing.assert_array_equal(scaling(np.array([[1.0, 0.5], [7.0, 1.0]])), [[0, 0.5], [0, 1]])


@pytest.mark.parametrize(("k", "order", "coupling"), [(1, 3, 1), (3, 2, 3), (4, 3, 2), (6, 2, 1)])
def test_fourier_coefficients_are_all_that_the_coupling_allows(k: int, order: int, coupling: int) -> None:
    found = {tuple(c) for c in coefficients(k, order, coupling).T}
    every = np.stack(np.meshgrid(*[np.arange(order + 1)] * k), axis=-1).reshape(-1, k)
    assert found == {tuple(c) for c in every.astype(float) if np.count_nonzero(c) <= coupling}
    assert Fourier(1, Scaling(np.zeros(k), np.ones(k)), order=order, coupling=coupling).p == len(found)


def test_fourier_is_the_formula() -> None:
    features = Fourier(1, Scaling(np.zeros(2), np.ones(2)), order=1)
    x, y = 0.3, 0.8
    expected = [1, math.cos(math.pi * x), math.cos(math.pi * y), math.cos(math.pi * (x + y))]
    np.testing.assert_allclose(features.psi(np.array([[x, y]]))[0], np.array(expected) / 2)


def test_random_cosines_approach_their_kernel() -> None:
    features = RandomFourier(1, Scaling(np.zeros(3), np.ones(3)), dim=2048, bandwidth=0.5, seed=4)
    x = np.random.default_rng(1).uniform(size=(20, 3))
    kernel = np.exp(-((x[:, None] - x) ** 2).sum(-1) / (2 * 0.5**2))
    np.testing.assert_allclose(2 * features.psi(x) @ features.psi(x).T, kernel, atol=0.1)


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: Fourier(2, SCALING, order=20), r"d = A \* p at most 2048. Got 2 \* 9261 = 18522"),
        (lambda: Fourier(2, SCALING, order=0), "The 'order' parameter of fourier"),
        (lambda: Fourier(2, SCALING, coupling=0), "The 'coupling' parameter of fourier"),
        (lambda: RandomFourier(2, SCALING, dim=LARGEST_D), "d = A"),
        (lambda: RandomFourier(2, SCALING, seed=-1), "The 'seed' parameter of auto"),
    ],
)
def test_bad_parameters_are_refused_in_one_line(make: Callable[[], object], words: str) -> None:
    with pytest.raises(linmdp.InvalidParameter, match=words) as caught:
        make()
    assert "\n" not in str(caught.value)
