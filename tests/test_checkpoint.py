"""Checkpoints: a run that was interrupted ends as if it never had been; damaged and foreign ones are refused."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import linmdp
from linmdp.io.tensorfile import packed, read_tensors
from linmdp.types import EpisodeRecord, RunResult
from test_contracts import ENVS, SPECS, in_turn, make

SMALL = ENVS[0]
TIMES = ("cpu_seconds", "wall_seconds", "costs")


pytestmark = pytest.mark.filterwarnings("ignore::linmdp.LinMDPWarning")


class Interrupted(Exception):
    """What stops a run in these tests."""


def stop_after(episodes: int) -> Any:
    def stop(record: EpisodeRecord) -> None:
        if record.episode + 1 == episodes:
            raise Interrupted

    return stop


def run(folder: Path | None, env_spec: str = SMALL, spec: str = "lsvi-ucb", **more: Any) -> RunResult:
    env, agent = make(env_spec, spec, more.setdefault("episodes", 40))
    return linmdp.run(env, agent, checkpoint=folder, **{"every": 7 if folder else None, "seed": 3} | more)


def assert_same(one: RunResult, two: RunResult) -> None:
    for name in (f.name for f in fields(RunResult) if f.name not in TIMES):
        np.testing.assert_array_equal(getattr(one, name), getattr(two, name), err_msg=name)
    assert [[*p[:2], p[3]] for p in one.costs] == [[*p[:2], p[3]] for p in two.costs]  # all but the time


def files(folder: Path) -> list[Path]:
    return sorted(folder.glob("*.safetensors"))


@in_turn
def test_an_interrupted_run_ends_as_if_it_never_had_been(env_spec: str, spec: str, tmp_path: Path) -> None:
    calm = run(tmp_path / "calm", env_spec, spec, eval_every=3)
    for at in (9, 24, 38):  # in the middle of a phase, between two evaluations, within the last tenth
        with pytest.raises(Interrupted):
            run(tmp_path / "stopped", env_spec, spec, eval_every=3, on_episode=stop_after(at))
    resumed = run(tmp_path / "stopped", env_spec, spec, eval_every=3)
    assert_same(resumed, calm)
    assert [p.name for p in files(tmp_path / "stopped")] == [p.name for p in files(tmp_path / "calm")]
    one, two = (read_tensors(files(tmp_path / name)[-1], "checkpoint").arrays for name in ("calm", "stopped"))
    assert one.keys() == two.keys()
    for name in one:
        np.testing.assert_array_equal(one[name], two[name], err_msg=name)


@pytest.mark.parametrize("env_spec", [e for e in ENVS if not e.startswith("gym")])
def test_saving_changes_nothing_where_the_model_is_known(env_spec: str, tmp_path: Path) -> None:
    assert_same(run(tmp_path, env_spec), run(None, env_spec))


def test_a_finished_run_comes_back_at_once_and_two_checkpoints_stay(tmp_path: Path) -> None:
    first, played = run(tmp_path), list[EpisodeRecord]()
    assert_same(run(tmp_path, on_episode=played.append), first)
    assert played == []
    assert [p.name for p in files(tmp_path)] == [f"seed-3.episode-{k:010d}.safetensors" for k in (35, 40)]


def damage(path: Path, how: str) -> None:
    data = bytearray(path.read_bytes())
    if how == "truncated":
        data = data[: len(data) // 2]
    elif how == "empty":
        data = bytearray()
    else:
        data[{"a flipped bit at the end": -3, "a flipped bit in the header": 60}[how]] ^= 4
    path.write_bytes(data)


@pytest.mark.parametrize("how", ["truncated", "empty", "a flipped bit at the end", "a flipped bit in the header"])
def test_a_damaged_newest_checkpoint_falls_back_to_the_last_good_one_and_says_so(how: str, tmp_path: Path) -> None:
    calm = run(tmp_path / "calm")
    with pytest.raises(Interrupted):
        run(tmp_path / "a", on_episode=stop_after(30))
    damage(files(tmp_path / "a")[-1], how)
    with pytest.warns(linmdp.LinMDPWarning, match="goes on from episode 21, the last good one") as said:
        resumed = run(tmp_path / "a")
    assert sum("goes on from" in str(w.message) for w in said) == 1
    assert "\n" not in str(said[0].message)
    assert resumed.warnings[0] == str(said[0].message)
    resumed.warnings.pop(0)
    assert_same(resumed, calm)
    assert len(list((tmp_path / "a").glob("*.damaged"))) == 1


def test_without_a_good_checkpoint_nothing_is_started_or_deleted(tmp_path: Path) -> None:
    run(tmp_path)
    for path in files(tmp_path):
        damage(path, "truncated")
    before = {p: p.read_bytes() for p in tmp_path.iterdir()}
    with pytest.raises(linmdp.InvalidData, match="No good one is in"):
        run(tmp_path)
    assert before == {p: p.read_bytes() for p in tmp_path.iterdir()}


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"env_spec": ENVS[1]}, "must be of environment="),
        ({"env_spec": SMALL + ",seed=5"}, "must be of environment="),
        ({"spec": "lsvi-ucb:beta=0.2"}, "is of another agent. The saved agent must have beta=0.2"),
        ({"spec": "random"}, "is of another agent. The saved agent must have agent='random'"),
        ({"episodes": 50}, "must be of episodes=50, as this run. Got 40"),
        ({"eval_every": 2}, "must be of eval_every=2, as this run. Got 1"),
    ],
)
def test_a_checkpoint_of_another_run_is_refused(change: dict[str, Any], words: str, tmp_path: Path) -> None:
    run(tmp_path)
    with pytest.raises(linmdp.InvalidData, match=words) as refused:
        run(tmp_path, **change)
    assert "\n" not in str(refused.value)


def rewritten(path: Path, **run_words: Any) -> None:
    file = read_tensors(path, "checkpoint")
    meta = file.meta | {"run": file.meta["run"] | run_words}
    path.write_bytes(packed("checkpoint", {k: v for k, v in meta.items() if k != "sha256"}, file.arrays))


@pytest.mark.parametrize("words", [{"linmdp": "9.9"}, {"numpy": "1.0"}, {"seed": 4}])
def test_a_checkpoint_of_another_version_or_seed_is_refused(words: dict[str, Any], tmp_path: Path) -> None:
    run(tmp_path)
    rewritten(files(tmp_path)[-1], **words)
    with pytest.raises(linmdp.InvalidData, match=f"must be of {next(iter(words))}="):
        run(tmp_path)


def test_a_checkpoint_of_another_format_is_refused_and_not_taken_for_damaged(tmp_path: Path) -> None:
    run(tmp_path)
    path = files(tmp_path)[-1]
    file = read_tensors(path, "checkpoint")
    path.write_bytes(packed("checkpoint", file.meta | {"format": 2}, file.arrays))
    with pytest.raises(linmdp.InvalidData, match=r"of format 1 written by linmdp\. Got"):
        run(tmp_path)


def test_seeds_share_a_folder(tmp_path: Path) -> None:
    one, two = run(tmp_path, seed=1), run(tmp_path, seed=12)
    assert len(files(tmp_path)) == 4
    assert_same(run(tmp_path, seed=1), one)
    assert_same(run(tmp_path, seed=12), two)


def test_what_a_killed_process_left_half_written_is_cleared_away(tmp_path: Path) -> None:
    run(tmp_path)
    half = tmp_path / ".seed-3.episode-0000000021.safetensors.x7k2"
    half.write_bytes(b"half")
    run(tmp_path)
    assert not half.exists()


@pytest.mark.parametrize("spec", [s for s in SPECS if s != "optimal"])
@pytest.mark.parametrize("env_spec", [SMALL, "gym:FrozenLake-v1,H=12"])
def test_an_agent_is_saved_and_loaded_in_two_lines(env_spec: str, spec: str, tmp_path: Path) -> None:
    env, agent = make(env_spec, spec)
    linmdp.run(env, agent, episodes=20, seed=1)
    agent.save(tmp_path / "agent.safetensors")
    twin = linmdp.load_agent(tmp_path / "agent.safetensors", env)
    assert twin.get_params() == agent.get_params()
    policy = linmdp.load_policy(tmp_path / "agent.safetensors", env.task)
    for who in (agent, twin):
        who.begin_episode()
    for h in range(env.task.H):
        for s in range(env.task.S):
            np.testing.assert_array_equal(agent.q_values(h, s), twin.q_values(h, s))
            assert agent.act(h, s) == twin.act(h, s)
            q = policy.q_values(h, s)
            assert q[policy(h, s)] >= q.max() - 1e-6


def test_an_agent_of_a_checkpoint_is_loaded_too(tmp_path: Path) -> None:
    run(tmp_path, spec="lsvi-ucb:storage=centres,lam=0.1,M=4")
    env = linmdp.make_env(SMALL)
    assert linmdp.load_agent(files(tmp_path)[-1], env).updates > 0


def test_an_agent_of_another_task_is_refused(tmp_path: Path) -> None:
    agent = make(SMALL, "lsvi-ucb")[1]
    agent.save(tmp_path / "agent")
    with pytest.raises(linmdp.InvalidData, match=r"cannot be used here\. Its metadata must say S=2"):
        linmdp.load_agent(tmp_path / "agent", linmdp.make_env("lock:H=3"))


COMMAND = [sys.executable, "-c", "from linmdp.cli import main; main()", "run"]


def command_line(folder: Path, *more: str) -> list[str]:
    rest = ["synthetic:S=60,A=4,d=8,H=10", "lsvi-ucb-fixed", "--episodes", "400", "--seeds", "2", "--json"]
    return [*COMMAND, *rest, "--checkpoint", str(folder), "--every", "20", *more]


def without_times(lines: str) -> list[dict[str, Any]]:
    return [{k: v for k, v in json.loads(line).items() if k not in TIMES} for line in lines.splitlines()]


def test_a_command_that_is_killed_and_given_again_prints_what_it_would_have(tmp_path: Path) -> None:
    calm = subprocess.run(command_line(tmp_path / "calm"), capture_output=True, text=True, check=True).stdout
    for wait, how in ((1.1, signal.SIGKILL), (1.3, signal.SIGTERM)):
        process = subprocess.Popen(command_line(tmp_path / "b"), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        time.sleep(wait)
        process.send_signal(how)
        process.wait(timeout=600)
    done = subprocess.run(command_line(tmp_path / "b"), capture_output=True, text=True, check=True)
    assert without_times(done.stdout) == without_times(calm)


def test_every_needs_a_folder_and_a_folder_that_can_be_written(tmp_path: Path) -> None:
    done = subprocess.run([*COMMAND, "lock", "random", "--every", "3"], capture_output=True, text=True)
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    assert "'every' parameter of run must be given with 'checkpoint'" in done.stderr
    (tmp_path / "file").touch()
    done = subprocess.run(
        [*COMMAND, "lock", "random", "--checkpoint", os.fspath(tmp_path / "file")], capture_output=True, text=True
    )
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)


CARTPOLE = "gym:CartPole-v1,H=6,features=fourier,order=1"


@pytest.mark.parametrize("entry", ["count", "radius", "errors"])
def test_a_load_that_fails_changes_nothing(entry: str) -> None:
    env = linmdp.make_env(CARTPOLE)
    agent, fresh = (linmdp.make_agent("lsvi-ucb:storage=centres,lam=0.1,M=12,stationary=true", env) for _ in range(2))
    linmdp.run(env, agent, episodes=30)
    bad = agent.state_dict()
    at = f"planner.storage.{entry}"
    bad[at] = bad[at] - 10**6
    before = fresh.state_dict()
    with pytest.raises(linmdp.InvalidData, match=entry):
        fresh.load_state_dict(bad)
    for name, saved in before.items():
        np.testing.assert_array_equal(fresh.state_dict()[name], saved)


def test_an_agent_of_one_step_keeps_no_samples_and_is_loaded_all_the_same(tmp_path: Path) -> None:
    env = linmdp.make_env("lock:H=1")
    agent = linmdp.make_agent("lsvi-ucb:storage=centres,lam=0.1,M=5000", env)
    linmdp.run(env, agent, episodes=5)
    agent.save(tmp_path / "agent")
    np.testing.assert_array_equal(linmdp.load_agent(tmp_path / "agent", env).q_values(0, 0), agent.q_values(0, 0))
