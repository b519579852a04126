"""Gymnasium environments through the adapter: states, features by name, rewards."""

from __future__ import annotations

from copy import copy
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces
from gymnasium.utils.env_checker import check_env

import linmdp
from linmdp.envs.guard import Guard
from linmdp.features import BlockFeatures, Fourier, HashedFeatures, RandomFourier, TableFeatures, UnitFeatures
from toys import Toy

TASKS: dict[str, tuple[int | None, int, type]] = {
    "gym:CartPole-v1,H=12": (None, 200, RandomFourier),
    "gym:CartPole-v1,H=12,features=fourier": (None, 134, Fourier),
    "gym:CartPole-v1,H=12,features=auto,dim=30": (None, 60, RandomFourier),
    "gym:Acrobot-v1,H=4": (None, 300, RandomFourier),
    "gym:Acrobot-v1,H=4,features=fourier,order=2": (None, 219, Fourier),
    "gym:MountainCar-v0,H=8": (None, 300, RandomFourier),
    "gym:MountainCar-v0,H=8,features=fourier": (None, 48, Fourier),
    "gym:FrozenLake-v1,H=12": (16, 64, TableFeatures),
    "gym:FrozenLake8x8-v1,H=4": (64, 256, TableFeatures),
    "gym:Taxi-v3,H=2": (500, 3000, UnitFeatures),
    "gym:Taxi-v4,H=3": (500, 3000, UnitFeatures),
    "gym:CliffWalking-v0,H=6": (48, 192, TableFeatures),
    "gym:CliffWalking-v1,H=6": (48, 192, TableFeatures),
    "gym:Blackjack-v1,H=9": (704, 1408, UnitFeatures),
    "gym:Blackjack-v1,H=9,features=hashed": (None, 2 << 40, HashedFeatures),
}


@pytest.mark.filterwarnings("ignore::linmdp.LinMDPWarning")
@pytest.mark.parametrize("spec", TASKS)
def test_every_task_runs_with_its_default_features_and_rewards(spec: str) -> None:
    env = linmdp.make_env(spec)
    assert (env.task.S, env.task.d, type(env.task.features)) == TASKS[spec]
    hashed = isinstance(env.task.features, HashedFeatures)  # of too many dimensions to be written out
    for agent in ("random", "lsvi-ucb" if hashed else "lsvi-ucb:lam=0.1"):
        result = linmdp.run(env, linmdp.make_agent(agent, env, episodes=3), episodes=3, seed=0)
        assert np.isfinite(result.rewards).all()
    for step in Guard(env).random_episode(0, np.random.default_rng(0), seed=0):
        assert step.next_state in env.observation_space
        if not hashed:
            phi = env.task.features.phi(step.next_state)
            assert phi.shape == (env.task.A, env.task.d)
            assert np.linalg.norm(phi, axis=1).max() <= 1 + 1e-9


def test_a_warm_up_is_the_same_every_time_and_follows_its_seed() -> None:
    def psi(spec: str) -> Any:
        features = linmdp.make_env(spec).task.features
        assert isinstance(features, BlockFeatures)
        return features.psi(np.full((1, 4), 0.01))

    spec = "gym:CartPole-v1,H=9,features=fourier"
    np.testing.assert_array_equal(psi(spec), psi(spec))
    assert not np.array_equal(psi(spec), psi(f"{spec},seed=5"))


def test_scaling_by_data_is_tighter_than_by_bounds() -> None:
    bounds, data = (
        linmdp.make_env(f"gym:MountainCar-v0,features=fourier,scaling={s}").task.features for s in ("bounds", "data")
    )
    assert isinstance(bounds, Fourier)
    assert isinstance(data, Fourier)
    np.testing.assert_allclose(bounds.scaling.low, (-1.2, -0.07), atol=1e-6)
    assert (data.scaling.low > bounds.scaling.low).all()
    assert (data.scaling.high < bounds.scaling.high).all()


SPACES = {
    "two dice": (spaces.MultiDiscrete([6, 6], start=[1, 1]), 36, 72, TableFeatures),
    "bits": (spaces.MultiBinary(3), 8, 16, TableFeatures),
    "tuple": (spaces.Tuple((spaces.Discrete(5), spaces.Discrete(3, start=2))), 15, 30, TableFeatures),
    "large": (spaces.MultiDiscrete([20, 20, 20]), 8000, 16000, UnitFeatures),
    "never the same": (spaces.MultiDiscrete([100, 100, 100, 100]), None, 200, RandomFourier),
    "mixed": (spaces.Dict({"x": spaces.Box(-1, 1, (2,)), "n": spaces.Discrete(4)}), None, 200, RandomFourier),
}


@pytest.mark.parametrize("name", SPACES)
def test_spaces_of_several_parts_become_states(name: str) -> None:
    space, S, d, kind = SPACES[name]
    env = linmdp.GymTask(Toy(space, actions=spaces.Discrete(2, start=3)), H=5)
    assert isinstance(env.task.features, kind)
    assert (env.task.S, env.task.d) == (S, d)
    state, _ = env.reset(seed=0)
    for _ in range(5):
        assert state in env.observation_space
        assert env.task.features.phi(state).shape == (2, d)
        state, *_ = env.step(1)
    agent = linmdp.LSVIUCB(env.task, storage="centres", M=4, beta=0.1) if d <= 200 else linmdp.RandomAgent(env.task)
    assert linmdp.run(env, agent, episodes=2).rewards.tolist() == [2.5, 2.5]


def test_what_the_environment_chose_is_said() -> None:
    car = linmdp.GymTask("MountainCar-v0")
    assert car.chosen == {"features": "auto", "d": 300, "reward_low": -1.0, "reward_high": 0.0}
    range_: Any = {"reward_low": -10.0, "reward_high": 20.0}
    assert linmdp.GymTask("Taxi-v3", **range_).chosen == {"features": "onehot", "d": 3000}
    assert linmdp.GymTask("Taxi-v3", features="onehot", **range_).chosen == {}


def test_speeds_beyond_those_of_random_play_stay_apart_by_default() -> None:
    auto, fourier = (linmdp.GymTask("CartPole-v1", features=name).task.features for name in ("auto", "fourier"))
    assert isinstance(auto, RandomFourier)
    assert isinstance(fourier, Fourier)
    np.testing.assert_array_equal(auto.scaling.margin, [0, 10, 0, 10])  # positions and angles have bounds
    fast = np.array([[0, 4, 0, 0], [0, 5, 0, 0], [0, 1e3, 0, 0], [0, 1e4, 0, 0], [9, 0, 0, 0], [99, 0, 0, 0]])
    seen = auto.psi(fast)
    assert np.abs(seen[0] - seen[1]).max() > 0.01
    np.testing.assert_array_equal(seen[2], seen[3])
    np.testing.assert_array_equal(seen[4], seen[5])
    np.testing.assert_array_equal(*fourier.psi(fast[:2]))


@pytest.mark.parametrize(("id", "bandwidth"), [("MountainCar-v0", 0.25), ("CartPole-v1", 0.790569), ("Acrobot-v1", 1)])
def test_the_default_bandwidth_follows_from_coordinates_and_features(id: str, bandwidth: float) -> None:
    features = linmdp.GymTask(id).task.features
    assert isinstance(features, RandomFourier)
    np.testing.assert_allclose(features.bandwidth, bandwidth, atol=1e-6)
    given = linmdp.GymTask(id, dim=30, bandwidth=0.3).task.features
    assert isinstance(given, RandomFourier)
    assert (given.p, given.bandwidth) == (30, 0.3)


def test_every_combination_of_parts_is_a_state_of_its_own() -> None:
    space = spaces.Tuple((spaces.Discrete(5), spaces.Discrete(3, start=2)))
    env: Any = linmdp.GymTask(Toy(space, actions=spaces.Discrete(2, start=3)), H=5)
    assert sorted(env.state_of((a, b)) for a in range(5) for b in range(2, 5)) == list(range(15))


def test_parameters_of_maps_go_with_names_only() -> None:
    features = linmdp.one_hot(1, 2)
    with pytest.raises(linmdp.InvalidParameter, match="'order' parameter of 'CartPole-v1' must be left out where"):
        linmdp.GymTask("CartPole-v1", features=features, order=3)


@pytest.mark.parametrize("id", ["CartPole-v1", "FrozenLake-v1", "Blackjack-v1", "MountainCar-v0"])
@pytest.mark.filterwarnings("ignore::UserWarning")  # the checker's advice on spaces and unwrapping
def test_the_adapter_passes_the_env_checker(id: str) -> None:
    """Without a spec: from one, the checker would make a second environment, and Gymnasium cannot make adapters."""
    inner = gymnasium.make(id).unwrapped
    inner.spec = None
    check_env(linmdp.GymTask(inner, H=9, reward_low=-10, reward_high=20), skip_render_check=True)


@pytest.mark.parametrize("spec", ["gym:CliffWalking-v1,H=9", "gym:CartPole-v1,H=9"])
def test_auto_chooses_the_same_agent_whoever_has_asked_for_features_and_rewards_before(spec: str) -> None:
    env = linmdp.make_env(spec)
    fresh = linmdp.Auto(env.task).reasons
    linmdp.make_agent("lsvi-ucb", env)
    assert env.task.knows("reward_range")
    assert linmdp.Auto(env.task).reasons == fresh
    assert linmdp.Auto(copy(env.task)).reasons == fresh
