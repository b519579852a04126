"""The steps of the proof in docs/bounded-memory.md that ask for no data structure, each on random numbers."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

many = settings(max_examples=300, deadline=None)
seeds, sizes, ridges = st.integers(0, 2**20), st.integers(1, 6), st.sampled_from((0.01, 1.0, 7.0))
SLACK = 1 + 1e-9


class Data:
    """n samples of d features of norm at most 1, their Lambda, and its inverse."""

    def __init__(self, seed: int, d: int, lam: float) -> None:
        self.rng, self.d, self.lam = np.random.default_rng(seed), d, lam
        self.n = int(self.rng.integers(0, 40))
        self.phi = self.points(self.n)
        self.Lambda = lam * np.eye(d) + self.phi.T @ self.phi
        self.inverse = np.linalg.inv(self.Lambda)

    def points(self, *shape: int) -> Any:
        """Points of the unit ball, (*shape, d)."""
        x = self.rng.standard_normal((*shape, self.d))
        return x / np.linalg.norm(x, axis=-1, keepdims=True) * self.rng.random((*shape, 1))

    def norm(self, x: Any) -> Any:
        """|x| in the norm of Lambda^-1."""
        return np.sqrt(np.einsum("...i,ij,...j->...", x, self.inverse, x))

    @property
    def log_det(self) -> float:
        """log det Lambda - d log lam."""
        return float(np.linalg.slogdet(self.Lambda)[1]) - self.d * math.log(self.lam)


@many
@given(seeds, sizes, ridges)
def test_errors_of_targets_move_a_regression_by_their_norm_at_most(seed: int, d: int, lam: float) -> None:  # I1
    data = Data(seed, d, lam)
    x, errors = data.points(), data.rng.standard_normal(data.n)
    total = data.phi.T @ errors
    assert abs(x @ data.inverse @ total) <= SLACK * np.linalg.norm(errors) * data.norm(x) + 1e-12
    assert data.norm(total) <= SLACK * np.linalg.norm(errors) + 1e-12


@many
@given(seeds, sizes, ridges)
def test_a_determinant_is_bounded_and_widths_add_up_to_it(seed: int, d: int, lam: float) -> None:  # I2 and I3
    data = Data(seed, d, lam)
    bound = d * math.log(1 + data.n / (lam * d))
    assert data.log_det <= SLACK * bound + 1e-9
    Lambda, total = lam * np.eye(d), 0.0
    for phi in data.phi:
        total += min(1.0, float(phi @ np.linalg.solve(Lambda, phi)))
        Lambda += phi[:, None] * phi
    assert total <= SLACK * 2 * data.log_det + 1e-9


@many
@given(seeds, sizes, ridges)
def test_a_width_grows_by_no_more_than_the_determinant(seed: int, d: int, lam: float) -> None:  # I4
    data = Data(seed, d, lam)
    more, x = data.points(5), data.points()
    later = data.Lambda + more.T @ more
    ratio = math.exp(np.linalg.slogdet(later)[1] - np.linalg.slogdet(data.Lambda)[1])
    assert data.norm(x) ** 2 <= SLACK * ratio * (x @ np.linalg.solve(later, x)) + 1e-12


def value(data: Data, points: Any, w: Any, form: Any, cap: float) -> Any:
    """max_a clip(phi'w + sqrt(phi' form phi), 0, cap) for points (..., A, d)."""
    raised = points @ w + np.sqrt(np.einsum("...i,ij,...j->...", points, form, points).clip(0.0))
    return raised.clip(0.0, cap).max(axis=-1)


@many
@given(seeds, sizes, ridges, st.integers(1, 4), st.floats(0, 3))
def test_values_of_centres_are_near_those_of_states(seed: int, d: int, lam: float, A: int, beta: float) -> None:
    """Steps 1 and 2: V at the centres of a sample against V at its next state, one by one and in all."""
    data = Data(seed, d, lam)
    n, C, cap, rng = 12, 3, 2.0, data.rng
    states, centres = data.points(n, A), data.points(n, C, A)
    w, alpha = 3 * rng.standard_normal(d), rng.dirichlet(np.ones(C), size=n)
    V = [value(data, x, w, beta**2 * data.inverse, cap) for x in (states[:, None], centres)]
    apart = states[:, None] - centres  # (n, C, A, d)
    linear, wide = np.abs(apart @ w).max(axis=-1), beta * data.norm(apart).max(axis=-1)
    assert (np.abs(V[1] - V[0]) <= SLACK * (linear + wide) + 1e-12).all()  # 1
    error = np.linalg.norm((alpha * (V[1] - V[0])).sum(axis=1))
    rho = np.linalg.norm(apart, axis=-1).max(axis=-1)
    W = np.einsum("nc,ncai,ncaj->ij", alpha, apart, apart)
    first = float(np.linalg.norm(w)) * math.sqrt((alpha * rho**2).sum()), math.sqrt(w @ W @ w)
    second = math.sqrt((alpha * wide**2).sum()), beta * math.sqrt(np.trace(data.inverse @ W))
    bound = float(min(first)) + float(min(second))
    assert error <= SLACK * min(bound, cap * math.sqrt(n)) + 1e-12  # 2


@many
@given(seeds, sizes, ridges, st.integers(1, 4), st.sampled_from((1e-6, 1e-2, 1.0)))
def test_values_depend_on_weights_and_widths_as_the_net_says(
    seed: int, d: int, lam: float, A: int, size: float
) -> None:
    data = Data(seed, d, lam)  # step 5: sup |V - V^| <= |v - v^| + |A - A^|_F^(1/2)
    moved, root = size * data.rng.standard_normal(d), size * data.rng.standard_normal((d, d))
    states, v, other = data.points(20, A), data.rng.standard_normal(d), data.inverse + root @ root.T
    apart = value(data, states, v, data.inverse, 2.0) - value(data, states, v + moved, other, 2.0)
    assert np.abs(apart).max() <= SLACK * (np.linalg.norm(moved) + np.linalg.norm(root @ root.T) ** 0.5) + 1e-9


@many
@given(seeds, ridges, st.floats(0.1, 2))
def test_the_mixture_is_what_the_proof_says(seed: int, lam: float, sigma: float) -> None:
    """Step 5 for d = 1: the mean of exp(x s - sigma^2 x^2 (Lambda - lam) / 2) over x ~ N(0, 1 / (sigma^2 lam))."""
    data = Data(seed, 1, lam)
    Lambda, deviation = float(data.Lambda[0, 0]), 1 / (sigma * math.sqrt(lam))
    total = sigma * float(data.phi[:, 0] @ data.rng.standard_normal(data.n))
    x = np.linspace(-12 * deviation, 12 * deviation, 20_001)
    density = np.exp(-0.5 * (x / deviation) ** 2) / (deviation * math.sqrt(2 * math.pi))
    mean = np.trapezoid(density * np.exp(x * total - sigma**2 * x**2 * (Lambda - lam) / 2), x)
    closed = math.sqrt(lam / Lambda) * math.exp(total**2 / Lambda / (2 * sigma**2))
    np.testing.assert_allclose(mean, closed, rtol=1e-3)


@many
@given(seeds, sizes, ridges)
def test_one_step_of_regression_is_off_by_ridge_noise_and_centres(seed: int, d: int, lam: float) -> None:
    """Step 6, for any v, noise and errors: |x'(w - v)| <= (sqrt(lam) |v| + |sum phi nu| + |eps|) |x|."""
    data = Data(seed, d, lam)
    v, noise, errors = data.rng.standard_normal(d), data.rng.standard_normal(data.n), data.rng.standard_normal(data.n)
    w, x = data.inverse @ data.phi.T @ (data.phi @ v + noise + errors), data.points()
    width = math.sqrt(lam) * np.linalg.norm(v) + data.norm(data.phi.T @ noise) + np.linalg.norm(errors)
    assert abs(x @ (w - v)) <= SLACK * width * data.norm(x) + 1e-9
    targets = data.phi @ v + noise + errors
    assert np.linalg.norm(w) <= SLACK * np.linalg.norm(targets) / math.sqrt(lam) + 1e-9  # L of step 5
