"""The command line: exact JSON, figures, and one clear line for everything that is wrong."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import sqlite3
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from linmdp.results.store import Store

SMALL = "synthetic:S=12,A=3,d=4,H=5"
FIELDS = [
    *("env", "agent", "params", "seed", "episodes", "regret", "final_regret", "reward", "agent_bytes"),
    *("planning_bytes", "feature_bytes", "cpu_seconds", "wall_seconds", "updates", "resets", "saturated", "switches"),
    *("chosen", "random_return", "verdict", "certified", "interactions"),
]


def linmdp(*arguments: str, **more: Any) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", "from linmdp.cli import main; main()", *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=600, **more)


def test_json_has_exactly_the_fields_of_the_contract() -> None:
    done = linmdp("run", SMALL, "lsvi-ucb-fixed:rho=0.5", "--episodes", "20", "--seeds", "2", "--seed", "4", "--json")
    assert done.returncode == 0
    assert done.stderr.splitlines()[-1].startswith("too few episodes to tell: 1.4")  # the verdict of both seeds
    records = [json.loads(line) for line in done.stdout.splitlines()]
    assert [list(r) for r in records] == [FIELDS, FIELDS]
    assert [r["seed"] for r in records] == [4, 5]
    first = records[0]
    assert first["env"] == SMALL
    assert first["agent"] == "lsvi-ucb-fixed:rho=0.5"
    assert first["params"]["rho"] == 0.5
    assert first["params"]["episodes"] == 20
    assert len(first["regret"]) == 20
    assert first["regret"][-1] == first["final_regret"]
    assert first["resets"] == 5
    assert first["updates"] == 15 * 5
    assert first["switches"] == 15
    assert first["chosen"]["stationary"] is False


def test_regret_is_null_where_the_optimum_is_unknown() -> None:
    done = linmdp("run", "gym:FrozenLake-v1,H=10", "lsvi-ucb", "--episodes", "5", "--json")
    record = json.loads(done.stdout)
    assert record["regret"] is None
    assert record["final_regret"] is None


def test_jobs_do_not_change_the_numbers() -> None:
    one, two = (
        linmdp("run", SMALL, "lsvi-ucb", "--episodes", "30", "--seeds", "3", "--jobs", jobs, "--json").stdout
        for jobs in ("1", "2")
    )
    drop = ("cpu_seconds", "wall_seconds")
    for a, b in zip(one.splitlines(), two.splitlines(), strict=True):
        assert {k: v for k, v in json.loads(a).items() if k not in drop} == {
            k: v for k, v in json.loads(b).items() if k not in drop
        }


def test_compare_shows_random_and_optimal_and_writes_what_it_says(tmp_path: Path) -> None:
    out = tmp_path / "deep" / "folder"
    agents = ("lsvi-ucb", "lsvi-ucb-adaptive:m=3")
    done = linmdp("compare", SMALL, *agents, "--episodes", "20", "--seeds", "2", "--out", str(out))
    assert done.returncode == 0
    table = [line for line in done.stdout.splitlines() if line.startswith("| ")]
    assert [line.split()[1] for line in table[2:]] == [*agents, "random", "optimal"]
    assert "x the memory of LSVI-UCB" in done.stdout
    written = ["agents", "regret.png", "regret.svg", "results.jsonl", "runs.sqlite", "table.md"]
    assert sorted(p.name for p in out.iterdir()) == written
    assert all(str(out / name) in done.stderr for name in written)
    assert len(list((out / "agents").iterdir())) == 8
    assert (out / "regret.png").read_bytes().startswith(b"\x89PNG")
    assert len((out / "results.jsonl").read_text().splitlines()) == 8


@pytest.mark.parametrize("env", ["synthetic:S=20,A=2,d=3,H=4", "hypercube", "lock", "riverswim"])
def test_check_says_that_it_is_linear(env: str) -> None:
    done = linmdp("check", env)
    assert done.returncode == 0
    assert "It is a linear MDP." in done.stdout


def test_check_says_whether_an_agent_will_learn_and_its_bytes() -> None:
    hopeless = linmdp("check", "synthetic", "--agent", "lsvi-ucb:beta=theory").stdout
    assert "it will NOT learn" in hopeless
    assert "memory: 10 MiB now, at most 10 MiB then" in hopeless
    exploring = linmdp("check", "synthetic", "--agent", "lsvi-ucb:beta=5").stdout
    assert "hardly better than at random" in exploring
    assert "it can learn" in linmdp("check", "synthetic", "--agent", "lsvi-ucb:beta=0.05").stdout


def test_listings_show_every_parameter() -> None:
    agents, envs = linmdp("agents").stdout, linmdp("envs").stdout
    for word in ("lsvi-ucb-adaptive", "tau_rel=none", "proxy=all", "rho=0.75", "storage=auto", "optimal", "constant"):
        assert word in agents
    for word in ("synthetic", "concentration=1.0", "hypercube", "lock", "distractor=0.01", "riverswim", "gym"):
        assert word in envs


def test_theory_warns_a_newcomer() -> None:
    done = linmdp("run", SMALL, "lsvi-ucb:beta=theory", "--episodes", "20")
    assert done.returncode == 0
    assert "it cannot tell good actions from bad ones" in done.stderr


def test_an_unreachable_threshold_warns_once() -> None:
    done = linmdp("run", SMALL, "lsvi-ucb-adaptive:tau=1e9", "--episodes", "20", "--seeds", "2")
    assert done.returncode == 0
    assert done.stderr.count("can never be reached") == 1


BAD = [
    (["run", "syntetic", "lsvi-ucb"], "There is no environment 'syntetic'. Did you mean 'synthetic'?"),
    (["run", "lock", "lsvi-ubc"], "There is no agent 'lsvi-ubc'. Did you mean 'lsvi-ucb'?"),
    (["run", "lock:depht=3", "random"], "There is no parameter of lock 'depht'."),
    (["run", "synthetic:noize=1", "random"], "Did you mean 'noise'?"),
    (["run", "lock", "lsvi-ucb:betta=1"], "Did you mean 'beta'?"),
    (["run", "lock", "lsvi-ucb-fixed:rho=1.5"], "'rho' parameter of lsvi-ucb-fixed must be a finite number in (0, 1]"),
    (["run", "lock", "lsvi-ucb-fixed:rho=0"], "Got 0."),
    (
        ["run", "lock", "lsvi-ucb", "--episodes", "0"],
        "'episodes' parameter of run must be a whole number in [1, 1000000000]. Got 0.",
    ),
    (["run", "lock", "lsvi-ucb", "--seeds", "0"], "'seeds' parameter of run must be a whole number in [1, 1000000]"),
    (["run", "lock", "lsvi-ucb", "--jobs", "0"], "'jobs' parameter of run must be a whole number in [1, 1024]"),
    (["run", "lock", "lsvi-ucb", "--eval-every", "-1"], "'eval_every' parameter of run"),
    (["run", "lock", "lsvi-ucb", "--seed", "-1"], "'seed' parameter of run"),
    (["run", "lock", "lsvi-ucb:lam=-1"], "'lam' parameter of lsvi-ucb must be a finite number > 0. Got -1."),
    (["run", "lock", "lsvi-ucb:beta=-0.1"], "'beta' parameter of lsvi-ucb must be a finite number >= 0. Got -0.1."),
    (["run", "lock", "lsvi-ucb:beta=nan"], "Got nan."),
    (["run", "lock", "lsvi-ucb:beta=large"], "'theory' or 'published'. Got 'large'."),
    (["run", "lock", "lsvi-ucb:cap=K"], "must be one of 'H', 'remaining'. Got 'K'."),
    (["run", "lock", "lsvi-ucb:storage=disk"], "'storage' parameter of lsvi-ucb must be one of"),
    (["run", "lock", "lsvi-ucb:dtype=int8"], "'dtype' parameter"),
    (["run", "lock", "lsvi-ucb-adaptive:tau=1,tau_c=1"], "in one form only, not as tau and tau_c"),
    (
        ["run", "lock", "lsvi-ucb-adaptive:m=0"],
        "'m' parameter of lsvi-ucb-adaptive must be a whole number in [1, 10000000]",
    ),
    (["run", "lock", "lsvi-ucb-adaptive:budget=2.5"], "'budget' parameter of lsvi-ucb-adaptive"),
    (["run", "lock", "constant:action=9"], "'action' parameter of constant must be a whole number in [0, 4]. Got 9."),
    (["run", "lock", "lsvi-ucb:beta"], "must be written key=value. Got 'beta'."),
    (["run", "lock", "lsvi-ucb:beta=1,beta=2"], "must be given once"),
    (["run", "lock:H=0", "random"], "'H' parameter of lock must be a whole number >= 1. Got 0."),
    (["run", "synthetic:S=2.5", "random"], "'S' parameter of synthetic must be a whole number >= 1. Got 2.5."),
    (["run", "synthetic:concentration=0", "random"], "'concentration' parameter of synthetic"),
    (["run", "synthetic:start=north", "random"], "'start' parameter of synthetic must be one of"),
    (["run", "lock", "random", "--device", "tpu"], "'device' parameter"),
    (["run", "gym:NoSuchGame-v7", "random"], "There is no Gymnasium environment 'NoSuchGame-v7'."),
    (["run", "gym:CartPole-v1,features=onehot", "random"], "Observations of 'CartPole-v1' must be whole numbers"),
    (["run", "gym:CartPole-v1,actions=5", "random"], "'actions' parameter of 'CartPole-v1' must be left out"),
    (["run", "gym:CliffWalking-v1,H=50,reward_low=0,reward_high=1", "random"], "must be in [0, 1]. Got -1"),
    (["run", "gym:FrozenLake-v1,H=9", "optimal"], "optimal policy is known only where the model is"),
    (
        ["run", "gym:CartPole-v1,features=fourier,dim=3", "random"],
        "'dim' parameter of 'CartPole-v1' must be left out: features=fourier has order, coupling",
    ),
    (["run", "gym:CartPole-v1,features=cosine", "random"], "There is no feature map 'cosine'."),
    (["run", "gym:CartPole-v1,speed=9", "random"], "Gymnasium cannot make 'CartPole-v1'"),
    (
        ["run", "lock", "lsvi-ucb:beta=1e200"],
        "'beta' parameter of lsvi-ucb must be such that beta^2 / lam is below 1e+100",
    ),
    (["run", "lock", "lsvi-ucb:lam=1e-320"], "'lam' parameter of lsvi-ucb"),
    (["run", "lock", "lsvi-ucb:lam=1e-9,beta=1e60"], "'beta' parameter of lsvi-ucb"),
    (["run", "lock:seed=" + "9" * 400, "lsvi-ucb", "-k", "0"], "'episodes' parameter of run"),
    (["run", "lock", "lsvi-ucb", "-k", "9" * 400], "'episodes' parameter of run"),
    (["run", "gym:FrozenLake-v1,map_name=foo", "random"], "Gymnasium cannot make 'FrozenLake-v1'"),
    (["run", "gym:FrozenLake-v1,H=500", "random"], "'H' parameter of FrozenLake-v1 must be a whole number in [1, 100]"),
    (["run", "gym:FrozenLake-v1,self=1", "random"], "has a parameter that cannot be given"),
    (["run", "gym", "random"], "'id' parameter of gym must be given"),
    (["run", "synthetic:S=1000000000", "random"], "this does not fit into memory"),
    (["run", "lock", "optimal:Q=3"], "There is no parameter of optimal 'Q'."),
    (["check", "lock", "--agent", "nobody"], "There is no agent 'nobody'."),
    (["compare", "lock", "lsvi-ucb", "--out", "/proc/nowhere"], "output folder '/proc/nowhere' must be writable"),
]


@pytest.mark.parametrize(("arguments", "words"), BAD, ids=[" ".join(a) for a, _ in BAD])
def test_bad_input_is_one_line_and_status_2(arguments: list[str], words: str) -> None:
    done = linmdp(*arguments)
    assert done.returncode == 2
    assert words in done.stderr
    assert done.stdout == ""
    assert len([line for line in done.stderr.splitlines() if ": chosen " not in line]) == 1  # of a run that began
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    "arguments",
    [["run"], ["run", "lock", "random", "--epsiodes", "3"], ["rum"], ["run", "lock", "random", "-k", "many"]],
)
def test_wrong_usage_is_one_line_and_status_2(arguments: list[str]) -> None:
    done = linmdp(*arguments)
    assert done.returncode == 2
    assert len(done.stderr.splitlines()) == 1
    assert "Traceback" not in done.stderr


def test_a_refused_command_writes_nothing(tmp_path: Path) -> None:
    out = tmp_path / "out"
    assert linmdp("compare", "lock", "lsvi-ucb", "lsvi-ucb-fixed:rho=7", "--out", str(out)).returncode == 2
    assert not out.exists()


def stored(path: Path) -> int:
    """How many runs a store has that another process writes; 0 before it is there."""
    try:
        with contextlib.closing(sqlite3.connect(f"{path.as_uri()}?mode=ro", uri=True)) as connection:
            return int(connection.execute("SELECT COUNT(*) FROM runs").fetchone()[0])
    except sqlite3.OperationalError:
        return 0


def test_ctrl_c_keeps_what_is_finished_and_says_how_to_go_on(tmp_path: Path) -> None:
    command = [sys.executable, "-c", "from linmdp.cli import main; main()", "run", "synthetic", "lsvi-ucb"]
    command += ["--episodes", "150", "--seeds", "12", "--jobs", "1", "--out", str(tmp_path)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    deadline = time.monotonic() + 120
    while not stored(tmp_path / "runs.sqlite") and time.monotonic() < deadline:  # the first of two groups in lockstep
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=600)
    assert process.returncode == 1, err
    assert "Traceback" not in err
    with contextlib.closing(Store(tmp_path)) as store:
        finished = len(store.keys())
    assert 1 <= finished < 12
    where = tmp_path / "runs.sqlite"
    assert f"stopped: {finished} of 12 runs are stored in {where}. The same command goes on." in err
    assert len((tmp_path / "results.jsonl").read_text().splitlines()) == finished


def test_runs_into_the_same_folder_add_up(tmp_path: Path) -> None:
    """What Ctrl-C advises loses nothing; a run that is done again is there once."""
    for first, count in (("0", "3"), ("3", "2"), ("1", "1")):
        linmdp("run", "lock", "lsvi-ucb", "-k", "5", "--seed", first, "--seeds", count, "--out", str(tmp_path))
    seeds = [json.loads(line)["seed"] for line in (tmp_path / "results.jsonl").read_text().splitlines()]
    assert sorted(seeds) == [0, 1, 2, 3, 4]


def test_sigterm_stops_workers_too(tmp_path: Path) -> None:
    command = [sys.executable, "-c", "from linmdp.cli import main; main()", "run", "synthetic:H=20", "lsvi-ucb"]
    process = subprocess.Popen(
        [*command, "--episodes", "100000", "--seeds", "8", "--jobs", "2"], stderr=subprocess.PIPE, text=True
    )
    children = Path(f"/proc/{process.pid}/task/{process.pid}/children")
    while len(children.read_text().split()) < 2 and process.poll() is None:
        time.sleep(0.1)
    time.sleep(2)
    process.terminate()
    _, err = process.communicate(timeout=600)  # the pipe closes only when the workers are gone as well
    assert process.returncode == 1
    assert "stopped: none of 8 runs is finished." in err


@pytest.mark.parametrize("arguments", [["envs"], ["run", "lock", "random", "-k", "3", "--json"]])
def test_a_full_standard_output_is_one_line_and_status_1(arguments: list[str]) -> None:
    if not os.path.exists("/dev/full"):
        pytest.skip("no /dev/full here")
    with open("/dev/full", "w") as full:
        command = [sys.executable, "-c", "from linmdp.cli import main; main()", *arguments]
        done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True, timeout=600)
    assert done.returncode == 1
    assert done.stderr.splitlines() == ["linmdp: the output could not be written: No space left on device."]


def test_a_full_disk_is_one_line_and_leaves_the_old_file(tmp_path: Path) -> None:
    from linmdp.errors import OutputError
    from linmdp.io.files import write_atomic

    target = tmp_path / "table.md"
    write_atomic(target, b"old")
    if not os.path.exists("/dev/full"):
        pytest.skip("no /dev/full here")
    import resource

    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, hard))
    try:
        with pytest.raises(OutputError, match="could not be written"):
            write_atomic(target, b"x" * 100_000)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert target.read_bytes() == b"old"
    assert [p.name for p in tmp_path.iterdir()] == ["table.md"]
