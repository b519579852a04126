"""The ridge regression and the incremental bonus stay what they are defined to be."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import linmdp
from linmdp import InvalidParameter
from linmdp.agents.exploration.bonus import Bonus
from linmdp.agents.horizon import Horizon
from linmdp.agents.ridge import Ridge, downdate, packed, products, quadratic_forms
from linmdp.agents.widths import confidence_width
from linmdp.types import Array


@given(st.integers(0, 2**32 - 1), st.integers(1, 5), st.integers(1, 6))
def test_packed_matrices_have_the_same_quadratic_forms(seed: int, n: int, d: int) -> None:
    rng = np.random.default_rng(seed)
    roots, columns = rng.normal(size=(n, d, d)), rng.normal(size=(d, 7))
    matrices = roots @ roots.swapaxes(-1, -2)
    forms = packed(matrices) @ products(columns)
    expected = np.stack([quadratic_forms(columns.T, matrix) for matrix in matrices])
    np.testing.assert_allclose(forms, expected, atol=1e-12 * np.abs(matrices).max() * (columns**2).sum())


@given(seed=st.integers(0, 500), n=st.integers(1, 4), d=st.integers(1, 80))
def test_downdate_is_sherman_morrison(seed: int, n: int, d: int) -> None:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 2 * d, d))
    Lambda = np.eye(d) + X.transpose(0, 2, 1) @ X
    inverse = np.linalg.inv(Lambda)
    inverse = (inverse + inverse.transpose(0, 2, 1)) / 2
    before, phi, x = inverse.copy(), rng.normal(size=(n, d)), rng.normal(size=d)
    v = downdate(inverse, phi)
    np.testing.assert_allclose(inverse, np.linalg.inv(Lambda + phi[:, :, None] * phi[:, None, :]), atol=1e-10)
    np.testing.assert_array_equal(inverse, inverse.transpose(0, 2, 1))
    np.testing.assert_allclose(before @ x @ x - (v @ x) ** 2, inverse @ x @ x, atol=1e-10)


def absorb(ridge: Ridge, *mask: bool) -> Array:
    """As the planner does it: keep, then absorb."""
    where, whole = np.array(mask), all(mask)
    ridge.keep(ridge.pending * where[:, None])
    v: Array = ridge.absorb(where, whole=whole)
    return v


def test_pending_samples_wait_until_their_step_is_planned() -> None:
    ridge = Ridge(2, 3, 0.5)
    phi = np.array([1.0, 2.0, 0.0])
    ridge.add(0, phi, 0.7)
    np.testing.assert_array_equal(ridge.Lambda_inv[0], 2 * np.eye(3))
    absorb(ridge, False, True)
    np.testing.assert_array_equal(ridge.Lambda_inv[0], 2 * np.eye(3))
    v = absorb(ridge, True, False)
    assert v[0].any()
    assert not v[1].any()
    assert not absorb(ridge, True, True).any(), "a sample is absorbed once"
    assert ridge.drift() < 1e-12  # which settles what waits for Lambda
    np.testing.assert_allclose(ridge.Lambda[0], 0.5 * np.eye(3) + np.outer(phi, phi))
    np.testing.assert_allclose(ridge.solve(0, np.zeros(3)), np.linalg.solve(ridge.Lambda[0], 0.7 * phi))
    before = ridge.Lambda_inv[0].copy()
    ridge.drop(np.array([True, False]))
    np.testing.assert_array_equal(ridge.Lambda_inv[0], before, err_msg="the old Q acts on")
    ridge.restart(np.array([True, False]))
    np.testing.assert_array_equal(ridge.Lambda_inv[0], 2 * np.eye(3))
    assert not ridge.u[0].any()


def test_many_updates_with_badly_scaled_features() -> None:
    """Condition number 1e8: the inverse stays an inverse, symmetric and positive definite."""
    d, updates, lam = 6, 200_000, 0.02
    rng = np.random.default_rng(0)
    scales = np.logspace(0, -4, d)  # Lambda's eigenvalues then span 1e8
    ridge, worst = Ridge(1, d, lam), 0.0
    everywhere = np.array([True])
    for k in range(updates):
        if k % 4096 == 0:
            features = rng.normal(size=(4096, d)) * scales * 10
        ridge.pending[0] = features[k % 4096]
        if ridge.stale:
            ridge.refactor(everywhere)
            ridge.absorbed = 0
        ridge.keep(ridge.pending)
        ridge.absorb(everywhere, whole=True)
        ridge.absorbed += 1
        if k % 49_999 == 0:
            worst = max(worst, float(ridge.drift()))
    worst = max(worst, float(ridge.drift()))
    assert np.linalg.cond(ridge.Lambda[0]) > 0.8e8
    assert worst < 1e-6
    np.testing.assert_array_equal(ridge.Lambda_inv[0], ridge.Lambda_inv[0].T)
    assert np.linalg.eigvalsh(ridge.Lambda_inv[0])[0] > 0


def test_the_optimistic_value_by_hand() -> None:
    q = Bonus(Horizon(2), np.array([3.0, 1.0]), 2.0)
    forms = np.array([0.0625, 1.0])
    np.testing.assert_allclose(q.q(0, np.array([[0.5, 2.0]]), forms), [1.0, 3.0])
    np.testing.assert_allclose(q.q(1, np.array([[0.5, 2.0], [0.0, 0.8]]), forms), [1.0, 1.0])
    np.testing.assert_allclose(forms, [0.0625, 0.36], err_msg="they fall by (phi'v)^2")
    np.testing.assert_array_equal(q.best(np.array([1.0, 1.0 - 1e-12, 0.9])), [True, True, False])


def test_caps() -> None:
    np.testing.assert_array_equal(Horizon(3).caps("H", 1.0), [3, 3, 3])
    np.testing.assert_array_equal(Horizon(3).caps("remaining", 2.0), [6, 4, 2])
    np.testing.assert_array_equal(Horizon(3).caps("remaining", -1.0), [0, 0, 0])
    np.testing.assert_allclose(Horizon(3, shared=True, discount=0.5).caps("remaining", 2.0), [3.5, 3.5, 3.5])


def test_a_width_per_step() -> None:
    q = Bonus(Horizon(2), np.array([9.0, 9.0]), np.array([1.0, 3.0]))
    np.testing.assert_allclose([q.q(h, np.zeros((1, 1)), np.array([4.0]))[0] for h in (0, 1)], [2.0, 6.0])


def test_the_three_forms_of_beta() -> None:
    assert confidence_width("x", 0.3, d=30, H=50, K=None) == 0.3
    assert confidence_width("x", "published", d=30, H=50, K=1500) == pytest.approx(0.15 * np.sqrt(np.log(6_750_000)))
    assert confidence_width("x", "theory", d=30, H=50, K=1000) == pytest.approx(
        1500 * np.sqrt(np.log(60 * 50_000 / 0.1))
    )
    with pytest.raises(InvalidParameter, match="'episodes' parameter of x must be given"):
        confidence_width("x", "theory", d=2, H=2, K=None)


def test_without_Lambda_a_fresh_inverse_comes_from_the_samples() -> None:
    d, n = 5, 40
    rng = np.random.default_rng(1)
    rows = rng.normal(size=(n, d))
    kept, bare = Ridge(2, d, 0.3), Ridge(2, d, 0.3, delay=0)
    for phi in rows:
        for ridge in (kept, bare):
            ridge.add(0, phi, 0.5)
            absorb(ridge, True, True)
    bare.Lambda_inv[0] *= 1.5  # an error that only a fresh inverse takes away

    def rebuild(h: int) -> Array:
        return 0.3 * np.eye(d) + (rows.T @ rows if h == 0 else 0)

    assert bare.drift(rebuild) > 0.1
    for ridge in (kept, bare):
        ridge.refactor(np.array([True, True]), rebuild)
    assert bare.drift(rebuild) < 1e-10
    np.testing.assert_allclose(bare.Lambda_inv, kept.Lambda_inv, atol=1e-12)
    assert kept.nbytes - bare.nbytes == (kept.Lambda.nbytes + kept.waiting.nbytes) > 0


@pytest.mark.filterwarnings("ignore::linmdp.LinMDPWarning")
@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize(
    "agent", ["lsvi-ucb", "lsvi-ucb-fixed:rho=0.6", "lsvi-ucb-adaptive:rho=0.8,budget=0.7,m=3,tau_rel=0.05"]
)
def test_agents_that_hold_their_samples_rebuild_Lambda_at_any_time(
    agent: str, dtype: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Inverses are made afresh every third episode, in the middle of phases and of steps that do not learn."""
    env = linmdp.make_env("synthetic:S=12,A=3,d=4,H=5")
    own = f",storage=features,dtype={dtype}" if ":" in agent else f":storage=features,dtype={dtype}"
    usual = linmdp.run(env, linmdp.make_agent(agent + own, env, episodes=60), episodes=60, seed=2)
    monkeypatch.setattr("linmdp.agents.ridge.REFACTOR_EVERY", 3)
    often = linmdp.run(env, linmdp.make_agent(agent + own, env, episodes=60), episodes=60, seed=2)
    np.testing.assert_allclose(often.rewards, usual.rewards)
    assert often.drift is not None
    assert usual.drift is not None
    assert max(often.drift, usual.drift) < 1e-12
