"""Faults, the short version of benchmarks/faults.py: kills, a full disk, a read-only folder, a clock that goes back."""

from __future__ import annotations

import importlib
import random
import sys
import time
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="looks at processes through /proc")


def benchmark(name: str) -> Any:
    """A program of the benchmarks folder as a module."""
    return importlib.import_module(name)


def test_no_fault_loses_a_run_or_stores_one_twice() -> None:
    rows = list(benchmark("faults").rows(runs=60, kills=3))
    assert [row.promise for row in rows if row.failures] == []
    assert len(rows) == 6


def test_workers_end_with_their_coordinator_and_leave_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    faults = benchmark("faults")
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    spec = tmp_path / "sweep.toml"
    spec.write_text(faults.spec_of(8).replace("episodes = 40", "episodes = 20000"))
    process = faults.quiet(faults.command(spec, tmp_path / "out"))
    try:
        end = time.monotonic() + 60
        while len(at_work := faults.workers(process.pid)) < 2 and time.monotonic() < end:
            time.sleep(0.05)
        time.sleep(random.Random(0).random())
    finally:
        process.kill()
        process.wait()
    assert len(at_work) == 2
    assert faults._outlive(at_work, patience=15.0) == 0
    assert list(tmp_path.glob("linmdp-*")) == []
