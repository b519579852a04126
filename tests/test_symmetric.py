"""Symmetric matrices in half the space: the same numbers as with whole ones."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from linmdp.agents import symmetric

sizes, seeds = st.integers(1, 41), st.integers(0, 1000)


def pair(p: int, seed: int, ridge: float = 1e-3) -> tuple[Any, Any, np.random.Generator]:
    """A random matrix, and its half."""
    rng = np.random.default_rng(seed)
    rows, half = rng.standard_normal((2 * p, p)), np.zeros(symmetric.shape_of_half(p))
    symmetric.add_outer(half, rows[:p])
    symmetric.add_outer(half, rows[p:])
    symmetric.add_to_diagonal(half, ridge)
    return rows.T @ rows + ridge * np.eye(p), half, rng


def lower(whole: Any) -> Any:
    """Its factor L, upside down: L^-1."""
    return np.linalg.inv(np.linalg.cholesky(whole))


@given(sizes, seeds)
def test_a_half_holds_the_whole(p: int, seed: int) -> None:
    whole, half, _ = pair(p, seed)
    assert half.size <= p * (p + 1) / 2 + (p + 1) / 2
    np.testing.assert_allclose(symmetric.full(half), np.tril(whole), rtol=1e-12, atol=1e-12)


@given(sizes, seeds)
def test_a_half_is_factored_where_it_lies(p: int, seed: int) -> None:
    whole, half, rng = pair(p, seed)
    symmetric.factor(half)
    C, x = lower(whole), rng.standard_normal((p, 3))
    close = {"rtol": 1e-7, "atol": 1e-7 * np.abs(C).max() ** 2}
    np.testing.assert_allclose(symmetric.full(half), C, **close)
    np.testing.assert_allclose(symmetric.times(half, x), C @ x, **close)
    np.testing.assert_allclose(symmetric.transposed_times(half, x[:, 0]), C.T @ x[:, 0], **close)
    np.testing.assert_allclose(symmetric.solve(half, x), C.T @ C @ x, **close)
    np.testing.assert_allclose(symmetric.forms(half, x.T), ((C @ x) ** 2).sum(axis=0), **close)
    np.testing.assert_allclose(symmetric.trace_of_inverse(half), (C**2).sum())


@given(st.integers(2, 60), seeds)
def test_a_rounded_factor_is_right_where_the_condition_is_bad(p: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    rows = rng.standard_normal((3 * p, p)) * np.logspace(0, -4, p)  # eigenvalues over eight orders of magnitude
    half = np.zeros(symmetric.shape_of_half(p))
    symmetric.add_outer(half, rows)
    symmetric.factor(half)
    C = symmetric.full(half.astype(np.float32)).astype(np.float64)
    assert np.linalg.norm((rows @ C.T).T @ (rows @ C.T) - np.eye(p), 2) < 5e-3
