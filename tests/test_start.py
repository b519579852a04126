"""Before a run starts: what was chosen is said, and too much memory or time is refused in one line."""

from __future__ import annotations

import os
import pty
import shlex
import subprocess
import sys
import time
import tracemalloc
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import linmdp
from command import linmdp as command
from linmdp.agents import baselines
from linmdp.runner import start
from linmdp.runner.registry import AGENTS, ENVS
from linmdp.runner.start import prepared

LOCK = "lock:H=4,A=3"
LONG = ("run", "synthetic", "lsvi-ucb", "--episodes", "20000000")


class Chooses(linmdp.QLearning):
    """Q-learning that says what it chose."""

    name = "chooses"

    def __init__(self, task: linmdp.Task, **parameters: Any) -> None:
        super().__init__(task, **parameters)
        self.chosen = {"lam": 0.0123456, "beta": 0.5, "stationary": True}


def task_that_chooses() -> Any:
    """A task that says what it chose."""

    class Chosen(linmdp.GymTask):
        chosen: Any = {"features": "onehot", "d": 64}  # noqa: RUF012

    return Chosen("FrozenLake-v1", H=10)


@pytest.fixture
def choosing() -> Iterator[None]:
    with AGENTS.temporarily("chooses", Chooses), ENVS.temporarily("task-that-chooses", task_that_chooses):
        yield


@pytest.mark.usefixtures("choosing")
def test_what_was_chosen_is_said_at_the_start_and_in_the_table(tmp_path: Path) -> None:
    words = ("compare", "task-that-chooses", "chooses", "lsvi-ucb:max_bytes=1MiB", "--episodes", "4", "--jobs", "1")
    done = command(*words, "--out", str(tmp_path))
    said = "task-that-chooses: chosen features=onehot, d=64; chooses: chosen stationary=true, lam and beta from"
    assert done.err.startswith(said + " the data; lsvi-ucb:max_bytes=1MiB: chosen stationary=true, storage=")
    shown = "chosen for all: features=onehot, d=64\n\nchosen by chooses: lam=0.0123, beta=0.5, stationary=true\n"
    assert shown in done.out
    assert shown in command("table", str(tmp_path)).out
    command("table", str(tmp_path), "--csv", str(tmp_path / "runs.csv"))
    header = (tmp_path / "runs.csv").read_text().splitlines()[0].split(",")
    assert {"chosen.features", "chosen.d", "chosen.lam", "chosen.stationary"} <= set(header)


@pytest.mark.parametrize(
    "spec", ["lsvi-ucb", "lsvi-ucb:beta=0.1,storage=features", "lsvi-ucb:storage=centres,lam=0.1,M=20", "lsvi-phe"]
)
@pytest.mark.parametrize("env", ["synthetic:S=50,A=4,d=60,H=50", "gym:CartPole-v1,H=20"])
def test_bytes_are_predicted_without_making_the_agent(spec: str, env: str) -> None:
    made: Any = linmdp.make_env(env)
    tracemalloc.start()
    predicted = start.predicted_bytes(spec, made.unwrapped.task, 300)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    agent = linmdp.make_agent(spec, made, 300)
    assert predicted is not None
    assert agent.bytes_after(300) <= predicted
    assert peak < max(agent.nbytes, 10**6) / 2


def test_an_agent_that_is_too_large_is_refused_and_never_made(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(start, "available_memory", lambda: 10**6)
    monkeypatch.setattr("linmdp.runner.registry.make_learner", lambda *_: pytest.fail("it was made"))
    done = command("run", "gym:CartPole-v1", "lsvi-ucb:stationary=false", "--episodes", "10")
    assert done.status == 2
    assert done.err.startswith("linmdp: 'lsvi-ucb:stationary=false' needs about ")
    assert "of memory from the start, and 977 KiB are available: use max_bytes=2MiB or another storage" in done.err
    assert done.err.count("\n") == 1


def test_a_run_that_will_grow_too_large_is_refused() -> None:
    done = command("run", "gym:CartPole-v1", "lsvi-ucb:beta=0.1,storage=features", "--episodes", "20000000")
    assert done.status == 2
    assert "GiB of memory in one process" in done.err
    assert done.err.endswith("fewer episodes, or allow more with --max-memory.\n")
    assert done.err.count("\n") == 1


def test_runs_that_do_not_fit_side_by_side_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    agent = linmdp.make_agent("q-learning", linmdp.make_env(LOCK))
    monkeypatch.setattr(start, "available_memory", lambda: 3 * (agent.nbytes + 32_000))
    words = ("run", LOCK, "q-learning", "--episodes", "1000", "--seeds", "8", "--jobs")
    assert command(*words, "1").status == 0
    done = command(*words, "8")
    assert done.status == 2
    assert "of memory in 8 processes" in done.err


def test_a_short_run_is_not_tried() -> None:
    ready = prepared(LOCK, ["lsvi-ucb"], episodes=1000, seeds=3)
    assert ready.seconds(ready.jobs, 1) == 0
    assert ready.agents["lsvi-ucb"].policy_version == 0


def test_a_long_run_is_tried_briefly() -> None:
    ready = prepared("synthetic", ["lsvi-ucb"], episodes=2 * 10**7, seeds=1)
    assert ready.seconds(ready.jobs, 1) > 3600
    assert 0 < ready.agents["lsvi-ucb"].policy_version <= 120


def test_more_than_an_hour_is_refused_without_a_terminal() -> None:
    done = command(*LONG)
    assert done.status == 2
    assert done.out == ""
    assert done.err.startswith("linmdp: this will take about ")
    assert " hours: use --yes to start it all the same, or fewer --episodes or --seeds" in done.err
    assert done.err.count("\n") == 1


def test_yes_starts_it_and_what_is_stored_takes_no_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("WORTH_A_TRIAL", "LONG"):
        monkeypatch.setattr(start, name, 0.0)
    words = ("run", LOCK, "lsvi-ucb", "--episodes", "20", "--out", str(tmp_path))
    assert command(*words).status == 2
    assert command(*words, "--yes").status == 0
    assert command(*words).status == 0


def test_on_a_terminal_it_is_asked() -> None:
    mine, theirs = pty.openpty()
    code = "from linmdp.cli import main; main()"
    with subprocess.Popen([sys.executable, "-c", code, *LONG], stdin=theirs, stdout=theirs, stderr=theirs) as running:
        os.close(theirs)
        seen = b""
        while b"Start? [y/N]: " not in seen:
            seen += os.read(mine, 1000)
        os.write(mine, b"n\n")
        assert running.wait(60) == 1
    assert b"forecast: about " in seen
    os.close(mine)


@pytest.mark.parametrize(("env", "agent"), [("gym:CartPole-v1,H=30", "auto"), ("gym:FrozenLake-v1", "lsvi-ucb")])
def test_check_ends_with_a_command_that_runs(env: str, agent: str) -> None:
    done = command("check", env, "--episodes", "15")
    assert done.status == 0
    line = done.out.splitlines()[-1]
    assert line.startswith(f"try: linmdp run {env} {agent} --episodes 15  # about ")
    assert command(*shlex.split(line.removeprefix("try: linmdp "), comments=True)).status == 0


class SlowAtFirst(baselines.RandomAgent):
    """Random play that takes its time in its first two episodes."""

    def end_episode(self) -> None:
        self.k = getattr(self, "k", 0) + 1
        end = time.process_time() + 0.2 * (self.k <= 2)
        while time.process_time() < end:
            pass


def test_a_trial_run_sees_more_than_slow_first_episodes() -> None:
    env = linmdp.make_env(LOCK)
    agent = SlowAtFirst(env.task)
    assert start.tried_cost(env, agent, 1000, seconds=0.15).seconds(agent, 1000) < 50  # of 200, by the first alone


def test_check_predicts_what_would_not_fit() -> None:
    done = command("check", "gym:CartPole-v1", "--agent", "lsvi-ucb:storage=features", "--episodes", "20000000")
    assert "more than it may take: use max_bytes=2MiB" in done.out
    assert done.out.splitlines()[-1].startswith("try: linmdp run gym:CartPole-v1 auto --episodes ")


def test_check_says_how_to_go_on_where_a_reward_is_out_of_range() -> None:
    done = command("check", "gym:CliffWalking-v1,H=50,reward_low=-2,reward=error")
    assert done.status == 1
    again = "linmdp check gym:CliffWalking-v1,H=50,reward=error,reward_low=-100"
    assert done.out.splitlines()[-1] == f"try: {again}"
    assert command(*again.split()[1:]).status == 0
