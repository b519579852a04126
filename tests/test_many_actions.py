"""Bilinear features: they are what they are written out, and the catalogue is a linear MDP like any other."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import linmdp
from linmdp import LSVIUCB, LSVIUCBSelect, OptWLSVI, TableFeatures, Task
from linmdp.envs.base import LinearModel
from linmdp.envs.linear_mdps import LINEAR_MDPS
from linmdp.features import BilinearFeatures
from linmdp.types import Array
from test_agents_against_reference import assert_same
from test_budget import measured

some = settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])


def features_of(seed: int, A: int, p: int, d: int, S: int, simplex: bool) -> BilinearFeatures:
    rng = np.random.default_rng(seed)
    psi = rng.dirichlet(np.full(p, 0.5), size=A) if simplex else rng.normal(size=(A, p))
    psi[rng.integers(A, size=A // 4)] = psi[0]  # items that are the same tie
    F = rng.normal(size=(S, d, p))
    largest = np.linalg.norm(np.einsum("sdp,ap->sad", F, psi), axis=-1).max()
    return BilinearFeatures(F / largest, psi, bound=1 + 1e-9)


@some
@given(
    seed=st.integers(0, 2**16),
    A=st.sampled_from((1, 7, 128, 500)),
    p=st.integers(1, 5),
    beta=st.sampled_from((0.0, 0.1, 2.0)),
    cap=st.sampled_from((0.05, 1e9)),
    simplex=st.booleans(),
    flat=st.booleans(),
)
def test_values_are_those_of_the_features_written_out(
    seed: int, A: int, p: int, beta: float, cap: float, simplex: bool, flat: bool
) -> None:
    features, rng = features_of(seed, A, p, p + 1, 2, simplex), np.random.default_rng(seed + 1)
    w, root = rng.normal(size=(1, p + 1)), rng.normal(size=(p + 1, p + 1))
    metric = np.eye(p + 1) if flat else root @ root.T

    def score(products: Array, forms: Array) -> Array:
        return np.asarray(np.minimum(products[0] + beta * np.sqrt(forms), cap))

    for state in range(2):
        phi = features.phi(state)
        q = score(w @ phi.T, np.einsum("ad,ad->a", phi @ metric, phi))
        np.testing.assert_allclose(features.scan(state, w, metric, score), q, atol=1e-9)


@some
@given(
    seed=st.integers(0, 2**16),
    A=st.sampled_from((3, 40, 140)),
    agent=st.sampled_from(
        (
            (LSVIUCB, {"beta": 0.3, "lam": 0.5}),
            (LSVIUCB, {"beta": 0.1, "lam": 0.1, "stationary": True, "discount": 0.8}),
            (LSVIUCBSelect, {"beta": 0.3, "lam": 0.5, "M": 3}),
            (OptWLSVI, {"W": 4, "beta": 0.2, "lam": 0.2}),
        )
    ),
    ties=st.sampled_from(("first", "random")),
)
def test_an_agent_that_searches_acts_like_one_with_a_table(seed: int, A: int, agent: Any, ties: str) -> None:
    features, (cls, parameters) = features_of(seed, A, 3, 4, 4, True), agent
    both: list[Any] = []
    for phi in (features, TableFeatures(features.table(), bound=1 + 1e-9)):
        task = Task(S=4, A=A, d=4, H=3, reward_range=(0.0, 1.0), features=phi)
        both.append(cls(task, storage="search" if phi is features else "counts", ties=ties, **parameters))
    assert_same(both[0], both[1], both[0].task, episodes=6, seed=seed, end_probability=0.2, tolerance=1e-7)


@pytest.mark.parametrize("seed", range(3))
def test_lam_and_beta_from_the_data_are_the_same_too(seed: int) -> None:
    features, both = features_of(seed, 140, 3, 4, 4, True), list[Any]()
    for phi in (features, TableFeatures(features.table(), bound=1 + 1e-9)):
        both.append(LSVIUCB(Task(S=4, A=140, d=4, H=3, reward_range=(0.0, 1.0), features=phi)))
    both[1]._exploration.table = False  # tables have another floor for lam
    assert [agent.chosen["storage"] for agent in both] == ["search", "counts"]
    assert_same(both[0], both[1], both[0].task, episodes=6, seed=seed, end_probability=0.2, tolerance=1e-5)


def test_the_catalogue_is_what_its_table_is() -> None:
    model = LINEAR_MDPS["catalogue"](A=30, S=4, H=3, seed=2)
    table: Any = LinearModel(
        name="table",
        features=TableFeatures(model.features.table()),
        theta=model.theta,
        mu=model.mu,
        noise=model.noise,
    )
    for one, two in zip(linmdp.optimum(model), linmdp.optimum(table), strict=True):
        np.testing.assert_allclose(one, two, atol=1e-12)
    actions = np.random.default_rng(0).integers(30, size=(3, 4))
    values = [linmdp.policy_value(m, lambda h: actions[h]) for m in (model, table)]
    np.testing.assert_allclose(values[0], values[1], atol=1e-12)
    assert model.task.stationary


def test_many_actions_are_learned_and_nothing_is_kept_for_each() -> None:
    env = linmdp.make_env("catalogue:A=20000")
    agent = linmdp.make_agent("lsvi-ucb", env, episodes=80)
    result = linmdp.run(env, agent, episodes=80, seed=0, eval_every=80)
    assert result.random_return is not None
    assert result.optimal_return is not None
    assert result.rewards[40:].mean() > 0.2 * result.random_return + 0.8 * result.optimal_return
    assert agent.nbytes < 20_000  # nothing per action


def test_max_bytes_counts_the_search() -> None:
    for limit, peak, held, said in measured("lsvi-ucb:stationary=false", "catalogue:A=1000,S=3,H=2"):
        assert held <= said <= limit
        assert peak <= limit + (64 << 10)


def test_bad_shapes_are_refused() -> None:
    with pytest.raises(linmdp.InvalidData, match=r"F must be \(S, d, p\), and psi \(A, p\)"):
        BilinearFeatures(np.zeros((2, 3, 4)), np.zeros((5, 3)))
    with pytest.raises(linmdp.InvalidData, match="Features of state 0 must have norm at most 1"):
        BilinearFeatures(np.ones((1, 2, 2)), np.ones((3, 2)))
