"""Devices, bandits and games of the general suite: what their tables and plans promise is what is earned."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from linmdp.envs.general import FAMILIES, instance
from linmdp.envs.general.base import Policy, mean_return
from linmdp.envs.general.explored import explored
from linmdp.envs.general.gridded import GridPlan, normal_nodes

SEEDS = range(3)


def agrees(env: Any, policy: Policy, value: float, unit: float, lots: int = 60) -> bool:
    """Whether the mean of `lots` episodes is within four errors, and a hundredth of the unit, of a value."""
    returns = [mean_return(env, policy, 1, seed=s) for s in range(lots)]
    return bool(abs(np.mean(returns) - value) <= 4 * np.std(returns, ddof=1) / np.sqrt(lots) + 0.01 * unit)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("name", ["thermostat", "dosing"])
def test_a_plan_on_a_grid_promises_what_it_earns(name: str, seed: int) -> None:
    env: Any = instance(name, seed)
    best, uniform = FAMILIES[name].best, FAMILIES[name].random
    assert best is not None
    value = best(env)
    unit = value - uniform(env)
    assert agrees(env, env.plan.policy, value, unit, lots=20)
    starts = np.array([(env.reset(seed=s), env.x)[1] for s in range(500)])
    promised = env.plan.q(0, starts).max(axis=0).mean()
    assert abs(promised - value) <= 0.05 * unit  # the grid blurs corners of the reward


@pytest.mark.parametrize("seed", range(6))
def test_bandits_pay_the_best_known_to_who_knows_the_means(seed: int) -> None:
    env: Any = instance("bandits", seed)
    best, uniform = FAMILIES["bandits"].best, FAMILIES["bandits"].random
    assert best is not None
    value = best(env)
    unit = value - uniform(env)
    assert agrees(env, lambda env: int(env.paid(env.context).argmax()), value, unit, lots=1000)
    rng = np.random.default_rng(0)
    assert agrees(env, lambda env: int(rng.integers(env.A)), value - unit, unit, lots=1000)


def test_a_grid_finds_the_plan_that_is_known() -> None:
    # walk by -1, 0 or 1 in one dimension, and pay the distance to 3: from 0 it costs 2 + 1 + 0 + 0
    def step(h: int, x: Any, action: int, z: Any) -> tuple[Any, Any]:
        after = x + action - 1
        return after, -abs(after[:, 0] - 3)

    plan = GridPlan([np.linspace(-10, 10, 41)], 3, 4, step, normal_nodes(1, 1))
    assert plan.q(0, np.array([[0.0], [2.5]])).max(axis=0) == pytest.approx([-3.0, -2.0])


def test_quadrature_has_the_moments_of_the_normal_law() -> None:
    z, w = normal_nodes(2, 5)
    assert w.sum() == pytest.approx(1)
    assert w @ z == pytest.approx(np.zeros(2), abs=1e-12)
    assert w @ z**4 == pytest.approx([3, 3])
    assert w @ (z[:, 0] * z[:, 1]) == pytest.approx(0, abs=1e-12)


def test_states_are_explored_from_the_start_and_equal_outcomes_are_one() -> None:
    def outcomes(s: str, a: int) -> list[tuple[float, str | None, float]]:
        if s == "a":
            return [(0.25, "b", 1.0), (0.25, "b", 1.0), (0.5, None, 0.0), (0.0, "never", 9.0)]
        return [(1.0, s, 2.0)]

    model, states = explored({"a": 1.0}, 2, 3, outcomes)
    assert states == ["a", "b"]
    assert model.chance[0, 0].tolist() == [0.5, 0.5]
    assert model.values()[0] == 0.5 * (1 + 2 + 2)


@pytest.mark.parametrize("name", ["admission", "battery", "dosing", "inventory", "sensor", "thermostat", "traffic"])
def test_what_a_display_shows_is_within_its_bounds(name: str) -> None:
    shapes = set()
    for seed in range(12):
        env: Any = instance(name, seed)
        observation, _ = env.reset(seed=seed)
        for _ in range(env.H):
            assert env.observation_space.contains(observation)
            observation = env.step(env.action_space.sample())[0]
        shapes.add(env.observation_space.shape)
    assert len(shapes) > 1  # what stands beside the numbers is drawn
