"""One guard for every loop that plays an environment: its faults are named, its arrays copied, its steps counted."""

from __future__ import annotations

import importlib
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
from linmdp.runner.measured import RunStopped
from linmdp.runner.registry import AGENTS
from test_hostile_envs import FAULTS, KNOWN, Hostile, Pair, leaves


class InPlace(Hostile):
    """The same, always in the same array."""

    def __init__(self) -> None:
        super().__init__()
        self.room = np.zeros(2, dtype=np.float32)

    def _shown(self) -> Any:
        self.room[:] = super()._shown()
        return self.room


@pytest.mark.parametrize("value", [True, np.True_, 1, np.int64(1), np.array(True)])
def test_what_is_true_without_doubt_ends_an_episode(value: Any) -> None:
    env = linmdp.GymTask(Hostile({"terminated": value}), features="fourier", **KNOWN)
    assert linmdp.run(env, linmdp.RandomAgent(env.task), episodes=4).rewards.tolist() == [2.5, 2.5, 2.5, 1.5]


def test_the_user_can_still_interrupt() -> None:
    def interrupted() -> Any:
        raise KeyboardInterrupt

    env = linmdp.GymTask(Hostile(interrupted), features="fourier", **KNOWN)
    with pytest.raises(KeyboardInterrupt):
        linmdp.run(env, linmdp.RandomAgent(env.task), episodes=9)


def test_an_observation_a_little_outside_its_box_is_a_warning() -> None:
    env = linmdp.GymTask(Hostile({"state": np.array([0, 3.5], dtype=np.float32)}), features="fourier", **KNOWN)
    with pytest.warns(linmdp.LinMDPWarning, match="was outside its space: number 1 of observation was 3.5, and the Bo"):
        linmdp.run(env, linmdp.RandomAgent(env.task), episodes=4)


def test_an_array_that_is_rewritten_in_place_is_as_good_as_a_new_one() -> None:
    """The same run, whether the environment shows new arrays or goes on writing into one."""
    results = []
    for make in (Hostile, InPlace):
        env = linmdp.GymTask(make(), features=Pair(), **KNOWN)
        agent = linmdp.LSVIUCB(env.task, beta=0.1, lam=0.1)
        linmdp.run(env, agent, episodes=12, seed=1)
        results.append([agent.q_values(h, np.array([0.1, 0.04 * h])) for h in range(5)])
        guard = Guard(env)
        states = [guard.reset(0, 0), *(guard.step(0, h, 0)[0] for h in range(5))]
        np.testing.assert_allclose([state[1] for state in states], np.arange(6) / 25, rtol=1e-6)
    np.testing.assert_array_equal(results[0], results[1])


def make_leaving(*, where: str = "step", **options: Any) -> Any:
    """An environment that calls sys.exit() in its twelfth step or, while it is played, in a reset."""
    env: Any = Hostile(leaves, at=11) if where == "step" else Hostile()
    plain, resets = env.reset, 0

    def reset(**options: Any) -> Any:
        nonlocal resets
        resets += 1
        return leaves() if where == "reset" and resets > 2 else plain(**options)

    env.reset = reset
    return leaves() if where == "making" else env


gymnasium.register("Leaving-v0", entry_point=make_leaving, max_episode_steps=5, disable_env_checker=True)
LEAVES = "gym:Leaving-v0,features=fourier,reward_low=0,reward_high=1"


@pytest.mark.parametrize("where", ["step", "reset", "making"])
def test_sys_exit_of_an_environment_is_a_failure_of_every_command(where: str, tmp_path: Path) -> None:
    spec, out = f"{LEAVES},where={where}", tmp_path / "out"
    (tmp_path / "s.toml").write_text(f'name = "x"\n[[runs]]\nenv = "{spec}"\nagents = ["random"]\nepisodes = 9\n')
    commands = [
        ["run", spec, "random", "-k", "9", "--out", str(out)],
        ["compare", spec, "random", "constant", "-k", "9", "--seeds", "1", "-j", "1"],
        ["sweep", str(tmp_path / "s.toml"), "--out", str(tmp_path / "sweep")],
        ["check", spec],
    ]
    for line in commands:
        done = command.linmdp(*line)
        assert done.status == (1 if line[0] == "check" and where != "making" else 2)
        assert "SystemExit" in done.err + done.out
        assert "Traceback" not in done.err
    assert (out / "partial.jsonl").exists() == (where != "making")
    assert (tmp_path / "sweep" / "partial.jsonl").exists() == (where != "making")


def test_sys_exit_of_an_agent_is_no_success_either() -> None:
    class Leaves(linmdp.ConstantAgent):
        name = "leaves"

        def act(self, h: int, state: Any) -> int:
            sys.exit()

    with AGENTS.temporarily("leaves", Leaves):
        done = command.linmdp("run", "lock:H=3", "leaves", "-k", "3")
    assert (done.status, done.err.count("has called sys.exit()")) == (1, 1)


@pytest.mark.parametrize("agent", ["sb3-dqn:learning_starts=5", "sb3-ppo:n_steps=8,batch_size=4"])
def test_agents_of_other_libraries_keep_their_episodes_too(agent: str) -> None:
    pytest.importorskip("stable_baselines3")
    env = linmdp.GymTask(Hostile(leaves), features="fourier", **KNOWN)
    with pytest.raises(RunStopped, match=FAULTS["sys.exit"][1]) as stopped:
        linmdp.run(env, linmdp.make_agent(agent, env, episodes=9), episodes=9)
    assert stopped.value.result is not None
    assert stopped.value.result.rewards.tolist() == [2.5, 2.5, 2.5]


@pytest.mark.parametrize("name", ["sys.exit", "terminated text", "box masked", "box of double", "reward too large"])
def test_random_play_before_the_first_episode_is_guarded(name: str) -> None:
    wrong, words = FAULTS[name]
    place = words.partition("must")[2].partition("Got")[0]
    for task, asked in (({"H": 5}, "reward_range"), ({"features": "fourier", "scaling": "data", **KNOWN}, "features")):
        with pytest.raises(linmdp.InvalidData, match=f"pisode 3, step 2( of random play| of the warm-up)? must{place}"):
            getattr(linmdp.GymTask(Hostile(wrong), **task).task, asked)


def test_random_faults_end_in_one_line_in_every_loop() -> None:
    """The short version of benchmarks/fuzz_envs.py."""
    (row,) = importlib.import_module("fuzz_envs").rows(132)
    assert (row.trials, row.failures) == (132, 0), row.how


class Both(gymnasium.vector.VectorEnv[Any, Any, Any]):
    """Two streams of episodes of five steps; `wrong` says what step 24 of all shows, pays and says."""

    num_envs, spec = 2, None
    single_observation_space: Any = spaces.Discrete(3)
    single_action_space: Any = spaces.Discrete(2)

    def __init__(self, wrong: Any) -> None:
        self.observation_space, self.action_space = (
            gymnasium.vector.utils.batch_space(space, 2)
            for space in (self.single_observation_space, self.single_action_space)
        )
        self.metadata = {"autoreset_mode": gymnasium.vector.AutoresetMode.SAME_STEP}
        self.wrong, self.steps = wrong, 0

    def reset(self, *, seed: Any = None, options: dict[str, Any] | None = None) -> Any:
        return np.zeros(2, dtype=np.int64), {}

    def step(self, actions: Any) -> Any:
        self.steps += 1
        found: dict[str, Any] = {
            "state": np.full(2, self.steps % 3),
            "reward": np.full(2, 0.5),
            "terminated": np.zeros(2, dtype=bool),
        }
        found |= {"truncated": np.full(2, self.steps % 5 == 0), "info": {}}
        if self.steps == 24:
            found |= self.wrong() if callable(self.wrong) else self.wrong
        return (*found.values(),)


TOGETHER: dict[str, tuple[Any, str]] = {
    "sys.exit": (leaves, "A step of the vector environment must not fail. Got SystemExit"),
    "raises": (lambda: 1 // 0, "A step of the vector environment must not fail. Got ZeroDivisionError"),
    "too few": ({"reward": np.zeros(1)}, "A step of the vector environment must not fail. Got IndexError"),
    "complex": ({"reward": np.full(2, 0.5 + 1j)}, "The reward of episode 4, step 3 must be one number"),
    "text": ({"terminated": ["False"] * 2}, "The terminated of episode 4, step 3 of stream 0 must be True or False."),
    "none": ({"truncated": [None] * 2}, "The truncated of episode 4, step 3 of stream 0 must be True or False."),
    "state": ({"state": np.array([1, 7])}, "The state after episode 4, step 3 of stream 1 must be a whole number in"),
}


@pytest.mark.parametrize("name", TOGETHER)
def test_a_fault_of_a_vector_environment_is_named_and_what_was_learned_is_kept(name: str) -> None:
    wrong, words = TOGETHER[name]
    env = Both({})
    learner = linmdp.Learner(env, "lsvi-ucb:lam=0.1,beta=0.1")
    assert learner.task.payable  # random play is over
    env.wrong, env.steps = wrong, 0
    with pytest.raises(linmdp.InvalidData, match=words):
        learner.learn(20)
    assert learner.returns == [2.5] * 8
