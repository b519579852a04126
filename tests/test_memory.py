"""No command takes more than a quarter of the machine's memory unless it is told that it may."""

from __future__ import annotations

import subprocess
import sys
import tracemalloc
from pathlib import Path

import pytest

from command import linmdp as command
from linmdp.io import memory
from linmdp.runner.tune import Search


def test_the_limit_is_a_quarter_of_the_machine_and_ends_with_the_command(monkeypatch: pytest.MonkeyPatch) -> None:
    limits = []

    def noted(*_: object) -> bool:
        limits.append(memory.memory_limit.get())
        return True

    monkeypatch.setattr("linmdp.cli.check.print_check", noted)
    assert command("check", "lock").status == 0
    assert command("check", "lock", "--max-memory", "2GiB").status == 0
    machine = memory.machine_memory()
    assert machine is not None
    assert limits == [machine // 4, 2 * 2**30]
    assert memory.memory_limit.get() is None


@pytest.mark.parametrize("size", ["much", "-1", "0"])
def test_a_size_that_is_none_is_refused_in_one_line(size: str) -> None:
    done = command("check", "lock", "--max-memory", size)
    assert (done.status, done.err.count("\n")) == (2, 1)
    assert "max_memory" in done.err


SPEC = """
name = "large"
[[runs]]
env = "{env}"
agents = ["{agent}"]
episodes = 10
seeds = 1
"""
LARGE = "lsvi-ucb:stationary=false,storage=features,lam=1"


@pytest.mark.parametrize("name", ["run", "compare", "check", "tune", "sweep"])
def test_what_needs_more_is_refused_before_it_is_made(name: str, tmp_path: Path) -> None:
    env = "gym:CartPole-v1"  # 200 features, 500 steps: 156 MiB
    (tmp_path / "large.toml").write_text(SPEC.format(env=env, agent=LARGE))
    words = {
        "run": ["run", env, LARGE, "-k", "10"],
        "compare": ["compare", env, LARGE, "random", "-k", "10"],
        "check": ["check", env, "--agent", LARGE, "-k", "10"],
        "tune": ["tune", env, LARGE, "-k", "30", "--out", str(tmp_path / "t")],
        "sweep": ["sweep", str(tmp_path / "large.toml"), "--out", str(tmp_path / "s")],
    }[name]
    done = command(*words, "--max-memory", "60MB")
    assert "--max-memory" in done.out + done.err
    if name != "check":  # which says it, and what to try
        assert (done.status, done.err.splitlines()[-1].startswith("linmdp: ")) == (2, True)


def test_candidates_that_do_not_fit_are_left_out() -> None:
    token = memory.memory_limit.set(2 * 400 * 2**20)
    tracemalloc.start()
    try:
        search = Search("gym:CartPole-v1", "lsvi-ucb", episodes=30, seeds=2, budget=600, processes=2)
        assert tracemalloc.get_traced_memory()[1] < search.available
    finally:
        tracemalloc.stop()
        memory.memory_limit.reset(token)
    assert search.available == 200 * 2**20
    assert search.left_out > 0
    assert len(search.settings) > 10


@pytest.mark.skipif(sys.platform != "linux", reason="the limit of a process is Linux's")
def test_what_no_forecast_knows_ends_with_a_line_too(tmp_path: Path) -> None:
    (tmp_path / "hungry.py").write_text(
        "import linmdp, numpy\n"
        "@linmdp.register_env('hungry')\n"
        "def hungry():\n"
        "    numpy.ones(200_000_000)\n"
        "    return linmdp.make_env('lock')\n"
    )
    line = [sys.executable, "-c", "from linmdp.cli import main; main()", "run", "hungry", "lsvi-ucb", "-k", "3"]
    done = subprocess.run(
        [*line, "--import", "hungry", "--max-memory", "500MB"], cwd=tmp_path, capture_output=True, text=True
    )
    assert (done.returncode, done.stderr.count("\n")) == (2, 1), done.stderr
    assert "Memory" in done.stderr
    done = subprocess.run([*line[:-4], "run", "lock", "--max-memory", "1KiB"], capture_output=True, text=True)
    assert (done.returncode, done.stderr.count("\n")) == (2, 1), done.stderr
    assert "Give more, as in --max-memory 1GiB" in done.stderr or "allows: Unable" in done.stderr
