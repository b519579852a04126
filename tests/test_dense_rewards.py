"""Rewards of many values: Q is counted from 0 and discounted, hope is bounded by what was paid, the best plan acts."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import linmdp
from linmdp import LSVIUCB
from linmdp.agents.incumbent import BEST, NEWEST
from linmdp.agents.storage.improving import Improving
from linmdp.features.basis import RandomFourier
from linmdp.features.scaling import Scaling
from linmdp.types import Task

A, P, STEPS, LOW, HIGH = 2, 5, 20, -3.0, 2.0


def made(**own: Any) -> Any:
    features = RandomFourier(A, Scaling(-np.ones(2), np.ones(2)), dim=P, bandwidth=0.7)
    task = Task(
        S=None,
        A=A,
        d=features.d,
        H=STEPS,
        reward_range=(LOW, HIGH),
        features=features,
        stationary=True,
        dense_rewards=True,
    )
    return LSVIUCB(task, **own)


def played(episodes: int = 12, first: int = 0, agent: Any = None) -> Any:
    agent = agent or made(ties="first")
    for k in range(first, first + episodes):
        rng = np.random.default_rng(k)
        agent.rng = np.random.default_rng(k)
        agent.begin_episode()
        state = rng.uniform(-0.5, 0.5, 2)
        for h in range(STEPS):
            action = int(rng.integers(A))
            following = state + 0.1 * rng.standard_normal(2) + 0.1 * (2 * action - 1)
            over = bool(abs(following[0]) > 0.9)
            agent.observe(h, state, action, float(np.clip(following.sum() - 2 * over, LOW, HIGH)), following, over)
            if over:
                break
            state = following
        agent.end_episode()
    return agent


def test_planning_is_the_fixed_point_that_the_page_says() -> None:
    agent = played()
    agent._planner.prepare(np.array([True]), np.array([True]), np.array([True]))
    agent._planner.plan(np.array([True]), whole=True, rng=agent.rng)
    storage, explore, phi = agent._planner.storage, agent._exploration, agent.task.features.phi
    assert isinstance(storage, Improving)
    assert agent.horizon.discount == 0.99
    n, d, lam, beta = storage.count, agent.task.d, float(agent._planner.ridge.lam), float(explore.beta[0])
    effective = (1 - 0.99**STEPS) / 0.01
    top, bottom = min(HIGH * effective, 2 * float(explore.most)), LOW * effective

    def Q(x: Any, w: Any, inverse: Any) -> Any:
        raw = [row @ w + beta * np.sqrt(row @ inverse @ row) for row in phi(x)]
        return np.clip(raw, bottom, top)

    Lambda, rows = lam * np.eye(d), []
    for i in range(n):
        key, times = int(storage.key[i]), float(storage.sums[0, i])
        before, after = storage.ends[i]
        x, over = phi(before)[key // 2], key % 2 == 1
        Lambda = Lambda + times * np.outer(x, x)
        if over:  # known without playing: a state in which an episode ended is worth 0, whatever one would do
            for y in phi(after):
                Lambda = Lambda + times * np.outer(y, y)
        rows.append((times, x, float(storage.sums[1, i]), after, over))
    inverse, w = np.linalg.inv(Lambda), agent._planner.w[0]
    z = np.zeros(d)
    for times, x, reward, after, over in rows:
        z = z + times * x * (reward + (0.0 if over else 0.99 * max(Q(after, w, inverse))))
    np.testing.assert_allclose(inverse @ z, w, atol=2e-4 * max(top, 1.0))
    storage.incumbent.acting = NEWEST
    for state in np.random.default_rng(5).uniform(-1, 1, (20, 2)):
        np.testing.assert_allclose(agent.q_values(0, state), Q(state, w, inverse), atol=1e-9)


def test_values_shrink_more_the_more_samples_there_are() -> None:
    agent = played(6)
    agent.begin_episode()
    weight = float(agent._exploration.sums[0, 5])
    assert float(agent._exploration.lam) >= 0.01 * weight / agent.task.d * (1 - 1e-12)


def test_the_best_plan_goes_on_acting() -> None:
    agent = played()
    storage, state = agent._planner.storage, np.zeros(2)
    storage.incumbent.w[:] = np.arange(agent.task.d)
    storage.incumbent.acting = NEWEST
    newest, w = agent.q_values(0, state), agent._planner.w[0].copy()
    storage.incumbent.acting = BEST
    best = agent.q_values(0, state)
    assert not np.allclose(newest, best)
    np.testing.assert_array_equal(agent._planner.w[0], w)


def test_a_saved_agent_goes_on_the_same() -> None:
    agent, other = played(), made(ties="first")
    other.load_state_dict(agent.state_dict())
    for one in (agent, other):
        played(4, 100, one)
    for state in np.random.default_rng(5).uniform(-1, 1, (10, 2)):
        np.testing.assert_array_equal(agent.q_values(0, state), other.q_values(0, state))


def test_a_saved_plan_must_be_finite() -> None:
    agent = played(3)
    state = agent.state_dict()
    name = next(name for name in state if name.endswith("incumbent.w"))
    state[name] = np.full_like(state[name], np.nan)
    with pytest.raises(linmdp.LinMDPError, match="best plan"):
        made(ties="first").load_state_dict(state)


@pytest.mark.parametrize("given", [{"discount": 1.0}, {"stationary": True}, {"max_bytes": "4MiB", "episodes": 10}])
def test_explicit_parameters_work_as_before(given: dict[str, Any]) -> None:
    assert not isinstance(made(**given)._planner.storage, Improving)


def test_the_environment_tells_whether_rewards_take_many_values() -> None:
    assert not linmdp.make_env("gym:CartPole-v1").task.dense_rewards
    assert not linmdp.make_env("gym:MountainCar-v0").task.dense_rewards
    pytest.importorskip("Box2D")
    assert linmdp.make_env("gym:LunarLander-v3").task.dense_rewards
