"""Tasks without ends: stretches that go on where the last one stopped."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest

import linmdp


class Ring(gymnasium.Env[Any, Any]):
    """Twelve fields in a ring, without an end: going round pays 1 at the last field, standing still 0.02 a step."""

    observation_space = gymnasium.spaces.Discrete(12)
    action_space = gymnasium.spaces.Discrete(2)

    def __init__(self, ends: int | None = None) -> None:
        self.at, self.resets, self.ends = 0, 0, ends

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[int, dict[str, Any]]:
        super().reset(seed=seed)
        self.at, self.resets = 0, self.resets + 1
        return 0, {}

    def step(self, action: int) -> tuple[int, float, bool, bool, dict[str, Any]]:
        self.at = (self.at + action) % 12
        return self.at, 0.02 * (1 - action) + float(action == 1 and self.at == 11), self.at == self.ends, False, {}


def test_a_stretch_begins_where_the_last_one_stopped() -> None:
    ring = Ring()
    env: Any = linmdp.make_env(ring, H=5, continuing=True, reward_low=0, reward_high=1)
    before = ring.resets
    assert [env.reset(seed=1)[0], *(env.step(1)[0] for _ in range(5))] == [0, 1, 2, 3, 4, 5]
    assert [env.reset()[0], *(env.step(1)[0] for _ in range(5))] == [5, 6, 7, 8, 9, 10]
    assert ring.resets == before + 1
    assert env.reset(seed=2)[0] == 0  # a seed is a new start


def test_where_the_environment_ends_it_begins_anew() -> None:
    env: Any = linmdp.make_env(Ring(ends=3), H=2, continuing=True, reward_low=0, reward_high=1)
    seen = [env.reset(seed=1)[0]]
    for _ in range(2):
        for _ in range(2):
            state, _, terminated, truncated, _ = env.step(1)
            seen.append(state)
            if terminated or truncated:
                break
        seen.append(env.reset()[0])
    assert seen == [0, 1, 2, 2, 3, 0]


def test_stretches_that_are_too_short_to_go_round_are_learned_where_they_go_on() -> None:
    def earned(continuing: bool) -> float:
        env = linmdp.make_env(Ring(), H=6, continuing=continuing, reward_low=0, reward_high=1)
        learner = linmdp.Learner(env, "lsvi-ucb", stationary=True, discount=0.95, seed=1).learn(200)
        return float(np.mean(learner.returns[-60:]))

    assert earned(continuing=False) <= 0.12 + 1e-9  # from the first field six steps do not reach the last
    assert earned(continuing=True) == pytest.approx(0.5)  # half a round, of the best there is


@pytest.mark.parametrize("agent", ["auto", "q-learning"])
def test_a_saved_learner_and_one_that_goes_on_are_the_same(agent: str, tmp_path: Path) -> None:
    learner = linmdp.Learner("gym:FrozenLake-v1,continuing=true,H=20", agent, seed=3).learn(10)
    learner.save(tmp_path / "x.safetensors")
    again = linmdp.Learner.load(tmp_path / "x.safetensors")
    assert again.learn(6).returns == learner.learn(6).returns
    learner.evaluate(2)
    again.evaluate(2)
    assert again.learn(6).returns == learner.learn(6).returns


def test_an_id_loses_its_limit_of_steps_and_keeps_its_history() -> None:
    env: Any = linmdp.make_env("gym:Pendulum-v1,continuing=true,H=50,history=2")
    env.reset(seed=0)
    last = None
    for _ in range(6):  # 300 steps; the name stands for 200
        for _ in range(50):
            last, _, _, truncated, _ = env.step(0)
        assert truncated
        np.testing.assert_array_equal(env.reset()[0], last)


def test_what_is_no_answer_is_refused_in_one_line() -> None:
    with pytest.raises(linmdp.InvalidData, match="continuing"):
        linmdp.make_env("gym:Pendulum-v1,continuing=perhaps")
