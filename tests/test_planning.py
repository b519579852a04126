"""Planning by low rank equals planning by brute force."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from linmdp import InvalidData, optimum, policy_value
from linmdp.envs.base import LinearModel
from linmdp.envs.linear_mdps import hypercube, lock, riverswim, synthetic
from linmdp.envs.planning import uniform_policy
from linmdp.types import Array

small = st.builds(
    synthetic,
    S=st.integers(1, 6),
    A=st.integers(1, 4),
    d=st.integers(1, 5),
    H=st.integers(1, 5),
    seed=st.integers(0, 1000),
    concentration=st.floats(0.2, 3.0),
)


def dense(model: LinearModel) -> tuple[Array, Array]:
    """r (H, S, A) and P (H, S, A, S): what planning never forms."""
    table = model.features.table()
    return np.einsum("sad,hd->hsa", table, model.theta), np.einsum("sad,hdt->hsat", table, model.mu)


@settings(max_examples=50, deadline=None)
@given(model=small)
def test_optimum_is_value_iteration_on_the_dense_model(model: LinearModel) -> None:
    r, P = dense(model)
    V = np.zeros(model.S)
    plan = optimum(model)
    for h in reversed(range(model.H)):
        Q = r[h] + P[h] @ V
        np.testing.assert_allclose(plan.Q[h], Q, atol=1e-12)
        V = Q.max(axis=1)
    np.testing.assert_allclose(plan.V[0], V, atol=1e-12)
    assert not plan.V[model.H].any()


@settings(max_examples=50, deadline=None)
@given(model=small, seed=st.integers(0, 1000))
def test_policy_value_is_dense_evaluation(model: LinearModel, seed: int) -> None:
    r, P = dense(model)
    rng = np.random.default_rng(seed)
    actions = rng.integers(model.A, size=(model.H, model.S))
    chances = rng.dirichlet(np.ones(model.A), size=(model.H, model.S))
    for policy, weights in ((actions, np.eye(model.A)[actions]), (chances, chances)):
        V = np.zeros(model.S)
        for h in reversed(range(model.H)):
            V = (weights[h] * (r[h] + P[h] @ V)).sum(axis=1)
        np.testing.assert_allclose(policy_value(model, policy.__getitem__)[0], V, atol=1e-12)


def test_optimum_beats_every_policy_of_a_tiny_model() -> None:
    model = synthetic(S=2, A=2, d=2, H=2, seed=3)
    values = [
        policy_value(model, np.array(actions).reshape(2, 2).__getitem__)[0]
        for actions in itertools.product(range(2), repeat=4)
    ]
    np.testing.assert_allclose(np.max(values, axis=0), optimum(model).V[0])


def test_uniform_policy_is_between() -> None:
    model = riverswim()
    assert (policy_value(model, uniform_policy(model))[0] < optimum(model).V[0]).all()


def test_a_policy_of_the_wrong_shape_is_refused() -> None:
    with pytest.raises(InvalidData, match=r"must have shape \(6,\) or \(6, 2\)"):
        policy_value(riverswim(), lambda h: np.zeros(3, dtype=int))


def test_known_optima() -> None:
    assert optimum(lock(H=7, distractor=0.01)).V[0, 0] == pytest.approx(1.0)
    # hypercube: the best action of each step reaches the goal with 2 delta; then 1 a step is paid from the next step on
    H, reach = 6, 2 / 6
    paid = sum((1 - reach) ** h * reach * (H - 1 - h) for h in range(H))
    assert optimum(hypercube(H=H, gap=1.0)).V[0, 0] == pytest.approx(paid)
