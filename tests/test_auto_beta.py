"""beta="auto" follows the noise, is bounded, and shows what it chose; a discounted Q is a fixed point."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import linmdp
from linmdp.agents.auto_beta import FLOOR, MULTIPLES, AutoBeta, Z
from linmdp.agents.horizon import Horizon

CAPS = np.arange(4.0, 0, -1)


def width(scale: float = 1.0) -> AutoBeta:
    return AutoBeta(Horizon(4), 2, lam=0.25, caps=CAPS, scale=scale)


def feed(one: AutoBeta, returns: dict[int, float], episodes: int, noise: float = 0.0, seed: int = 0) -> list[int]:
    """Episodes of one step that return what the chosen multiple earns, with an error of that size."""
    rng, chosen = np.random.default_rng(seed), []
    for _ in range(episodes):
        one.choose()
        chosen.append(one.arm)
        reward = returns[one.arm] + noise * rng.standard_normal()
        one.see(0, np.eye(2), 0, reward)
        one.end(over=True)
    return chosen


def test_before_any_data_it_is_the_floor() -> None:
    assert width().choose() == pytest.approx(FLOOR * math.sqrt(0.25))
    assert width(10).choose() == pytest.approx(10 * FLOOR * math.sqrt(0.25)), "in units of the reward"


def test_it_grows_with_the_noise_and_not_beyond_the_largest_value() -> None:
    one = width()
    feed(one, dict.fromkeys(range(3), 0.0), 400, noise=2.0)
    one.arm = 0
    assert one.beta == pytest.approx(Z * 2.0, rel=0.2)
    one.arm = len(MULTIPLES) - 1
    assert one.beta == one.ceiling == math.sqrt(0.25) * 4


def test_the_multiple_that_earns_most_is_played_most() -> None:
    for best in range(len(MULTIPLES)):
        chosen = feed(width(), {arm: float(arm == best) for arm in range(3)}, 300, noise=0.3, seed=best)
        assert chosen.count(best) > 200
        assert set(chosen) == {0, 1, 2}, "every multiple is tried"


def test_a_multiple_that_can_not_be_the_best_is_beaten_and_one_that_can_is_not() -> None:
    one = width()
    feed(one, {0: 1.0, 1: 0.0, 2: 0.0}, 300, noise=0.1)
    one.arm = 0
    assert not one.beaten
    one.arm = 2
    one.see(0, np.eye(2), 0, 0.0)
    one.end(over=True)
    assert one.beaten
    even = width()
    feed(even, dict.fromkeys(range(3), 1.0), 300, noise=0.1)
    for even.arm in range(3):
        assert not even.beaten, "a choice between equals may stand until the next planning"


def test_a_planning_that_waits_does_not_stay_with_a_multiple_that_is_beaten_until_its_next_planning() -> None:
    env: Any = linmdp.make_env("sensor")
    agent: Any = linmdp.make_agent("lsvi-ucb:lam=0.1,stationary=true,replan=0.01", env)
    linmdp.run(env, agent, episodes=40, seed=0)
    planned, agent.schedule.due = agent.policy_version, 10**6
    agent._auto_beta.returns[:] = [[9, 9, 9], [9 * 8, 9 * 8, 9 * 1], [9 * 64.1, 9 * 64.1, 9 * 1.1]]
    agent._auto_beta.arm = 0
    agent.begin_episode()
    assert agent.policy_version == planned
    agent._auto_beta.arm = 2
    agent.begin_episode()
    assert agent.policy_version == planned + 1
    assert agent._auto_beta.arm != 2


def test_when_another_multiple_becomes_better_it_changes() -> None:
    one = width()
    feed(one, {0: 1.0, 1: 0.0, 2: 0.0}, 200, noise=0.1)
    chosen = feed(one, {0: 0.0, 1: 1.0, 2: 0.0}, 600, noise=0.1)
    assert chosen[-100:].count(1) > 70


@pytest.mark.parametrize(
    "agent",
    [
        "lsvi-ucb:lam=0.1",
        "lsvi-ucb:lam=0.1,storage=states",
        "lsvi-ucb:storage=centres,lam=0.1",
        "lsvi-ucb:lam=0.1,stationary=true",
    ],
)
def test_the_greedy_weights_are_those_of_beta_zero(agent: str) -> None:
    """On the data of one agent, planning without a bonus is what another agent with beta 0 plans."""
    env: Any = linmdp.make_env("synthetic:S=12,A=3,d=4,H=5")
    name = agent + (":" if ":" not in agent else ",")
    one: Any = linmdp.make_agent(agent, env)
    two: Any = linmdp.make_agent(name + "beta=0,cap=H", env)
    one.rng = two.rng = np.random.default_rng(0)
    for k in range(12):
        one.begin_episode()
        two.begin_episode()
        state, _ = env.reset(seed=k)
        for h in range(5):
            action = one.act(h, state)
            following, reward, *_ = env.step(action)
            for who in (one, two):
                who.observe(h, state, action, reward, following, False)
            state = following
        one.end_episode()
        two.end_episode()
    one.begin_episode()
    two.begin_episode()
    greedy = one._planner.greedy()
    table = env.task.features.table()
    for h in range(5):
        np.testing.assert_allclose(table[3] @ greedy[h], two.q_values(h, 3), atol=1e-8)


def test_the_width_says_its_value() -> None:
    env: Any = linmdp.make_env("riverswim")
    agent: Any = linmdp.make_agent("lsvi-ucb:lam=0.1", env)
    assert agent.get_params()["beta"] == "auto"
    first = agent.beta_value
    linmdp.run(env, agent, episodes=60)
    assert agent.beta_value != first
    assert first > 0


@pytest.mark.parametrize("agent", ["lsvi-ucb", "lsvi-ucb:storage=centres,lam=0.1,M=2000"])
def test_a_discounted_q_is_a_fixed_point(agent: str) -> None:
    env: Any = linmdp.make_env("riverswim:H=15")
    join = ":" if ":" not in agent else ","
    one: Any = linmdp.make_agent(f"{agent}{join}beta=0.5,stationary=true,discount=0.9", env)
    linmdp.run(env, one, episodes=40, seed=1)
    one.begin_episode()
    w = one._planner.w[0].copy()
    np.testing.assert_allclose(one._planner._backup(w), w, atol=2e-3 * one.caps[0])


def test_a_discount_needs_a_stationary_agent() -> None:
    env: Any = linmdp.make_env("lock")
    with pytest.raises(linmdp.InvalidParameter, match="'discount' parameter of lsvi-ucb must be 1 unless stationary"):
        linmdp.make_agent("lsvi-ucb:discount=0.9", env)


@pytest.mark.parametrize("agent", ["lsvi-ucb", "lsvi-ucb-fixed", "lsvi-ucb-adaptive", "opt-wlsvi"])
def test_one_regression_takes_less_memory_and_learns_sooner(agent: str) -> None:
    env: Any = linmdp.make_env("synthetic:S=40,A=4,d=6,H=20,stationary=true,concentration=0.3")
    found = {}
    for mode in ("false", "true"):
        own = {"lsvi-ucb-adaptive": ",tau_rel=1e-7", "opt-wlsvi": ",storage=centres"}.get(agent, "")
        made = linmdp.make_agent(f"{agent}:beta=0.05,stationary={mode}{own}", env, episodes=150)
        found[mode] = linmdp.run(env, made, episodes=150, seed=0, eval_every=5)
    regret = {mode: result.regret for mode, result in found.items()}
    assert regret["true"] is not None
    assert regret["false"] is not None
    assert regret["true"][-1] < 0.7 * regret["false"][-1]
    assert found["true"].peak_bytes < 0.5 * found["false"].peak_bytes
