"""States made of several whole numbers: those alike help one another, as the literal transcription says."""

from __future__ import annotations

import dataclasses
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import linmdp
from linmdp import LSVIUCB, LSVIUCBFold, Task
from linmdp.agents.kernel_ridge import KernelRidge
from linmdp.envs.adapter import GymTask
from linmdp.features.tabular import one_hot
from linmdp.features.unit import UnitFeatures
from reference_kernel_ridge import ReferenceKernelRidge
from test_agents_against_reference import assert_same, runs

some = settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.too_slow])


def made_of(sizes: tuple[int, ...], *, A: int = 2, H: int = 3, table: bool = True) -> Task:
    S = int(np.prod(sizes))
    features = (one_hot if table else UnitFeatures)(S, A, sizes)
    return Task(S=S, A=A, d=S * A, H=H, reward_range=(0.0, 1.0), features=features, stationary=True)


@some
@given(
    sizes=st.sampled_from(((2, 3), (4, 2), (1, 5, 2), (2, 2, 2))),
    run=runs,
    table=st.booleans(),
    ties=st.sampled_from(("first", "random")),
    rewards=st.sampled_from(((0.0, 1.0), (-2.0, 1.5))),
)
def test_it_is_the_transcription(
    sizes: tuple[int, ...], run: dict[str, Any], table: bool, ties: str, rewards: tuple[float, float]
) -> None:
    task = dataclasses.replace(made_of(sizes, table=table), reward_range=rewards)
    fast = LSVIUCB(task, replan=0, ties=ties)
    assert isinstance(fast._planner.ridge, KernelRidge)
    assert_same(fast, ReferenceKernelRidge(task, sizes, ties), task, **run, tolerance=1e-5)


class Context(gymnasium.Env[Any, Any]):
    """One step: a coin whose chance of 1 depends on each number of the context, and on the action."""

    observation_space = spaces.MultiDiscrete([6, 5])
    action_space: Any = spaces.Discrete(2)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)
        self.context = self.np_random.integers((6, 5))
        return self.context, {}

    def step(self, action: int) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        chance = 0.5 + (0.08 * (self.context[0] - 2.5) + 0.1 * (self.context[1] - 2)) * (2 * action - 1)
        return self.context, float(self.np_random.random() < chance), True, False, {}


def regret_of(seed: int, kernels: bool) -> float:
    """What the actions at the end lose, over all contexts, after 300 episodes."""
    env = GymTask(Context(), H=1, reward_low=0.0, reward_high=1.0)
    if not kernels:
        env.task = dataclasses.replace(env.task, features=one_hot(30, 2))
    agent = linmdp.make_agent("lsvi-ucb-fold", env, episodes=300)
    linmdp.run(env, agent, episodes=300, seed=seed)
    lost = 0.0
    for s in range(30):
        first, second = divmod(s, 5)
        gain = 2 * (0.08 * (first - 2.5) + 0.1 * (second - 2))
        q = agent.q_values(0, s)
        lost += max(gain, 0.0) - gain * float(q[1] > q[0])
    return lost


@pytest.mark.filterwarnings("ignore::linmdp.errors.LinMDPWarning")
def test_states_alike_help_one_another() -> None:
    with_kernels, alone = (np.mean([regret_of(seed, kernels) for seed in range(4)]) for kernels in (True, False))
    assert with_kernels < 0.7 * alone


def test_the_space_of_the_environment_tells_its_parts() -> None:
    agent: Any = linmdp.make_agent("lsvi-ucb-fold", linmdp.make_env("gym:Blackjack-v1"), episodes=10)
    assert isinstance(agent._planner.ridge, KernelRidge)
    lake: Any = linmdp.make_agent("lsvi-ucb-fold", linmdp.make_env("gym:FrozenLake-v1"), episodes=10)
    assert not isinstance(lake._planner.ridge, KernelRidge)


@pytest.mark.parametrize("given", [{"max_bytes": "1MiB"}, {"M": 500, "storage": "sparse"}, {"lam": 0.1, "beta": 0.1}])
def test_explicit_parameters_work_as_before(given: dict[str, Any]) -> None:
    agent = LSVIUCB(made_of((4, 5)), episodes=10, **given)
    assert not isinstance(agent._planner.ridge, KernelRidge)


def test_a_saved_agent_goes_on_the_same() -> None:
    task, rng = made_of((4, 3)), np.random.default_rng(0)
    agents = [LSVIUCBFold(task) for _ in range(2)]

    def play(agent: Any, steps: list[tuple[int, int, float, int]]) -> None:
        agent.begin_episode()
        for h, step in enumerate(steps):
            agent.observe(h, *step, False)
        agent.end_episode()

    def episode() -> list[tuple[int, int, float, int]]:
        return [(int(rng.integers(12)), int(rng.integers(2)), float(rng.random()), int(rng.integers(12)))] * task.H

    for _ in range(20):
        play(agents[0], episode())
    agents[1].load_state_dict(agents[0].state_dict())
    for _ in range(5):
        same = episode()
        for agent in agents:
            play(agent, same)
    for h in range(task.H):
        for s in range(12):
            np.testing.assert_array_equal(agents[0].q_values(h, s), agents[1].q_values(h, s))


def test_it_holds_no_matrix_between_plannings() -> None:
    env = linmdp.make_env("gym:Blackjack-v1")
    agent: Any = linmdp.make_agent("lsvi-ucb-fold", env, episodes=200)
    linmdp.run(env, agent, episodes=200, seed=0)
    assert agent._planner.ridge._blocks == []
    assert agent.nbytes < 1 << 18
