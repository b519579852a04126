"""The run loop: exact regret, thinning, early ends, the adversary, and bad data from an environment."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import linmdp
from linmdp.runner.batch import jobs_for, run_jobs
from linmdp.types import EpisodeRecord
from test_hostile_envs import Hostile

SMALL = "synthetic:S=12,A=3,d=4,H=5"


def test_regret_is_the_gap_of_the_policy_that_was_played() -> None:
    env: Any = linmdp.make_env(SMALL)
    agent = linmdp.make_agent("constant:action=2", env)
    result = linmdp.run(env, agent, episodes=4)
    lost = env.optimum.V[0, 0] - linmdp.policy_value(env.model, lambda h: np.full(12, 2))[0, 0]
    assert result.regret is not None
    np.testing.assert_allclose(result.regret, lost * np.arange(1, 5))


def test_the_mean_realised_reward_is_the_value_of_the_policy() -> None:
    env: Any = linmdp.make_env("riverswim:H=5")
    result = linmdp.run(env, linmdp.RandomAgent(env.task), episodes=3000, seed=1)
    value = linmdp.policy_value(env.model, lambda h: np.full((6, 2), 0.5))[0, 0]
    assert result.rewards.mean() == pytest.approx(value, abs=4 * result.rewards.std() / np.sqrt(3000))


def test_thinned_regret_holds_the_last_value_and_says_so() -> None:
    def regret(every: int) -> Any:
        env: Any = linmdp.make_env(SMALL)
        return linmdp.run(env, linmdp.LSVIUCB(env.task), episodes=20, eval_every=every)

    full, thin = regret(1), regret(5)
    steps = np.diff(full.regret, prepend=0.0)
    np.testing.assert_allclose(np.diff(thin.regret, prepend=0.0), np.repeat(steps[::5], 5))
    assert thin.to_json()["eval_every"] == 5
    assert "eval_every" not in full.to_json()


def test_thinning_does_not_change_what_is_learned() -> None:
    rewards = []
    for every in (1, 7):
        env: Any = linmdp.make_env(SMALL)
        rewards.append(linmdp.run(env, linmdp.LSVIUCB(env.task), episodes=20, eval_every=every).rewards)
    np.testing.assert_array_equal(rewards[0], rewards[1])


def test_the_adversary_starts_where_the_policy_loses_most() -> None:
    env: Any = linmdp.make_env(SMALL + ",start=adversarial")
    result = linmdp.run(env, linmdp.make_agent("constant", env), episodes=3)
    gap = env.optimum.V[0] - linmdp.policy_value(env.model, lambda h: np.zeros(12, dtype=int))[0]
    assert result.final_regret == pytest.approx(3 * gap.max())


def test_saturation_is_said_in_words() -> None:
    env: Any = linmdp.make_env(SMALL)
    with pytest.warns(linmdp.LinMDPWarning, match="cannot tell good actions from bad ones"):
        result = linmdp.run(env, linmdp.LSVIUCB(env.task, beta="theory", episodes=30), episodes=30)
    assert result.saturated == 1.0
    assert result.tied == 1.0


def test_a_saturated_argmax_is_called_constant() -> None:
    env: Any = linmdp.make_env(SMALL)
    with pytest.warns(linmdp.LinMDPWarning) as found:
        linmdp.run(env, linmdp.LSVIUCB(env.task, beta=1e6, ties="first"), episodes=30)
    assert any("the policy is constant" in str(warning.message) for warning in found)


def test_an_agent_that_stopped_learning_is_named() -> None:
    env: Any = linmdp.make_env("lock")
    agent = linmdp.LSVIUCBAdaptive(env.task, beta=1, lam=1, tau_rel=0.01, episodes=400, rho=1.0, budget=1.0)
    with pytest.warns(linmdp.LinMDPWarning, match="it has stopped learning"):
        linmdp.run(env, agent, episodes=400)


def test_negative_rewards_have_a_cap_of_0() -> None:
    """An episode that ends early is worth 0, more than any that goes on."""
    env: Any = linmdp.make_env("gym:CliffWalking-v1,H=30,reward_low=-100,reward_high=-1")
    agent = linmdp.LSVIUCB(env.task)
    assert agent.caps is not None
    assert not agent.caps.any()


def test_a_learner_that_learned_is_not_warned_about(recwarn: pytest.WarningsRecorder) -> None:
    env: Any = linmdp.make_env("riverswim")  # whose best policy is constant, too
    result = linmdp.run(env, linmdp.LSVIUCB(env.task, beta=0.3, lam=1.0), episodes=600)
    assert result.warnings == []
    assert result.saturated < 0.5


def test_callbacks_see_every_episode() -> None:
    seen: list[EpisodeRecord] = []
    env: Any = linmdp.make_env(SMALL)
    result = linmdp.run(env, linmdp.LSVIUCB(env.task), episodes=6, on_episode=seen.append)
    assert [r.episode for r in seen] == list(range(6))
    assert sum(r.reward for r in seen) == pytest.approx(result.reward)
    assert max(r.agent_bytes for r in seen) == result.peak_bytes


def test_the_same_numbers_on_one_process_and_on_two() -> None:
    jobs = jobs_for(SMALL, ["lsvi-ucb", "lsvi-ucb-fixed"], episodes=30, seeds=3)
    for one, two in zip(run_jobs(jobs, processes=1), run_jobs(jobs, processes=2), strict=True):
        assert (one.agent, one.seed) == (two.agent, two.seed)
        np.testing.assert_array_equal(one.rewards, two.rewards)
        assert one.regret is not None
        assert two.regret is not None
        np.testing.assert_array_equal(one.regret, two.regret)


def test_early_ends_have_value_0() -> None:
    """FrozenLake ends in holes: what is learned there must not leak value from beyond the end."""
    env: Any = linmdp.make_env("gym:FrozenLake-v1,H=20,is_slippery=false")
    agent = linmdp.LSVIUCB(env.task, beta=0.0, lam=1e-6)
    for k in range(60):
        agent.begin_episode()
        state, _ = env.reset(seed=k)
        rng = np.random.default_rng(k)
        for h in range(20):
            action = int(rng.integers(4))
            nxt, reward, terminated, truncated, _ = env.step(action)
            agent.observe(h, state, action, reward, nxt, terminated)
            if terminated or truncated:
                break
            state = nxt
        agent.end_episode()
    agent.begin_episode()
    goal_or_hole = [5, 7, 11, 12, 15]
    assert all(not agent.q_values(h, s).any() for h in range(20) for s in goal_or_hole)


def test_frozen_lake_is_learned_through_the_adapter() -> None:
    env: Any = linmdp.make_env("gym:FrozenLake-v1,H=20,is_slippery=false")
    result = linmdp.run(env, linmdp.LSVIUCB(env.task, beta=0.5, lam=1.0), episodes=500, seed=0)
    assert result.regret is None
    assert result.rewards[-50:].mean() > 0.9


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"reward": float("inf")}, r"reward of episode 0, step 2 must be in \[0, 1\]. Got inf"),
        ({"reward": 1.5}, r"must be in \[0, 1\]. Got 1.5"),
        ({"state": -1}, r"The state after episode 0, step 2 must be a whole number in \[0, 3\]. Got -1"),
        ({"state": None}, r"must be a whole number in \[0, 3\]. Got None"),
        (None, ""),
    ],
)
def test_an_environment_with_a_task_of_its_own_is_guarded_too(wrong: Any, message: str) -> None:
    env: Any = Hostile(wrong, 2, box=False)
    features = linmdp.one_hot(4, 2)
    env.task = linmdp.Task(S=4, A=2, d=8, H=5, reward_range=(0.0, 1.0), features=features)
    if wrong is None:
        assert linmdp.run(env, linmdp.LSVIUCB(env.task, beta=0.1), episodes=2).reward == pytest.approx(5.0)
        return
    with pytest.raises(linmdp.InvalidData, match=message):
        linmdp.run(env, linmdp.LSVIUCB(env.task), episodes=2)


@pytest.mark.parametrize("what", ["episodes", "eval_every"])
def test_counts_must_be_positive(what: str) -> None:
    env: Any = linmdp.make_env("lock")
    counts: dict[str, Any] = {"episodes": 3, what: 0}
    with pytest.raises(linmdp.InvalidParameter, match=f"The '{what}' parameter of run must be a whole number"):
        linmdp.run(env, linmdp.RandomAgent(env.task), **counts)
