"""Tabular Q-learning: the update by hand, what one table shares, and what it learns."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import linmdp
from linmdp.agents.base import Agent

TASK = linmdp.Task(S=3, A=2, d=6, H=4, reward_range=(0.0, 1.0), features=linmdp.one_hot(3, 2))
Step = tuple[int, int, float, int, bool]


def episode(agent: Agent, steps: list[Step]) -> None:
    agent.begin_episode()
    for h, (state, action, reward, following, terminated) in enumerate(steps):
        agent.observe(h, state, action, reward, following, terminated)
    agent.end_episode()


def test_optimistic_updates_are_those_of_the_paper() -> None:
    """Algorithm 1 of Jin et al. (2018), written out, over random episodes."""
    H, c, rng = 4, 0.02, np.random.default_rng(0)
    agent = linmdp.QLearning(TASK, c=c)
    Q = np.tile((H - np.arange(H + 1.0))[:, None, None], (1, 3, 2))
    N = np.zeros((H, 3, 2))
    for _ in range(50):
        steps: list[Step] = []
        state = int(rng.integers(3))
        for _ in range(H):
            following = int(rng.integers(3))
            steps.append((state, int(rng.integers(2)), float(rng.random()), following, False))
            state = following
        episode(agent, steps)
        for h, (x, a, r, y, _) in enumerate(steps):
            N[h, x, a] += 1
            t = N[h, x, a]
            alpha = (H + 1) / (H + t)
            V = min(H - h - 1, Q[h + 1, y].max()) if h < H - 1 else 0.0
            Q[h, x, a] = (1 - alpha) * Q[h, x, a] + alpha * (r + V + c * math.sqrt(H**3 / t))
    for h in range(H):
        for s in range(3):
            np.testing.assert_allclose(agent.q_values(h, s), np.minimum(Q[h, s], H - h))


def test_nothing_follows_a_terminal_state() -> None:
    agent = linmdp.QLearning(TASK, c=0)
    for _ in range(3):
        episode(agent, [(0, 1, 0.25, 2, True)])
    np.testing.assert_allclose(agent.q_values(0, 0), (4.0, 0.25))


def test_one_table_learns_from_every_step_and_news_travels_back_in_one_episode() -> None:
    agent = linmdp.QLearningGreedy(TASK, alpha=0.5, discount=0.5, stationary=True)
    episode(agent, [(0, 0, 0.0, 1, False), (1, 0, 0.0, 2, False), (2, 0, 1.0, 0, True)])
    for h in range(4):
        np.testing.assert_allclose([agent.q_values(h, s)[0] for s in range(3)], (0.03125, 0.125, 0.5))
    assert agent.nbytes < linmdp.QLearningGreedy(TASK).nbytes


def test_epsilon_is_the_chance_of_a_random_action() -> None:
    agent = linmdp.QLearningGreedy(TASK, epsilon=0.4, alpha=1.0)
    episode(agent, [(0, 1, 1.0, 2, True)])
    np.testing.assert_allclose(agent.policy(0)[0], (0.2, 0.8))
    agent.rng = np.random.default_rng(0)
    assert np.mean([agent.act(0, 0) for _ in range(4000)]) == pytest.approx(0.8, abs=0.03)


def lost_at_the_end(spec: str, agent: str, episodes: int) -> float:
    env: Any = linmdp.make_env(spec)
    result = linmdp.run(env, linmdp.make_agent(agent, env), episodes=episodes, seed=0, eval_every=20)
    assert result.regret is not None
    return float((result.regret[-1] - result.regret[-201]) / 200 / env.optimum.V[0, 0])


def test_optimism_swims_up_the_river_and_greed_does_not() -> None:
    assert lost_at_the_end("riverswim", "q-learning", 1500) < 0.1
    assert lost_at_the_end("riverswim", "q-learning-greedy", 1500) > 0.5


def test_a_store_is_run_within_a_tenth_of_the_best() -> None:
    assert lost_at_the_end("inventory", "q-learning", 1500) < 0.1


@pytest.mark.parametrize(
    ("spec", "words"),
    [
        ("q-learning:c=-1", "'c' parameter of q-learning must be"),
        ("q-learning:stationary=2", "'stationary' parameter of q-learning must be true or false. Got 2."),
        ("q-learning:discount=1.5", r"'discount' parameter of q-learning must be a finite number in \[0, 1\]"),
        ("q-learning-greedy:epsilon=2", "'epsilon' parameter of q-learning-greedy"),
        ("q-learning-greedy:alpha=-1", "'alpha' parameter of q-learning-greedy"),
    ],
)
def test_bad_parameters_are_refused(spec: str, words: str) -> None:
    with pytest.raises(linmdp.InvalidParameter, match=words):
        linmdp.make_agent(spec, linmdp.make_env("lock"))


def test_a_task_without_finite_states_is_refused_in_one_line() -> None:
    env = linmdp.make_env("gym:CartPole-v1,H=5")
    with pytest.raises(linmdp.InvalidParameter, match="q-learning needs finite states"):
        linmdp.make_agent("q-learning", env)
