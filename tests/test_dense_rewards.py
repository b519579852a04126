"""Rewards of many values: held actions are tried in a learned model, and valued by returns as they were earned."""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np
import pytest

import linmdp
from linmdp import LSVIUCB
from linmdp.agents.dynamics import Dynamics
from linmdp.agents.storage.lookahead import LONGEST_HOLD, Lookahead
from linmdp.features.basis import RandomFourier
from linmdp.features.quadratic import Quadratic
from linmdp.features.scaling import Scaling
from linmdp.types import Task
from reference_lookahead import ReferenceLookahead

A, P, STEPS, LOW, HIGH = 3, 5, 30, -4.0, 4.0


def made(**own: Any) -> Any:
    features = RandomFourier(A, Scaling(-np.ones(2), np.ones(2), 10.0), dim=P, bandwidth=0.7)
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


def episode(agent: Any, k: int, *, own: bool = True) -> tuple[Any, ...]:
    """Played by the agent, or (`own` false) by actions that now and then change too early."""
    rng = np.random.default_rng(k)
    agent.rng = np.random.default_rng(k)
    agent.begin_episode()
    states, actions, rewards, over = [rng.uniform(-0.5, 0.5, 2)], list[int](), list[float](), False
    for h in range(STEPS):
        action = agent.act(h, states[-1]) if own or rng.random() < 0.8 else int(rng.integers(A))
        following = states[-1] + 0.01 * rng.standard_normal(2) + 0.04 * (action - 1) * np.array([1.0, 0.5])
        over = bool(abs(following[0]) > 0.9)
        reward = float(np.clip(following.sum() - 2 * over - 0.1 * action, LOW, HIGH))
        agent.observe(h, states[-1], action, reward, following, over)
        states, actions, rewards = [*states, following], [*actions, action], [*rewards, reward]
        if over:
            break
    agent.end_episode()
    return states, actions, rewards, over


def played(episodes: int = 14, first: int = 0, agent: Any = None) -> Any:
    agent = agent or made()
    for k in range(first, first + episodes):
        episode(agent, k)
    return agent


@pytest.mark.parametrize("own", [True, False])
def test_it_is_what_plain_loops_over_all_episodes_say(own: bool) -> None:
    agent = made()
    storage, features = agent._planner.storage, agent.task.features
    assert isinstance(storage, Lookahead)
    reference = ReferenceLookahead(features.psi, features.scaling, A, 0.99, storage.depth)
    ends = 0
    for k in range(12):
        states, actions, rewards, over = episode(agent, k, own=own)
        reference.learn(states, actions, rewards, over)
        ends += over
        if reference.values:
            reference.plan()
            agent.begin_episode()  # which plans; a new episode may begin at any time
        if reference.hold:
            assert storage.hold == reference.hold > 1
    assert 0 < ends < 12
    np.testing.assert_allclose(agent._planner.w[0], reference.w, atol=1e-6 * np.abs(reference.w).max())
    for state in np.random.default_rng(5).uniform(-0.8, 0.8, (8, 2)):
        np.testing.assert_allclose(agent.q_values(0, state), reference.q_values(state), rtol=1e-6, atol=1e-6)


def test_actions_are_held() -> None:
    agent = played()
    hold = agent._planner.storage.hold
    _, actions, _, _ = episode(agent, 50)
    assert hold > 1
    assert all(len(set(actions[i : i + hold])) == 1 for i in range(0, len(actions), hold))
    assert len(set(actions)) > 1 or agent.chosen["hold"] == hold


def test_it_says_what_it_chose() -> None:
    chosen = played().chosen
    assert chosen["planning"] == "lookahead"
    assert chosen["depth"] == 4  # the most with 100 sequences of three actions
    assert 1 < chosen["hold"] <= LONGEST_HOLD
    assert "storage" not in chosen


def test_impacts_do_not_bend_the_model() -> None:
    rng, quadratic = np.random.default_rng(0), Quadratic(Scaling(-np.ones(2), np.ones(2)))
    models = {}
    for hit in (False, True):
        models[hit] = Dynamics(1, quadratic)
        for k in range(20):
            states = rng.uniform(-1, 1, (40, 2))
            changes = 0.1 * states + 0.01 * rng.standard_normal((40, 2))
            changes[:4] += (hit and k > 1) * 5.0
            models[hit].learn(quadratic(states), np.zeros(40, dtype=int), changes, states)
    at = np.array([[0.5, -0.5]])
    clean, bent = (models[hit].predict(quadratic(at), at, np.ones(2))[0, 0] for hit in (False, True))
    assert np.abs(bent - clean).max() < 0.05  # least squares would be off by 0.45


def test_where_lookahead_is_worse_than_random_actions_these_play_every_other_episode() -> None:
    storage = played()._planner.storage
    storage.earned[:] = [[5, 10.0], [5, -10.0]]
    storage.at_random = 0
    turns = []
    for _ in range(4):
        storage.episode_over(10.0 if storage.at_random else -10.0)
        turns.append(storage.at_random)
    assert turns == [1, 0, 1, 0]
    storage.earned[:] = [[5, -10.0], [5, 10.0]]
    storage.episode_over(10.0)
    assert not storage.at_random


def test_a_saved_agent_goes_on_the_same() -> None:
    agent, other = played(), made()
    other.load_state_dict(agent.state_dict())
    for one in (agent, other):
        played(4, 100, one)
    for state in np.random.default_rng(5).uniform(-1, 1, (10, 2)):
        np.testing.assert_array_equal(agent.q_values(0, state), other.q_values(0, state))


@pytest.mark.parametrize(("name", "value"), [("dynamics.W", np.nan), ("hold", LONGEST_HOLD + 1), ("action", A)])
def test_what_is_damaged_is_not_loaded(name: str, value: float) -> None:
    state = played(8).state_dict()
    key = next(key for key in state if key.endswith("storage." + name))
    state[key] = np.full_like(state[key], value)
    with pytest.raises(linmdp.LinMDPError, match="saved agent"):
        made().load_state_dict(state)


def test_memory_does_not_grow() -> None:
    agent = made()
    before = agent.nbytes
    assert played(9, 0, agent).nbytes == before == agent.bytes_after(10**6)


@pytest.mark.parametrize(
    "given", [{"discount": 1.0}, {"stationary": True}, {"M": 50}, {"max_bytes": "4MiB", "episodes": 10}]
)
def test_explicit_parameters_work_as_before(given: dict[str, Any]) -> None:
    agent = made(**given)
    assert not isinstance(agent._planner.storage, Lookahead)
    assert agent.chosen["storage"] == "merged"


def test_a_coordinate_with_two_values_is_a_switch() -> None:
    pytest.importorskip("Box2D")
    features: Any = linmdp.make_env("gym:LunarLander-v3").task.features
    scaling = features.scaling
    np.testing.assert_allclose(scaling(np.eye(8)[6:])[:, 6:] - scaling(np.zeros((2, 8)))[:, 6:], 10 * np.eye(2))


def test_a_pendulum_with_three_torques_is_swung_up() -> None:
    class Torques(gymnasium.ActionWrapper[Any, Any, Any]):
        def __init__(self) -> None:
            super().__init__(gymnasium.make("Pendulum-v1"))
            self.action_space = gymnasium.spaces.Discrete(3)

        def action(self, action: int) -> Any:
            return np.array([2.0 * action - 2.0], dtype=np.float32)

    gymnasium.register("ThreeTorques-v0", lambda **_: Torques(), max_episode_steps=200)
    try:
        env = linmdp.make_env("gym:ThreeTorques-v0")
        result = linmdp.run(env, linmdp.make_agent("lsvi-ucb-fold", env), episodes=60, seed=101)
    finally:
        del gymnasium.registry["ThreeTorques-v0"]
    assert result.rewards[-20:].mean() > -600  # random: -1,200


def test_the_environment_tells_whether_rewards_take_many_values() -> None:
    assert not linmdp.make_env("gym:CartPole-v1").task.dense_rewards
    assert not linmdp.make_env("gym:MountainCar-v0").task.dense_rewards
    pytest.importorskip("Box2D")
    assert linmdp.make_env("gym:LunarLander-v3").task.dense_rewards
