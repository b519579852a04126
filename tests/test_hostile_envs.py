"""Environments that misbehave: each fault is named in one line with its episode and step, and nothing is lost."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces

import command
import linmdp
from linmdp.envs.guard import Guard
from linmdp.envs.rewards import observed_range
from linmdp.runner.env_check import check_behaviour
from linmdp.runner.loop import play
from linmdp.runner.measured import RunStopped

RANGE = "reward_low=0,reward_high=1"  # without it rewards would be looked at in random play first
KNOWN: dict[str, Any] = {"H": 5, "reward_low": 0.0, "reward_high": 1.0}


class Hostile(gymnasium.Env[Any, Any]):
    """Five steps that pay 0.5, on four states or two numbers; step `at` of all shows, pays and says what is `wrong`."""

    action_space = spaces.Discrete(2)

    def __init__(self, wrong: Any = None, at: int = 17, *, box: bool = True, ends: str = "after five") -> None:
        self.wrong, self.at, self.box, self.ends = wrong, at, box, ends
        self.observation_space = spaces.Box(-1, 1, (2,), np.float32) if box else spaces.Discrete(4)
        self.count = self.h = 0

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> Any:
        super().reset(seed=seed)
        self.h = 0
        return self._shown(), {}

    def _shown(self) -> Any:
        return np.array([0.1, 0.2 * self.h / 5], dtype=np.float32) if self.box else self.h % 4

    def step(self, action: int) -> Any:
        self.h, self.count = self.h + 1, self.count + 1
        found = {"state": self._shown(), "reward": 0.5, "terminated": self.ends == "at once"}
        found |= {"truncated": self.ends == "after five" and self.h == 5, "info": {}}
        if self.wrong is not None and self.count == self.at + 1:
            found |= self.wrong() if callable(self.wrong) else self.wrong
        return tuple(value for value in found.values() if value is not MISSING)


class Pair(linmdp.FeatureMap):
    """Features of two numbers for two actions; what they look at is not copied."""

    A, d, bound, nbytes = 2, 4, 1.0, 0

    def phi(self, state: Any) -> Any:
        return np.kron(np.eye(2), np.asarray(state, dtype=float)).reshape(2, 4)

    def batch(self, states: Any) -> Any:
        return np.array([self.phi(s) for s in states]).reshape(-1, 2, 4)


def leaves() -> Any:
    sys.exit()


def breaks() -> Any:
    raise RuntimeError("the motor is stuck\nand hot")


MISSING = object()
REWARD = r"The reward of episode 3, step 2 must be "
STATE = r"The state after episode 3, step 2 must be "
SHAPE = r"after episode 3, step 2 must be float32 of shape \(2,\), as the first one. Got "
MASKED = np.ma.masked_array([0.1, 0.2], mask=[True, False], dtype=np.float32)
FAULTS: dict[str, tuple[Any, str]] = {
    "reward nan": ({"reward": float("nan")}, REWARD + r"in \[0, 1\]. Got nan"),
    "reward inf": ({"reward": -float("inf")}, REWARD + r"in \[0, 1\]. Got -inf"),
    "reward 7": ({"reward": 7.0}, REWARD + r"in \[0, 1\]. Got 7.0. Give reward_high=7, or reward=clip"),
    "reward vector": ({"reward": np.array([0.5])}, REWARD + "one number. Got array"),
    "reward list": ({"reward": [0.5, 0.5]}, REWARD + "one number. Got "),
    "reward words": ({"reward": "0.5"}, REWARD + "one number. Got '0.5'"),
    "reward none": ({"reward": None}, REWARD + "one number. Got None"),
    "reward complex": ({"reward": np.complex128(0.5 + 1j)}, REWARD + "one number"),
    "reward complex array": ({"reward": np.array(0.5 + 1j)}, REWARD + "one number"),
    "reward too large": ({"reward": 10**400}, REWARD + "one number"),
    "reward masked": ({"reward": np.ma.masked_array(0.5, mask=True)}, REWARD + "one number"),
    "state 99": ({"state": 99}, STATE + r"a whole number in \[0, 3\]. Got 99"),
    "state 1.5": ({"state": 1.5}, STATE + r"a whole number in \[0, 3\]. Got 1.5"),
    "state nan": ({"state": float("nan")}, STATE + r"a whole number in \[0, 3\]. Got nan"),
    "state vector": ({"state": np.array([1, 2])}, STATE + r"a whole number in \[0, 3\]. Got .*array"),
    "box nan": ({"state": np.array([np.nan, 0], dtype=np.float32)}, STATE + r"finite. Got float32 of shape \(2,\)"),
    "box inf": ({"state": np.array([0, np.inf], dtype=np.float32)}, STATE + "finite. Got "),
    "box longer": ({"state": np.zeros(3, dtype=np.float32)}, SHAPE + r"float32 of shape \(3,\)"),
    "box of another shape": ({"state": np.zeros((1, 2), dtype=np.float32)}, SHAPE),
    "box of double": ({"state": np.zeros(2)}, SHAPE + r"float64 of shape \(2,\)"),
    "box of words": ({"state": {"x": 1}}, "must be made of numbers. Got "),
    "box masked": ({"state": MASKED}, "The observation after episode 3, step 2 must be an array without a mask"),
    "box far": (
        {"state": np.array([51.0, 0], dtype=np.float32)},
        "after episode 3, step 2 must be within 10 ranges of its Box, -1 to 1. Got float32 of shape",
    ),
    "terminated text": ({"terminated": "False"}, "The terminated of episode 3, step 2 must be True or False. Got 'Fa"),
    "terminated none": ({"terminated": None}, "The terminated of episode 3, step 2 must be True or False. Got None"),
    "truncated text": ({"truncated": "no"}, "The truncated of episode 3, step 2 must be True or False. Got 'no'"),
    "raises": (breaks, "Episode 3, step 2 must not fail. Got RuntimeError: the motor is stuck."),
    "returns four things": ({"info": MISSING}, "Episode 3, step 2 must not fail. Got ValueError"),
    "sys.exit": (leaves, "Episode 3, step 2 must not fail. Got SystemExit"),
}


def make_hostile(fault: str | None = None, episode: int = 3, ends: str = "after five", **options: Any) -> Any:
    return Hostile(fault and FAULTS[fault][0], 5 * episode + 2, box=False, ends=ends)


gymnasium.register("Hostile-v0", entry_point=make_hostile, max_episode_steps=8, disable_env_checker=True)


def hostile(fault: str, features: Any = "fourier") -> Any:
    if fault.startswith("box"):
        return linmdp.GymTask(Hostile(FAULTS[fault][0]), features=features, **KNOWN)
    return linmdp.make_env(f"gym:Hostile-v0,H=5,{RANGE},fault={fault}")


def finds(fault: str, make: Any) -> bool:
    """Whether `check` finds it in one line, at its place."""
    (finding,) = check_behaviour(make())
    said = finding.text.lower()
    return not finding.ok and "\n" not in said and "episode 3, step 2" in said


@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize("spec", ["lsvi-ucb", "lsvi-ucb:storage=centres,lam=0.1,M=3", "random"])
def test_a_fault_stops_the_run_in_one_line_with_its_place_and_is_found_by_check(
    fault: str, spec: str, tmp_path: Path
) -> None:
    env = hostile(fault, Pair() if "centres" in spec else "fourier")
    with pytest.raises(RunStopped, match=FAULTS[fault][1]) as stopped:
        linmdp.run(env, linmdp.make_agent(spec, env), episodes=9, checkpoint=tmp_path)
    words, result = str(stopped.value), stopped.value.result
    assert "\n" not in words
    assert "is saved in" in words
    assert result is not None
    assert result.rewards.tolist() == [2.5, 2.5, 2.5]
    learned = linmdp.load_agent(tmp_path / "seed-0.stopped.safetensors", env)
    learned.begin_episode()
    assert learned.updates >= 1 or spec == "random"
    assert finds(fault, lambda: hostile(fault, Pair() if "centres" in spec else "fourier"))


def test_an_environment_that_behaves_passes_and_is_told_that_it_is_cut() -> None:
    done = command.linmdp("check", "gym:Hostile-v0,H=5,ends=never")
    assert done.status == 0
    assert "no episode ended by itself: each was cut after H=5 steps" in done.out
    assert "It behaves." in done.out


def test_an_environment_that_never_ends_is_cut_at_H() -> None:
    env = linmdp.make_env(f"gym:Hostile-v0,H=5,{RANGE},ends=never")
    assert linmdp.run(env, linmdp.LSVIUCB(env.task), episodes=4).reward == pytest.approx(4 * 5 * 0.5)


def test_an_environment_that_ends_at_once_is_learned_from_and_named_by_check() -> None:
    env = linmdp.make_env(f"gym:Hostile-v0,H=5,{RANGE},ends=at once")
    assert linmdp.run(env, linmdp.LSVIUCB(env.task), episodes=4).reward == pytest.approx(4 * 0.5)
    done = command.linmdp("check", "gym:Hostile-v0,H=5,ends=at once")
    assert done.status == 1
    assert "every episode ends with its first step" in done.out


def test_an_environment_that_forgets_its_seed_is_named_by_check() -> None:
    class Forgetful(Hostile):
        def step(self, action: int) -> Any:
            state, _, terminated, truncated, info = super().step(action)
            return state, 1 / (2 + self.count), terminated, truncated, info

    findings = check_behaviour(linmdp.GymTask(Forgetful(box=False), H=5))
    assert [f.ok for f in findings if "the same seed" in f.text] == [False]


def test_a_fault_on_the_command_line_keeps_what_was_done(tmp_path: Path) -> None:
    spec = f"gym:Hostile-v0,H=5,{RANGE},fault=reward 7,episode=4"  # the trial environment of the command is another one
    done = command.linmdp("run", spec, "lsvi-ucb", "-k", "9", "--out", str(tmp_path / "out"))
    chosen, *lines = done.err.splitlines()
    assert (done.status, len(lines)) == (2, 1)
    assert chosen.startswith(f"{spec}: chosen ")
    assert "The reward of episode 4, step 2 must be in [0, 1]. Got 7" in done.err
    assert "Its first 4 episodes are in" in done.err
    record = json.loads((tmp_path / "out" / "partial.jsonl").read_text())
    assert (record["episodes"], record["agent"], record["reward"]) == (4, "lsvi-ucb", 10.0)
    assert "use --out or --checkpoint" in command.linmdp("run", spec, "lsvi-ucb", "-k", "9").err
    done = command.linmdp("run", spec, "lsvi-ucb", "-k", "9", "--checkpoint", str(tmp_path / "saved"), "--every", "2")
    assert "What was learned until then is saved in" in done.err
    names = sorted(p.name for p in (tmp_path / "saved").iterdir())
    assert names == [*(f"seed-0.episode-{k:010d}.safetensors" for k in (2, 4)), "seed-0.stopped.safetensors"]


def test_rewards_outside_their_range_are_clipped_if_asked() -> None:
    env: Any = linmdp.make_env(f"gym:Hostile-v0,H=5,{RANGE},fault=reward 7,reward=clip")
    paid = [step.reward for k in range(5) for step in _episode(env, k)]
    np.testing.assert_allclose(paid, [0.5] * 17 + [1.0] + [0.5] * 7)
    env = linmdp.make_env(f"gym:Hostile-v0,H=5,{RANGE},fault=reward 7,reward=clip")
    result = linmdp.run(env, linmdp.LSVIUCB(env.task), episodes=5)
    np.testing.assert_allclose(result.rewards, [2.5, 2.5, 2.5, 9.0, 2.5])  # as the environment paid them
    assert result.warnings == []  # it was asked for


def _episode(env: Any, k: int) -> Any:
    agent = linmdp.RandomAgent(env.task)
    agent.rng = np.random.default_rng(k)
    return list(play(Guard(env), agent, env.reset(seed=k)[0], k))


def test_a_range_that_random_play_showed_never_ends_a_run() -> None:
    env: Any = linmdp.make_env("gym:Hostile-v0,H=5,fault=reward 7,episode=22")  # after the 20 of random play
    assert env.task.reward_range == (0.0, 0.5)
    assert env.chosen == {"features": "onehot", "d": 8, "reward_low": 0.0, "reward_high": 0.5}
    words = "Rewards of 'Hostile-v0' outside 0 to 0.5 were clipped to that range: give reward_low and reward_high."
    with pytest.warns(linmdp.LinMDPWarning, match="were clipped to that range") as said:
        result = linmdp.run(env, linmdp.RandomAgent(env.task), episodes=5)
    assert result.warnings == [words] == [str(one.message) for one in said]
    np.testing.assert_allclose(sorted(result.rewards), [2.5, 2.5, 2.5, 2.5, 9.0])


@pytest.mark.parametrize(
    ("rewards", "low_high"),
    [
        ((0.0,), (0, 1)),
        ((-1.0,), (-1, 0)),
        ((0.5,), (0, 0.5)),
        ((-1.0, 0.0, 10.0), (-1, 10)),
        (tuple(np.linspace(-2, 2.1, 50).tolist()), (-2, 5)),
        (tuple(np.linspace(0.1, 0.97, 50).tolist()), (0, 1)),
        (tuple(np.linspace(-9.99, -3, 50).tolist()), (-10, 0)),
    ],
)
def test_a_range_from_random_play_contains_0_and_is_wider_for_many_values(rewards: Any, low_high: Any) -> None:
    assert observed_range(rewards) == low_high


def test_clipped_rewards_have_the_returns_as_they_were() -> None:
    env: Any = linmdp.make_env("gym:CliffWalking-v1,H=10,reward=clip,reward_low=-2,reward_high=0")
    assert {step.reward for k in range(30) for step in _episode(env, k)} == {-2, -1}
    result = linmdp.run(env, linmdp.RandomAgent(env.task), episodes=30)
    assert result.rewards.min() <= -100


@pytest.mark.parametrize("fault", ["reward nan", "reward inf", "reward vector", "reward words"])
def test_what_is_no_number_is_not_clipped(fault: str) -> None:
    env: Any = linmdp.make_env(f"gym:Hostile-v0,H=5,{RANGE},fault={fault},reward=clip")
    agent = linmdp.LSVIUCB(env.task)
    with pytest.raises(linmdp.InvalidData, match=r"[Ee]pisode 3, step 2"):
        linmdp.run(env, agent, episodes=5)


def test_the_command_line_has_the_rule_of_rewards() -> None:
    bounds = "gym:CliffWalking-v1,H=10,reward_low=0,reward_high=1"
    assert command.linmdp("check", bounds).status == 1
    assert command.linmdp("check", f"{bounds},reward=clip").status == 0
    done = command.linmdp("run", f"{bounds},reward=hide", "random")
    assert (done.status, done.err.count("\n")) == (2, 1)


def test_names_where_objects_belong_are_refused_in_words() -> None:
    env = linmdp.make_env("lock:H=4")
    with pytest.raises(linmdp.InvalidParameter, match=r"a Gymnasium environment, or a model. Got 3"):
        linmdp.run(3, linmdp.make_agent("random", env), episodes=1)
    with pytest.raises(linmdp.InvalidParameter, match=r"use linmdp.make_agent. Got 'random'"):
        linmdp.run(env, "random", episodes=1)  # type: ignore[arg-type]


@pytest.mark.parametrize("spec", [None, 5, ["lock"]])
def test_a_spec_that_is_no_text_is_refused(spec: Any) -> None:
    with pytest.raises(linmdp.InvalidParameter, match="must be text such as"):
        linmdp.make_env(spec)
    with pytest.raises(linmdp.InvalidParameter, match="must be text"):
        linmdp.make_agent(spec, linmdp.make_env("lock:H=4"))
    with pytest.raises(linmdp.InvalidParameter, match="must be text such as"):
        linmdp.make_agent("random", spec)
