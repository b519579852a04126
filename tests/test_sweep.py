"""Sweeps: all errors at once, runs stored once, killed and resumed sweeps equal to undisturbed ones."""

from __future__ import annotations

import random
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from linmdp.errors import InvalidData, InvalidParameter, OutputError
from linmdp.io.memory import available_memory
from linmdp.results.curves import POINTS, thinned
from linmdp.results.rows import row_bytes
from linmdp.results.run_folder import read_folder
from linmdp.results.store import Store
from linmdp.runner import start
from linmdp.runner.batch import jobs_for, run_jobs, run_unit, units
from linmdp.runner.pool import Function, InProcess, Results
from linmdp.runner.progress import Advance
from linmdp.runner.sweep import InvalidSweep, plan, read_sweep, run_key, run_sweep
from linmdp.types import RunResult

EXAMPLES = Path(__file__).parent.parent / "examples"
SMALL = """
name = "small"
[[runs]]
env = ["lock:H=4", "riverswim:H=5"]
agents = ["lsvi-ucb", "lsvi-ucb-fixed", "random"]
grid.rho = [0.5, 0.75]
episodes = [40, 60]
seeds = 4
"""


def written(folder: Path, text: str) -> Path:
    path = folder / "sweep.toml"
    path.write_text(text)
    return path


def contents(store: Path) -> list[tuple[Any, ...]]:
    """Every run without the times, which differ."""
    with sqlite3.connect(store) as db:
        return db.execute("SELECT key, at, regret, rewards FROM runs ORDER BY key").fetchall()


def test_a_plan_is_the_product_of_its_parts(tmp_path: Path) -> None:
    jobs = plan(read_sweep(written(tmp_path, SMALL)))
    # per env and K: lsvi-ucb, fixed at two rho, random; four seeds each
    assert len(jobs) == 2 * 2 * 4 * 4
    assert len({run_key(job) for job in jobs}) == len(jobs)
    assert {j.agent for j in jobs} == {"lsvi-ucb", "lsvi-ucb-fixed:rho=0.5", "lsvi-ucb-fixed:rho=0.75", "random"}


@pytest.mark.parametrize("path", sorted(EXAMPLES.glob("*.toml")), ids=lambda p: p.name)
@pytest.mark.filterwarnings("ignore::linmdp.LinMDPWarning")
def test_the_examples_are_valid(path: Path) -> None:
    assert plan(read_sweep(path))


def test_all_errors_of_a_file_are_reported_at_once(tmp_path: Path) -> None:
    bad = SMALL.replace("seeds = 4", "seeds = 0\nsedes = 4").replace("episodes = [40, 60]", 'episodes = "many"')
    with pytest.raises(InvalidSweep) as found:
        read_sweep(written(tmp_path, bad))
    assert all(path in str(found.value) for path in ("runs.0.seeds", "runs.0.sedes", "runs.0.episodes"))
    bad = SMALL.replace('"lsvi-ucb",', '"lsvi-ubc", "lsvi-ucb:beta=-1",').replace(
        "grid.rho = [0.5, 0.75]", "grid.rho = [7]"
    )
    with pytest.raises(InvalidSweep) as found:
        plan(read_sweep(written(tmp_path, bad.replace("seeds", "grid.speed = [1]\nseeds"))))
    for words in ("'lsvi-ubc'", "'beta' parameter", "'rho' parameter", "grid.speed: no agent"):
        assert words in str(found.value)


def test_a_store_gives_back_what_was_put_in(tmp_path: Path) -> None:
    jobs = jobs_for("lock:H=4", ["lsvi-ucb"], episodes=30, seeds=2)
    results = list(run_jobs(jobs, processes=1))
    store = Store(tmp_path)
    store.add([(run_key(j), r) for j, r in zip(jobs, results, strict=True)])
    store.add([(run_key(jobs[0]), results[1])])  # a run that is there stays
    back = list(Store(tmp_path).results())
    assert len(back) == 2
    for one, two in zip(results, back, strict=True):
        assert one.regret is not None
        assert two.regret is not None
        np.testing.assert_allclose(two.regret, one.regret, rtol=1e-6)
        np.testing.assert_allclose(two.rewards, one.rewards, atol=1e-5)
        assert (two.agent, two.seed, two.params, two.peak_bytes) == (one.agent, one.seed, one.params, one.peak_bytes)


def test_a_store_remembers_where_it_comes_from(tmp_path: Path) -> None:
    store = Store(tmp_path)
    jobs = jobs_for("lock:H=4", ["random"], episodes=3, seeds=2)
    store.add([(run_key(j), r) for j, r in zip(jobs, run_jobs(jobs, processes=1), strict=True)])
    (machine,) = read_folder(tmp_path).machines
    assert machine["runs"] == 2
    assert machine["blas_threads"] == 1
    assert machine["numpy"] == np.__version__
    assert machine["commit"] is None or len(machine["commit"].rstrip("+")) == 40
    for command in ("one", "two", "one"):
        store.note("command", command)
    assert Store(tmp_path).notes("command") == ["one", "two"]
    assert store.notes("other") == []


def test_long_curves_are_thinned_and_keep_their_ends() -> None:
    at = thinned(12_000)
    assert len(at) == POINTS
    assert (at[0], at[-1]) == (0, 11_999)
    np.testing.assert_array_equal(thinned(7), np.arange(7))


def test_a_resumed_sweep_runs_only_what_is_missing(tmp_path: Path) -> None:
    jobs = plan(read_sweep(written(tmp_path, SMALL)))
    store = Store(tmp_path)
    seen: list[RunResult] = []
    run_sweep(jobs[:24], store, processes=1, on_run=seen.append)
    assert [(r.env, r.agent, r.episodes, r.seed) for r in seen] == [job[:4] for job in jobs[:24]]
    seen.clear()
    run_sweep(jobs, store, processes=2, on_run=seen.append)
    assert sorted((r.env, r.agent, r.episodes, r.seed) for r in seen) == sorted(job[:4] for job in jobs[24:])
    assert store.keys() == {run_key(job) for job in jobs}


def test_runs_are_read_in_the_order_of_the_plan_however_they_finished(tmp_path: Path) -> None:
    class Backwards(InProcess):
        def run(self, function: Function, pieces: Sequence[Any], advance: Advance) -> Results:
            for done in super().run(function, pieces[::-1], advance):
                yield done._replace(place=len(pieces) - 1 - done.place)

    first, second = (jobs_for("lock:H=4", agents, episodes=5, seeds=3) for agents in (["random"], ["optimal"]))
    store = Store(tmp_path)
    run_sweep(first, store, pool=Backwards())
    assert [r.seed for r in store.results()] == [0, 1, 2]
    run_sweep(second + first, store, processes=1)  # another plan: its places are taken
    assert [(r.agent, r.seed) for r in store.results()] == [(a, i) for a in ("random", "optimal") for i in range(3)]


@pytest.mark.slow
def test_killed_at_random_moments_a_sweep_ends_equal_to_an_undisturbed_one(tmp_path: Path) -> None:
    """SIGKILL, SIGINT and SIGTERM to the coordinator: nothing lost, nothing twice, curves bit for bit."""
    spec = written(tmp_path, SMALL.replace("[40, 60]", "[400, 600]"))
    calm, disturbed = tmp_path / "calm", tmp_path / "disturbed"
    command = [sys.executable, "-c", "from linmdp.cli import main; main()", "sweep", str(spec), "--jobs", "1", "--out"]
    subprocess.run([*command, str(calm)], check=True, capture_output=True)
    rng, kills = random.Random(0), 0
    for _ in range(20):
        process = subprocess.Popen([*command, str(disturbed)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        time.sleep(0.4 + 0.9 * rng.random())
        process.send_signal(rng.choice((signal.SIGKILL, signal.SIGINT, signal.SIGTERM)))
        kills += process.wait(timeout=600) != 0
    subprocess.run([*command, str(disturbed)], check=True, capture_output=True)
    assert contents(disturbed / "runs.sqlite") == contents(calm / "runs.sqlite")
    assert len(contents(calm / "runs.sqlite")) == 64
    assert kills >= 5  # of 20, before it was finished


def test_a_store_of_another_kind_is_refused_and_left_alone(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    file = tmp_path / "a" / "runs.sqlite"
    file.write_bytes(b"this is no database, only text that is long enough to look at" * 20)
    before = file.read_bytes()
    with pytest.raises(InvalidData, match="no store"):
        Store(tmp_path / "a")
    assert file.read_bytes() == before
    (tmp_path / "b").mkdir()
    Store(tmp_path / "b").close()
    with sqlite3.connect(tmp_path / "b" / "runs.sqlite") as db:
        db.execute("UPDATE meta SET value = '99'")
    with pytest.raises(InvalidData, match=r"must be of version 1\. Got 99"):
        Store(tmp_path / "b")


def test_the_command_line_reports_a_bad_sweep_with_status_2(tmp_path: Path) -> None:
    command = [sys.executable, "-c", "from linmdp.cli import main; main()", "sweep"]
    for path in (tmp_path / "missing.toml", written(tmp_path, "name = ["), written(tmp_path, 'name = "x"')):
        done = subprocess.run([*command, str(path), "--out", str(tmp_path / "o")], capture_output=True, text=True)
        assert done.returncode == 2
        assert "Traceback" not in done.stderr
        assert not (tmp_path / "o").exists()


def test_a_sweep_too_big_for_memory_says_so_before_it_starts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(start, "available_memory", lambda: 2 * 2**20)
    jobs = jobs_for("synthetic:S=50,A=4,d=8,H=10", ["lsvi-ucb:storage=features"], episodes=300, seeds=4)
    one = max(start.unit_bytes(units(jobs), start.fresh_sizes()))
    assert one < 2 * 2**20 < 2 * one
    store = Store(tmp_path)
    with pytest.raises(InvalidParameter, match=r"needs about .* of memory in 2 processes, and 0\.00195 GiB"):
        run_sweep(jobs, store, processes=2)
    assert store.keys() == set()
    run_sweep(jobs[:1], store, processes=2)
    monkeypatch.setattr(start, "available_memory", lambda: None)  # where the system does not say, nothing is refused
    run_sweep(jobs[:2], store, processes=2)
    assert len(store.keys()) == 2


def test_a_sweep_too_big_for_the_disk_says_so_before_it_starts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(start, "free_disk", lambda folder: 20_000)
    jobs, store = jobs_for("lock:H=4", ["random"], episodes=100, seeds=8), Store(tmp_path)
    with pytest.raises(OutputError, match=r"needs about .* GiB of disk space for 8 runs, and .* left"):
        run_sweep(jobs, store, processes=1)
    assert store.keys() == set()
    run_sweep(jobs[:3], store, processes=1)
    assert len(store.keys()) == 3


def test_the_estimates_are_above_what_is_used_and_not_by_far(tmp_path: Path) -> None:
    agents = ["lsvi-ucb", "lsvi-ucb:storage=features", "lsvi-ucb-adaptive:storage=states,m=5"]
    jobs = jobs_for("synthetic:S=50,A=4,d=8,H=10", agents, episodes=120, seeds=4)
    work = units(jobs)
    for unit, most in zip(work, start.unit_bytes(work, start.fresh_sizes()), strict=True):
        held = sum(result.peak_bytes for result in run_unit(unit))
        assert held <= most <= 2 * held + 10**5
    run_sweep(jobs, store := Store(tmp_path), processes=1)
    store.close()
    size, most = store.path.stat().st_size, sum(row_bytes(job.episodes) for job in jobs)
    assert size / 2 <= most <= 4 * size


def test_the_system_is_asked_for_its_room(tmp_path: Path) -> None:
    assert start.free_disk(tmp_path) > 0
    memory = available_memory()
    assert memory is None or memory > 0


def test_a_large_plan_shows_how_far_it_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("linmdp.runner.sweep.WORTH_SHOWING", 10)
    monkeypatch.setattr("linmdp.runner.progress.LINES", 0.0)
    path = written(tmp_path, SMALL)
    jobs = plan(read_sweep(path), progress=True)
    assert f"planned: {len(jobs)} of " in capsys.readouterr().err
    assert plan(read_sweep(path)) == jobs
    assert capsys.readouterr().err == ""
