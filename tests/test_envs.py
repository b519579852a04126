"""Every environment is what it says: a Gymnasium environment, and a linear MDP."""

from __future__ import annotations

import gymnasium
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env

import linmdp
from linmdp.envs.base import LinearModel, check_linear
from linmdp.envs.linear import LinearMDPEnv, linear_env
from linmdp.envs.linear_mdps import LINEAR_MDPS
from linmdp.envs.registration import GYM_IDS
from linmdp.types import Array

FAMILY = pytest.mark.parametrize("family", LINEAR_MDPS)


@pytest.mark.parametrize("gym_id", GYM_IDS)
@pytest.mark.filterwarnings("ignore::UserWarning")  # the checker's advice on metadata and unwrapping
def test_registered_and_passes_the_env_checker(gym_id: str) -> None:
    env = gymnasium.make(gym_id)
    check_env(env.unwrapped, skip_render_check=True)
    assert isinstance(env.unwrapped, LinearMDPEnv)


@FAMILY
@pytest.mark.parametrize("seed", range(3))
def test_is_a_linear_mdp(family: str, seed: int) -> None:
    assert [f.text for f in check_linear(LINEAR_MDPS[family](seed=seed)) if not f.ok] == []


@FAMILY
def test_generated_from_the_seed_alone(family: str) -> None:
    one, same, other = (LINEAR_MDPS[family](seed=s) for s in (1, 1, 2))
    np.testing.assert_array_equal(one.mu, same.mu)
    np.testing.assert_array_equal(one.features.table(), same.features.table())
    if family not in ("riverswim", "sensor", "inventory"):  # which have nothing random in them
        assert not np.array_equal(one.mu, other.mu)


def test_synthetic_is_uniform_on_the_simplex() -> None:
    """First and second moments of a flat Dirichlet: 1/d and 2 / (d (d+1))."""
    table = LINEAR_MDPS["synthetic"](S=2000, A=5, d=4, H=2).features.table()
    np.testing.assert_allclose(table.sum(axis=-1), 1.0)
    np.testing.assert_allclose(table.mean(axis=(0, 1)), 1 / 4, atol=0.01)
    np.testing.assert_allclose((table**2).mean(axis=(0, 1)), 2 / 20, atol=0.01)


def frequencies(env: LinearMDPEnv, state: int, action: int, draws: int) -> tuple[Array, Array]:
    counts, rewards = np.zeros(env.model.S), np.zeros(draws)
    env.reset(seed=0)
    for i in range(draws):
        env.reset(options={"state": state})
        s, rewards[i], _, _, _ = env.step(action)
        counts[s] += 1
    return counts / draws, rewards


@FAMILY
def test_steps_follow_the_model(family: str) -> None:
    env = linear_env(family, **({"S": 6, "A": 2, "d": 3, "H": 3} if family == "synthetic" else {}))
    model, draws = env.model, 4000
    for state, action in ((0, 0), (0, model.A - 1), (model.S - 1, 1)):
        phi = model.features.phi(state)[action]
        seen, rewards = frequencies(env, state, action, draws)
        np.testing.assert_allclose(seen, phi @ model.mu[0], atol=4 * np.sqrt(0.25 / draws))
        assert rewards.mean() == pytest.approx(phi @ model.theta[0], abs=0.005)
        assert rewards.std() == pytest.approx(model.noise, abs=0.002)


def test_noisy_rewards_stay_in_range() -> None:
    env = linear_env("synthetic", S=5, A=2, d=3, H=5, noise=1.0)
    _, rewards = frequencies(env, 0, 0, 300)
    assert rewards.min() == 0.0
    assert rewards.max() == 1.0


def test_starts() -> None:
    fixed, uniform, adversarial = (
        linear_env("synthetic", S=20, A=3, d=4, H=3, start=s) for s in ("fixed", "uniform", "adversarial")
    )
    assert {fixed.reset()[0] for _ in range(5)} == {0}
    assert len({uniform.reset(seed=i)[0] for i in range(60)}) > 10
    random_gap = adversarial.optimum.V[0] - linmdp.policy_value(
        adversarial.model, lambda h: np.full((20, 3), 1 / 3)
    )[0]  # fmt: skip
    assert adversarial.reset()[0] == random_gap.argmax()


def test_an_episode_has_H_steps_and_then_needs_a_reset() -> None:
    env = linear_env("lock", H=3)
    env.reset(seed=0)
    assert [env.step(0)[3] for _ in range(3)] == [False, False, True]
    with pytest.raises(linmdp.InvalidParameter, match="call reset"):
        env.step(0)


@pytest.mark.parametrize("action", [-1, 5, 1.5, "left"])
def test_an_action_outside_the_space_is_refused(action: object) -> None:
    env = linear_env("lock")
    env.reset(seed=0)
    with pytest.raises(linmdp.InvalidParameter, match=r"The action of lock must be a whole number in \[0, 4\]"):
        env.step(action)  # type: ignore[arg-type]


def broken(theta: Array | None = None, mu: Array | None = None) -> LinearModel:
    good = LINEAR_MDPS["riverswim"]()
    return LinearModel(
        name="broken",
        features=good.features,
        theta=good.theta if theta is None else theta,
        mu=good.mu if mu is None else mu,
    )


def test_check_finds_what_is_not_linear() -> None:
    mu, theta = LINEAR_MDPS["riverswim"]().mu.copy(), LINEAR_MDPS["riverswim"]().theta.copy()
    mu[3, 2, 1] += 0.5
    assert check_linear(broken(mu=mu))[0].ok is False
    mu[3, 2, 1] -= 1.5
    mu[3, 2, 4] += 1.0
    verdicts = [f.ok for f in check_linear(broken(mu=mu))]
    assert verdicts[:2] == [True, False]
    theta[0, 0] = 1.5
    assert check_linear(broken(theta=theta))[2].ok is False


def test_a_model_with_nan_or_wrong_shapes_is_refused() -> None:
    mu = LINEAR_MDPS["riverswim"]().mu.copy()
    with pytest.raises(linmdp.InvalidData, match=r"must have shape \(H, d, S\)"):
        broken(mu=mu[:, :, :3])
    mu[0, 0, 0] = np.nan
    with pytest.raises(linmdp.InvalidData, match="must be finite"):
        broken(mu=mu)


def test_greedy_never_opens_the_lock_and_optimism_does() -> None:
    env = linmdp.make_env("lock:H=10,A=5")
    regret = {}
    for beta in (0, 1):
        agent = linmdp.LSVIUCB(env.task, beta=beta, lam=1.0)
        regret[beta] = linmdp.run(env, agent, episodes=400, seed=0).final_regret
    assert regret[0] is not None
    assert regret[1] is not None
    assert regret[0] > 0.95 * 400
    assert regret[1] < 200
