"""The general suite: every family draws sound environments, and the anchors of its scores are what play finds."""

from __future__ import annotations

import sys
import warnings
from typing import Any

import gymnasium
import numpy as np
import pytest
from benchmarks.general_anchors import Policy, beamed, best_return, mean_return, planned, random_return, shortest
from gymnasium import spaces
from gymnasium.utils.env_checker import check_env

import linmdp
from linmdp.envs.general import FAMILIES, NAMES, PACKAGES, instance
from linmdp.envs.general.base import Instance, TableInstance, tabulated
from linmdp.envs.general.physics import Floats, turned
from linmdp.envs.general.swings import Arms, Pendulums

SEEDS = range(3)


def drawn(name: str, seed: int) -> Instance:
    extra = FAMILIES[name].extra
    if extra is not None:
        pytest.importorskip(PACKAGES[extra], reason=f"the extra '{extra}' is not installed")
    return instance(name, seed)


def played(env: Any, seed: int) -> list[Any]:
    """Everything that is seen of two episodes of random play, which end in one way, after H steps at the latest."""
    rng, seen = np.random.default_rng(seed), list[Any]()
    for k in range(2):
        seen.append(env.reset(seed=seed + k)[0])
        for h in range(env.H):  # noqa: B007
            observation, reward, terminated, truncated, _ = env.step(int(rng.integers(env.action_space.n)))
            assert isinstance(reward, float)
            assert not (terminated and truncated)
            seen += [observation, reward, terminated, truncated]
            if terminated or truncated:
                break
        assert terminated or truncated
    return seen


def constant(action: int) -> Policy:
    return lambda env: action


def alike(one: list[Any], two: list[Any]) -> bool:
    return len(one) == len(two) and all(
        type(x) is type(y) and np.shape(x) == np.shape(y) and np.array_equal(x, y)
        for x, y in zip(one, two, strict=True)
    )


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("name", NAMES)
def test_instances_keep_the_contract_of_gymnasium(name: str, seed: int) -> None:
    env = drawn(name, seed)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=".*(infinity|image|flattened).*")  # of some boxes, and it is meant
        check_env(env)
    assert env.spec is not None
    made: Any = gymnasium.make(env.spec).unwrapped
    assert made.H == env.spec.max_episode_steps == env.H <= FAMILIES[name].H


@pytest.mark.parametrize("name", NAMES)
def test_the_seed_decides_the_instance_and_its_play(name: str) -> None:
    assert alike(played(drawn(name, 1), 5), played(drawn(name, 1), 5))
    assert not alike(played(drawn(name, 1), 5), played(drawn(name, 1), 6))
    assert not alike(played(drawn(name, 1), 5), played(drawn(name, 2), 5))


@pytest.mark.parametrize("name", [name for name in NAMES if FAMILIES[name].extra is None])
def test_the_best_is_more_than_random_play_and_than_every_constant_action(name: str) -> None:
    for seed in SEEDS[:2]:
        env = drawn(name, seed)
        if isinstance(env, TableInstance):  # tables have a test of their own
            continue
        best, uniform = best_return(name, env), random_return(env)
        assert best > uniform
        slack = 0.02 * (best - uniform) + 1e-9
        for a in range(env.A):
            returns = [mean_return(env, constant(a), 1, seed=s) for s in range(40)]
            assert np.mean(returns) - 3 * np.std(returns, ddof=1) / np.sqrt(40) <= best + slack


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("name", NAMES)
def test_exact_anchors_are_what_is_earned_by_play(name: str, seed: int) -> None:
    env = drawn(name, seed)
    if not isinstance(env, TableInstance):
        pytest.skip("no table")
    best, uniform, constants = env.model.values()
    assert best >= max(uniform, *constants)
    rng = np.random.default_rng(3)
    policies: list[Policy] = [planned(env), lambda env: int(rng.integers(env.A))]
    for policy, value in zip(policies, (best, uniform), strict=True):
        lots = [mean_return(env, policy, 20, seed=s) for s in range(50)]
        error = np.std(lots, ddof=1) / np.sqrt(len(lots))
        assert abs(np.mean(lots) - value) <= 5 * error + 1e-3 * (best - uniform)  # and for what is too rare to be seen


@pytest.mark.parametrize("name", NAMES)
def test_the_suite_is_an_environment_like_others(name: str) -> None:
    drawn(name, 3)
    # the usual features of games and the range of their scores are looked for in half a minute
    quickly = ",features=hashed,reward_low=0,reward_high=1000" * (name == "ram_games")
    env: Any = linmdp.make_env(f"general:family={name},instance=3{quickly}")
    assert env.task.H == instance(name, 3).H
    assert isinstance(env.action_space, spaces.Discrete)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Rewards of")  # beyond what a few episodes of random play saw
        result = linmdp.run(env, linmdp.make_agent("random", env), episodes=2, seed=0)
    assert np.isfinite(result.rewards).all()


@pytest.mark.parametrize("name", ["arms", "hills", "landers", "pendulums", "poles", "swingups"])
def test_a_law_of_motion_is_the_same_for_one_state_and_for_many(name: str) -> None:
    for seed in range(6):
        env: Any = drawn(name, seed)
        env.reset(seed=0)
        states = np.array(env.state) + np.random.default_rng(0).normal(size=(50, len(env.state)))
        for a in range(env.A):
            after, reward, over = env.law(states.T, a, np)
            for i, x in enumerate(states.tolist()):
                one, pay, ends = env.law(x, a, Floats)
                assert np.allclose(one, [numbers[i] for numbers in after], atol=1e-9)
                assert pay == pytest.approx(np.broadcast_to(reward, 50)[i])
                assert ends == np.broadcast_to(over, 50)[i]


def test_an_arm_without_torque_keeps_its_energy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Arms, "tau", 0.01)
    env: Any = next(env for env in (instance("arms", seed) for seed in range(20)) if env.A == 3)
    (m1, m2), (l1, l2), g = env.masses, env.lengths, env.g

    def energy(x: Any) -> float:
        a, b, v, w = x
        whole = v + w
        # of uniform rods: of the turn about the shoulder, of the middle of the second, of its own turn
        moving = m1 * l1**2 * v**2 / 6 + m2 * l2**2 * whole**2 / 24
        moving += m2 * (l1**2 * v**2 + l2**2 * whole**2 / 4 + l1 * l2 * v * whole * np.cos(b)) / 2
        resting = -m1 * g * l1 / 2 * np.cos(a) - m2 * g * (l1 * np.cos(a) + l2 / 2 * np.cos(a + b))
        return float(moving + resting)

    x: Any = [1.0, 0.5, 0.3, -0.2]
    before = energy(x)
    for _ in range(300):
        x = env.law(x, 1, Floats)[0]
        assert energy(x) == pytest.approx(before, rel=1e-6)


def test_what_a_beam_search_finds_is_what_planning_on_a_grid_earns() -> None:
    compared = 0
    for env in (instance("pendulums", seed) for seed in range(12)):
        assert isinstance(env, Pendulums)
        if env.noise.any() or not env.hangs:
            continue
        planning, uniform = best_return("pendulums", env), random_return(env)
        found = beamed(env, lambda x: -np.abs(turned(x[0])), np.array([0.1, 0.3]))
        assert found - uniform == pytest.approx(planning - uniform, rel=0.1)
        compared += 1
    assert compared


def test_the_shortest_way_through_an_empty_room_is_counted() -> None:
    pytest.importorskip("minigrid", reason="the extra 'minigrid' is not installed")
    env: Any = gymnasium.make("MiniGrid-Empty-5x5-v0").unwrapped
    env.reset(seed=0)
    assert shortest(env) == 5  # two ahead, a turn, two ahead


def test_instances_of_finite_families_end_their_days_in_both_ways() -> None:
    assert {instance("grids", seed).ends for seed in range(20)} == {False, True}


def test_a_table_is_worth_what_is_counted_by_hand() -> None:
    # state 0: action 0 pays 1 and stays, action 1 goes to state 1 for nothing; state 1 pays 5 and ends half the time
    rows = {(0, 0): [(1.0, 0, 1.0)], (0, 1): [(1.0, 1, 0.0)]}
    model = tabulated(2, 2, 3, 0, lambda s, a: rows.get((s, a), [(0.5, None, 5.0), (0.5, 1, 5.0)]))
    best, uniform, constant = model.values()
    assert best == 7.5  # over at once to state 1: 0 + 5 + 2.5
    assert constant.tolist() == [3.0, 7.5]
    assert uniform == pytest.approx(0.5 * (1 + 0.5 * (1 + 0.5) + 0.5 * 5) + 0.5 * 7.5)
    assert random_return(TableInstance(model)) == uniform


@pytest.mark.parametrize("name", [name for name in NAMES if FAMILIES[name].extra is not None])
def test_a_package_that_is_missing_is_named_with_its_extra(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    extra = str(FAMILIES[name].extra)
    monkeypatch.setitem(sys.modules, PACKAGES[extra], None)
    with pytest.raises(linmdp.InvalidParameter, match=rf"needs {PACKAGES[extra]}, .*pip install 'linmdp\[{extra}\]'"):
        instance(name, 0)
