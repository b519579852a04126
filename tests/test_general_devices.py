"""Devices, bandits and games of the general suite: what their tables and plans promise is what is earned."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from benchmarks.general_anchors import (
    ARCADE,
    PLANS,
    GridPlan,
    Policy,
    best_return,
    first_move,
    mean_return,
    normal_nodes,
    random_return,
)

from linmdp.envs.general import instance
from linmdp.envs.general.arcade import Ball
from linmdp.envs.general.base import explored

SEEDS = range(3)


def agrees(env: Any, policy: Policy, value: float, unit: float, lots: int = 60) -> bool:
    """Whether the mean of `lots` episodes is within four errors, and a hundredth of the unit, of a value."""
    returns = [mean_return(env, policy, 1, seed=s) for s in range(lots)]
    return bool(abs(np.mean(returns) - value) <= 4 * np.std(returns, ddof=1) / np.sqrt(lots) + 0.01 * unit)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("name", ["thermostat", "dosing"])
def test_a_plan_on_a_grid_promises_what_it_earns(name: str, seed: int) -> None:
    env: Any = instance(name, seed)
    value, plan = best_return(name, env), PLANS[name](env)
    unit = value - random_return(env)
    assert agrees(env, plan.policy, value, unit, lots=20)
    starts = np.array([(env.reset(seed=s), env.x)[1] for s in range(500)])
    promised = plan.q(0, starts).max(axis=0).mean()
    assert abs(promised - value) <= 0.05 * unit  # the grid blurs corners of the reward


@pytest.mark.parametrize("seed", range(6))
def test_bandits_pay_the_best_known_to_who_knows_the_means(seed: int) -> None:
    env: Any = instance("bandits", seed)
    value = best_return("bandits", env)
    unit = value - random_return(env)
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


@pytest.mark.parametrize("name", ["admission", "cards", "catch", "dice", "doors", "freeway", "misleading", "traps"])
def test_what_is_shown_decides_what_follows(name: str) -> None:
    for seed in range(4):
        env: Any = instance(name, seed)
        worth: dict[bytes, Any] = {}
        for s, Q in enumerate(env.model.optimum.Q[0]):
            env.state = s
            assert worth.setdefault(np.array(env.show()).tobytes(), Q) == pytest.approx(Q)


def test_in_games_that_need_memory_what_is_shown_is_not_enough() -> None:
    for seed in range(4):
        env: Any = instance("umbrella", seed)
        for k in range(20):
            env.reset(seed=k)
            _, forecast, _ = env.states[env.state]
            assert env.show()[0] == forecast
            env.step(0)
            assert env.show()[0] == 0
    plain, blind = instance("poles", 0).observation_space, instance("blind_poles", 0).observation_space
    assert np.isinf(plain.high).any()  # type: ignore[attr-defined]
    assert np.isfinite(blind.high).all()  # type: ignore[attr-defined]


def test_on_a_board_the_way_leads_round_what_costs_to_what_pays() -> None:
    moves = ((0, -1), (0, 1), (-1, 0), (1, 0), (0, 0))
    pay = np.zeros((6, 3, 4))
    pay[:, 1, 2] = -10
    pay[:, 1, 3] = 1
    assert first_move(pay, (1, 1), moves) in (2, 3)  # up or down, and not through it
    pay[:, 1, 2] = 0
    assert first_move(pay, (1, 1), moves) == 1
    assert first_move(np.zeros((1, 3, 4)), (0, 0), moves, np.array([0.0, 0.1, 0.0, 0.0])) == 1


def test_the_ball_turns_round_at_walls_ceiling_bricks_and_paddle() -> None:
    env: Any = instance("breakout", 0)
    env.reset(seed=0)
    bricks, right = np.zeros((env.rows, env.columns), np.bool_), env.columns - 1
    assert env.fly(Ball(2, right, 1, 1), bricks) == (Ball(3, right - 1, 1, -1), False)
    assert env.fly(Ball(0, 1, -1, 1), bricks) == (Ball(0, 2, 1, 1), False)
    bricks[1, 2] = True
    assert env.fly(Ball(2, 1, -1, 1), bricks) == (Ball(2, 2, 1, 1), True)
    assert not bricks.any()
    low = Ball(env.rows - 2, 1, 1, 1)
    assert env.landing(low) == (1, 2)
    assert env.landing(low._replace(down=-1)) is None
    assert env.caught(low, 1) == Ball(env.rows - 2, 2, -1, 1)
    assert env.caught(low, 2) == Ball(env.rows - 2, 2, -1, -1)


@pytest.mark.parametrize("name", ["breakout", "asterix"])
def test_who_plays_well_is_not_caught(name: str) -> None:
    for seed in SEEDS:
        env: Any = instance(name, seed)
        for k in range(5):
            env.reset(seed=k)
            over = False
            while not over:
                _, _, terminated, truncated, _ = env.step(ARCADE[name](env))
                over = terminated or truncated
            assert env.h == env.H


@pytest.mark.parametrize("name", ["asterix", "breakout", "invaders"])
def test_planning_does_not_touch_the_game(name: str) -> None:
    env: Any = instance(name, 1)
    env.reset(seed=3)
    for _ in range(20):
        seen, law = env.show(), env.np_random.bit_generator.state
        action = ARCADE[name](env)
        assert np.array_equal(env.show(), seen)
        assert env.np_random.bit_generator.state == law
        env.step(action)


def test_roads_can_be_crossed_but_not_without_looking() -> None:
    for seed in range(8):
        env: Any = instance("freeway", seed)
        best, uniform, constant = env.model.values()
        assert best >= 3 * env.model.reward.max()
        assert constant.max() - uniform < 0.8 * (best - uniform)
