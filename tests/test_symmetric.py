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


@given(sizes, seeds)
def test_a_half_holds_the_whole(p: int, seed: int) -> None:
    whole, half, _ = pair(p, seed)
    assert half.size <= p * (p + 1) / 2 + (p + 1) / 2
    np.testing.assert_allclose(symmetric.full(half), whole, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(symmetric.trace(half), np.trace(whole))


@given(sizes, seeds)
def test_products_and_forms_are_those_of_the_whole(p: int, seed: int) -> None:
    whole, half, rng = pair(p, seed)
    x = rng.standard_normal((p, 3))
    np.testing.assert_allclose(symmetric.times(half, x), whole @ x, atol=1e-10)
    np.testing.assert_allclose(symmetric.times(half, x[:, 0]), whole @ x[:, 0], atol=1e-10)
    np.testing.assert_allclose(symmetric.forms(half, x.T), np.einsum("pn,pq,qn->n", x, whole, x), atol=1e-9)


@given(sizes, seeds)
def test_a_half_is_inverted_where_it_lies(p: int, seed: int) -> None:
    whole, half, _ = pair(p, seed)
    Lambda = half.copy()
    symmetric.invert(half)
    inverse = symmetric.full(half)
    np.testing.assert_allclose(inverse @ whole, np.eye(p), atol=1e-8)
    off = np.abs(whole @ inverse - np.eye(p)).max()
    assert abs(symmetric.off_identity(Lambda, half) - off) <= 1e-8
    half[0, 0] += 1.0
    assert symmetric.off_identity(Lambda, half) > 1e-3


@given(st.integers(2, 60), seeds)
def test_an_inverse_is_as_right_as_that_of_the_whole_where_the_condition_is_bad(p: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    rows = rng.standard_normal((3 * p, p)) * np.logspace(0, -4, p)  # eigenvalues over eight orders of magnitude
    half, whole = np.zeros(symmetric.shape_of_half(p)), rows.T @ rows
    symmetric.add_outer(half, rows)
    symmetric.invert(half)
    x = rng.standard_normal(p)
    usual = np.linalg.solve(whole, whole @ x) - x
    off = symmetric.times(half, whole @ x) - x
    assert np.abs(off).max() <= 100 * np.abs(usual).max() + 1e-6
