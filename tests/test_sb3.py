"""Stable-Baselines3's agents: ordinary runs on raw observations, as many episodes, the same for the same seed."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import linmdp
from command import linmdp as command
from linmdp.agents.sb3 import SB3Agent, model_bytes
from linmdp.envs.raw import Scaler
from linmdp.errors import InvalidParameter, LinMDPError
from linmdp.linearize.collect import random_data
from linmdp.runner.batch import jobs_for, run_jobs
from linmdp.types import EpisodeRecord, RunResult

pytest.importorskip("stable_baselines3")

GAME, MODEL, LAKE = "linearized:model=phoenix,mode=game,H=12", "lock:H=5,A=3", "gym:FrozenLake-v1,H=12"
AGENTS = ("sb3-dqn:learning_starts=20", "sb3-ppo:n_steps=32,batch_size=16,n_epochs=2")
every_agent = pytest.mark.parametrize("agent", AGENTS)


def result_of(env: str, agent: str, episodes: int = 12, **more: Any) -> RunResult:
    made = linmdp.make_env(env)
    return linmdp.run(made, linmdp.make_agent(agent, made, episodes=episodes), episodes=episodes, seed=3, **more)


@every_agent
@pytest.mark.parametrize("env", [GAME, MODEL, LAKE])
def test_a_run_is_an_ordinary_one_and_repeats(env: str, agent: str) -> None:
    one, two = result_of(env, agent), result_of(env, agent)
    assert one.rewards.shape == (12,)
    assert one.updates > 0
    assert one.cpu_seconds > 0
    np.testing.assert_array_equal(one.rewards, two.rewards)
    assert (one.regret is None) == (env != MODEL)


@every_agent
def test_regret_is_that_of_the_greedy_policy(agent: str) -> None:
    env = linmdp.make_env(MODEL)
    made = linmdp.make_agent(agent, env, episodes=10)
    result = linmdp.run(env, made, episodes=10, seed=1)
    assert result.regret is not None
    assert (np.diff(result.regret, prepend=0.0) >= -1e-9).all()
    assert [made.act(0, s) for s in range(env.task.S or 0)] == made.policy(0).tolist()


def test_every_episode_is_reported_once_and_no_more_are_played() -> None:
    seen: list[EpisodeRecord] = []
    result = result_of(LAKE, AGENTS[0], on_episode=seen.append)
    assert [r.episode for r in seen] == list(range(12))
    np.testing.assert_array_equal([r.reward for r in seen], result.rewards)


def test_raw_observations_are_scaled_bytes_codes_and_states() -> None:
    game = linmdp.make_env(GAME)
    state, _ = game.reset(seed=0)
    seen = Scaler(game)(state)
    np.testing.assert_allclose(seen, state / 255, atol=1e-6)
    assert Scaler(game).space.contains(seen)
    assert Scaler(linmdp.make_env(MODEL))(3) == 3


def test_codes_of_a_linearized_environment_are_one_hot(tmp_path: Path) -> None:
    from linmdp.envs.games import Game
    from linmdp.linearize.model import write_model
    from linmdp.linearize.train import Settings, train

    data = random_data(Game("FrozenLake-v1"), transitions=400, H=20, seed=0)
    path = tmp_path / "lake.safetensors"
    write_model(path, train(data, Settings(d=4, steps=20, batch=32, hidden=8, eval_every=10)))
    env = linmdp.make_env(f"linearized:model={path},mode=game,H=10")
    np.testing.assert_array_equal(Scaler(env)(np.array([5.0])), np.eye(16, dtype=np.float32)[5])


def test_bytes_are_networks_optimizer_and_buffer() -> None:
    env = linmdp.make_env(GAME)
    H, A = env.task.H, env.task.A
    agent: Any = linmdp.make_agent(AGENTS[0], env, episodes=12)
    result = linmdp.run(env, agent, episodes=12)
    network = 4 * (128 * 64 + 64 + 64 * 64 + 64 + 64 * A + A)
    buffer = 12 * H * (2 * 128 * 4 + 8 + 4 + 4 + 4)  # two observations, action, reward, done, timeout
    assert result.peak_bytes == pytest.approx(2 * network + 3 * network + buffer, rel=0.01)  # q, target; grad, Adam
    assert result.peak_bytes == model_bytes(agent._model) <= agent.bytes_after(12)
    assert result.params["buffer_size"] == 12 * H


def test_the_same_from_a_batch_of_runs() -> None:
    jobs = jobs_for(LAKE, [AGENTS[0], "random"], episodes=6, seeds=2, seed=3)
    results = list(run_jobs(jobs, processes=1))
    assert [r.agent for r in results] == [AGENTS[0]] * 2 + ["random"] * 2
    np.testing.assert_array_equal(results[0].rewards, result_of(LAKE, AGENTS[0], episodes=6).rewards)


@pytest.mark.parametrize(
    ("agent", "words"),
    [
        ("sb3-dqn:learning_rat=1", "no parameter of sb3-dqn 'learning_rat'. Did you mean 'learning_rate'"),
        ("sb3-dqn:learning_rate=fast", "'learning_rate' parameter of sb3-dqn must be a finite number >= 0"),
        ("sb3-dqn:buffer_size=0", "'buffer_size' parameter of sb3-dqn must be a whole number >= 1"),
        ("sb3-ppo:n_steps=2.5", "'n_steps' parameter of sb3-ppo must be a whole number"),
        ("sb3-ppo:normalize_advantage=3", "must be true or false"),
        ("sb3-ppo:n_steps=1", "stable-baselines3 cannot make sb3-ppo"),
        ("sb3-ddqn", "There is no agent 'sb3-ddqn'. Did you mean 'sb3-dqn'"),
    ],
)
def test_bad_parameters_are_one_line(agent: str, words: str) -> None:
    with pytest.raises(LinMDPError) as caught:
        linmdp.make_agent(agent, linmdp.make_env(LAKE), episodes=5)
    assert words in str(caught.value)
    assert len(str(caught.value).splitlines()) == 1


def test_they_are_not_saved_here() -> None:
    agent = linmdp.make_agent(AGENTS[0], linmdp.make_env(LAKE), episodes=5)
    with pytest.raises(InvalidParameter, match="cannot be saved here"):
        agent.state_dict()


def test_without_the_library_one_line_names_the_extra() -> None:
    code = "import sys; sys.modules['stable_baselines3'] = None; from linmdp.cli import main; main()"
    call = [sys.executable, "-c", code]
    done = subprocess.run([*call, "run", LAKE, "sb3-dqn", "-k", "2"], capture_output=True, text=True)
    assert done.returncode == 2
    assert done.stderr.splitlines() == [
        "linmdp: sb3-dqn needs stable_baselines3, which is not installed: pip install 'linmdp[baselines]'."
    ]
    listed = subprocess.run([*call, "agents"], capture_output=True, text=True, check=True).stdout
    assert "sb3-ppo\n    sb3-ppo needs stable_baselines3" in listed


def test_runs_from_the_command_line(tmp_path: Path) -> None:
    done = command("compare", MODEL, *AGENTS, "-k", "8", "--seeds", "1", "--out", str(tmp_path))
    assert all(agent in done.out for agent in AGENTS), done.err


@pytest.mark.parametrize("agent", ["sb3-dqn", "sb3-ppo"])
def test_settings_for_few_steps_are_defaults_that_can_be_given(agent: str) -> None:
    env = linmdp.make_env("gym:CartPole-v1,H=20,features=fourier")
    usual, few, given = (
        linmdp.make_agent(name, env, episodes=2) for name in (agent, f"{agent}-few", f"{agent}-few:learning_rate=0.5")
    )
    assert isinstance(few, SB3Agent)
    assert isinstance(given, SB3Agent)
    settings = dict(few.settings)
    assert few.get_params() == usual.get_params() | settings
    assert few._model.learning_rate == settings["learning_rate"]
    assert given._model.learning_rate == 0.5
    assert given.get_params() == few.get_params() | {"learning_rate": 0.5}
