"""Processes that cannot be started or are killed: one line, and the status of a failure."""

from __future__ import annotations

import os
import shlex
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from test_faults import benchmark

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="looks at processes through /proc")

SPEC = """name = "x"
[[runs]]
env = "lock:H=4"
agents = ["lsvi-ucb:storage=states,beta=0.1"]
episodes = 20000
seeds = 4
"""


def sweep(folder: Path, *options: str) -> list[str]:
    (folder / "s.toml").write_text(SPEC)
    line = [sys.executable, "-c", "from linmdp.cli import main; main()", "sweep", str(folder / "s.toml")]
    return [*line, "--out", str(folder / "out"), *options]


def complaints(said: str) -> list[str]:
    assert "Traceback" not in said
    return [line for line in said.splitlines() if line.startswith("linmdp: ")]


def test_more_processes_than_a_machine_can_have_are_refused(tmp_path: Path) -> None:
    done = subprocess.run(sweep(tmp_path, "-j", "1000000000"), capture_output=True, text=True)
    assert done.returncode == 2
    (line,) = complaints(done.stderr)
    assert "'jobs' parameter of sweep must be a whole number in [1, 1024]. Got 1000000000" in line
    assert not (tmp_path / "out").exists()


def test_too_few_open_files_are_said(tmp_path: Path) -> None:
    limited = ["bash", "-c", f"ulimit -n 20; {shlex.join(sweep(tmp_path, '-j', '2'))}"]
    done = subprocess.run(limited, capture_output=True, text=True)
    assert done.returncode == 1
    (line,) = complaints(done.stderr)
    assert "2 processes cannot be started: OSError: [Errno 24] Too many open files. Try fewer --jobs" in line


def test_workers_that_are_killed_again_and_again_are_a_failure_in_one_line(tmp_path: Path) -> None:
    faults = benchmark("faults")
    process = subprocess.Popen(sweep(tmp_path, "-j", "2"), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    while process.poll() is None:
        for worker in faults.workers(process.pid):
            os.kill(worker, signal.SIGKILL)
        time.sleep(0.02)
    _, said = process.communicate()
    assert process.returncode == 1
    (line,) = complaints(said)
    assert "processes were killed at work, perhaps for want of memory: try fewer --jobs" in line
