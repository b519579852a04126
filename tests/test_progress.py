"""Progress: counted once, also from other processes, and silent where there is no terminal."""

from __future__ import annotations

import contextlib
import os
import pty
import re
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from linmdp.runner import progress
from linmdp.runner.batch import jobs_for, run_jobs
from linmdp.runner.progress import INTERVAL, FileMeter, Meter, Note, Times, progress_bar, watched


def test_no_terminal_no_bar(capsys: pytest.CaptureFixture[str]) -> None:
    with progress_bar("things", 3, show=True) as advance:
        advance()
        advance(2)
    assert capsys.readouterr() == ("", "")


def test_without_a_terminal_there_is_a_line_now_and_then(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(progress, "LINES", -1.0)
    list(run_jobs(jobs_for("lock:H=4", ["lsvi-ucb"], episodes=3, seeds=1), processes=1, progress=True))
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 3
    assert re.fullmatch(r"episodes: 2 of 3, lsvi-ucb: return \S+, regret \S+ an episode, 0:00:0\d left", lines[1])


def test_in_a_notebook_the_line_is_rewritten_and_taken_away(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(progress, "INTERVAL", -1.0)
    monkeypatch.setitem(sys.modules, "ipykernel", sys)
    with progress_bar("things", 4, show=True) as advance:
        advance(1, lambda: "return 7")
    shown = capsys.readouterr().err
    assert shown.startswith("\rthings: 1 of 4, return 7, 0:00:0")
    assert shown.endswith(" \r")
    assert "\n" not in shown


def test_the_return_is_that_of_the_last_episodes() -> None:
    rewards = np.array([100.0] * 5 + [2.0] * 10)
    assert progress.recent(rewards, None) == "return 2"
    assert progress.recent(rewards[:, None], rewards[:, None] / 8) == "return 2, regret 0.25 an episode"
    assert progress.recent(rewards[:0], None) == ""


def test_a_larger_bar_counts_for_a_smaller_one() -> None:
    counted: list[int] = []
    with progress_bar("things", 3, show=lambda steps=1: counted.append(steps)) as advance:
        advance()
        advance(2)
    assert counted == [1, 2]


def test_what_other_processes_count_arrives_once(tmp_path: Path) -> None:
    counted: list[int] = []
    said: set[str] = set()

    class Heard(Meter):
        def __call__(self, steps: int = 1, note: Note | None = None) -> None:
            counted.append(steps)
            said.add(note() if note else "")

    with watched(Heard()) as folder:
        meters = [Times(3, FileMeter(folder / str(i)), f"agent {i}") for i in range(2)]
        for _ in range(4):
            for meter in meters:
                meter(1, lambda: "return 1")
            time.sleep(1.1 * INTERVAL)
        deadline = time.monotonic() + 20
        while sum(counted) < 2 * 4 * 3 and time.monotonic() < deadline:
            time.sleep(INTERVAL)
    assert sum(counted) == 2 * 4 * 3
    assert "agent 0: return 1; agent 1: return 1" in said
    assert not folder.exists()


@pytest.mark.parametrize("jobs", ["1", "2"])
def test_on_a_terminal_there_is_a_bar_that_vanishes(jobs: str) -> None:
    main, side = pty.openpty()
    command = [sys.executable, "-c", "from linmdp.cli import main; main()", "run", "synthetic:H=20", "lsvi-ucb"]
    options = ["--episodes", "150", "--seeds", "4", "--jobs", jobs]
    env = os.environ | ({"NO_COLOR": "1"} if jobs == "1" else {})
    process = subprocess.Popen([*command, *options], stdout=subprocess.PIPE, stderr=side, text=True, env=env)
    os.close(side)
    shown = b""
    with contextlib.suppress(OSError):  # that is how a terminal says that the other end is gone
        while piece := os.read(main, 65536):
            shown += piece
    out, _ = process.communicate(timeout=600)
    os.close(main)
    assert process.returncode == 0
    assert b"episodes" in shown
    assert bool(re.search(rb"\x1b\[[0-9;]*3[0-9]", shown)) == (jobs != "1"), "colours, unless NO_COLOR is set"
    assert "episodes" not in out


def test_progress_does_not_change_results() -> None:
    jobs = jobs_for("lock:H=4", ["lsvi-ucb"], episodes=20, seeds=4)
    plain, shown = (
        [r.final_regret for r in run_jobs(jobs, processes=2, progress=progress)] for progress in (False, True)
    )
    assert plain == shown
