"""Pools: wherever work runs, all of it is done once, is the same to the last bit, and faults are one line."""

from __future__ import annotations

import json
import os
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from linmdp.errors import ClusterError, InvalidData, LinMDPWarning
from linmdp.results.store import Store
from linmdp.runner import batch
from linmdp.runner import pool as pools
from linmdp.runner.batch import jobs_for, units
from linmdp.runner.pool import Dask, InProcess, PieceFailed, Pool, Processes
from linmdp.runner.progress import Advance
from linmdp.runner.sweep import plan, read_sweep, run_sweep

SPEC = """
name = "cluster"
[[runs]]
env = "synthetic:S=60,A=4,d=8,H=15"
agents = ["lsvi-ucb", "lsvi-ucb-fixed", "random"]
grid.beta = [0.02, 0.05]
grid.rho = [0.5, 0.75]
episodes = [150, 200]
seeds = 4
"""


def until(condition: Callable[[], Any], seconds: float = 60) -> Any:
    """What `condition` returns once that is true of it."""
    deadline = time.monotonic() + seconds
    while not (found := condition()):
        assert time.monotonic() < deadline, "waited in vain"
        time.sleep(0.05)
    return found


def contents(folder: Path) -> list[tuple[Any, ...]]:
    """Every run without the times, which differ."""
    with sqlite3.connect(folder / "runs.sqlite") as db:
        return db.execute("SELECT key, at, regret, rewards FROM runs ORDER BY key").fetchall()


def stored(folder: Path) -> int:
    try:
        return len(contents(folder))
    except sqlite3.Error:
        return 0


class Cluster:
    """A scheduler and its workers: real processes on loopback."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.processes = folder, list[subprocess.Popen[bytes]]()
        file = folder / "scheduler.json"
        self.scheduler = self._start("scheduler", "--host", "127.0.0.1", "--port", "0", "--scheduler-file", str(file))
        self.address: str = json.loads(until(lambda: file.exists() and file.read_text()))["address"]

    def worker(self, threads: int = 1, *options: str) -> subprocess.Popen[bytes]:
        folder = ["--local-directory", str(self.folder)]
        return self._start("worker", self.address, "--nthreads", str(threads), "--no-nanny", *folder, *options)

    def _start(self, *arguments: str) -> subprocess.Popen[bytes]:
        command = [sys.executable, "-m", "dask", *arguments, "--no-dashboard"]
        here = os.pathsep.join([str(Path(__file__).parent), os.environ.get("PYTHONPATH", "")])
        with (self.folder / f"{len(self.processes)}.log").open("wb") as log:
            process = subprocess.Popen(command, stdout=log, stderr=log, env=os.environ | {"PYTHONPATH": here})
        self.processes.append(process)
        return self.processes[-1]

    def close(self) -> None:
        for process in reversed(self.processes):
            process.kill()
            process.wait()


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Cluster]:
    pytest.importorskip("distributed")
    found = Cluster(tmp_path)
    yield found
    found.close()


def sweep(spec: Path, out: Path, *options: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", "from linmdp.cli import main; main()", "sweep", str(spec), "--out", str(out)]
    return subprocess.Popen([*command, *options], stderr=subprocess.PIPE, text=True)


def no_steps(steps: int = 1) -> None:
    pass


def double(piece: int, advance: Advance) -> int:
    advance(piece)
    return 2 * piece


def fail(piece: int, advance: Advance) -> int:
    if piece == 1:
        raise ZeroDivisionError("no way\nat all")
    return piece


def refuse(piece: int, advance: Advance) -> int:
    raise InvalidData("The data must be good.")


def kill_once(piece: Path, advance: Advance) -> str:
    """Kills the process that it runs in, the first time."""
    if not piece.exists():
        piece.touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return piece.name


def kill_always(piece: int, advance: Advance) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def test_a_worker_killed_in_mid_sweep_costs_nothing_but_its_task(cluster: Cluster, tmp_path: Path) -> None:
    """Two workers, one gets SIGKILL: every run is there once, and equal to the local sweep's, bit for bit."""
    spec, out = tmp_path / "sweep.toml", tmp_path / "out"
    spec.write_text(SPEC)
    first, _ = cluster.worker(), cluster.worker()
    jobs = plan(read_sweep(spec))
    coordinator = sweep(spec, out, "--dask", cluster.address)
    until(lambda: stored(out) >= 4 or coordinator.poll() is not None)
    first.kill()
    missing = len(jobs) - stored(out)
    (tmp_path / "local").mkdir()
    run_sweep(jobs, Store(tmp_path / "local"), processes=1)
    _, err = coordinator.communicate(timeout=600)
    assert coordinator.returncode == 0, err
    assert missing > 0  # when the worker was killed
    assert len(contents(out)) == len(jobs)
    assert contents(out) == contents(tmp_path / "local")
    assert len([line for line in err.splitlines() if not line.startswith("episodes: ")]) <= 2


def test_a_cluster_counts_steps_and_tells_machines(cluster: Cluster) -> None:
    cluster.worker()
    counted: list[int] = []
    with pytest.warns(LinMDPWarning, match="has no worker yet: waiting for one"):
        done = list(Dask(cluster.address).run(double, [1, 2, 3], lambda steps=1: counted.append(steps)))
    assert sorted((d.place, d.value) for d in done) == [(0, 2), (1, 4), (2, 6)]
    assert sum(counted) == 6
    assert all(d.machine is not None and d.machine["blas_threads"] == 1 for d in done)


def test_faults_of_a_cluster_are_one_line(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ClusterError, match="No worker came"), pytest.warns(LinMDPWarning, match="no worker yet"):
        list(Dask(cluster.address, patience=0.2).run(double, [1], no_steps))
    cluster.worker()
    with pytest.warns(LinMDPWarning, match="no worker yet"):
        list(Dask(cluster.address).run(double, [1], no_steps))
    pool = Dask(cluster.address)
    with pytest.raises(PieceFailed, match=r"^ZeroDivisionError: no way$") as failed:
        list(pool.run(fail, [0, 1, 2], no_steps))
    assert failed.value.place == 1
    with pytest.raises(InvalidData, match="The data must be good"):
        list(pool.run(refuse, [0], no_steps))
    ours = pools.versions()
    monkeypatch.setattr(pools, "versions", lambda: ours | {"numpy": "0.1"})
    with pytest.raises(ClusterError, match=r"The worker tcp://.* must have numpy 0\.1, as here\. Got "):
        list(pool.run(double, [1], no_steps))
    monkeypatch.setattr(pools, "versions", lambda: ours | {"distributed": "0.1"})
    with pytest.raises(ClusterError, match=r"The dask scheduler at .* must have distributed 0\.1"):
        list(pool.run(double, [1], no_steps))


def test_a_piece_that_kills_every_worker_is_named(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pools, "DEATHS", 0)
    for _ in range(5):
        cluster.worker()
    until(lambda: len(_workers(cluster.address)) == 5)
    with pytest.raises(PieceFailed, match="4 workers died while they had it"):
        list(Dask(cluster.address).run(kill_always, [1], no_steps))


def _workers(address: str) -> dict[str, int]:
    import distributed

    make: Any = distributed.Client
    with make(address, set_as_default=False) as client:
        return dict(client.nthreads())


def test_a_batch_is_cut_by_the_memory_of_the_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    jobs = [job._replace(device="cuda") for job in jobs_for("lock:H=3", ["lsvi-ucb:beta=1"], episodes=9, seeds=6)]
    for room, sizes in ((1, [1] * 6), (10**9, [6])):
        monkeypatch.setattr(batch, "gpu_bytes", lambda room=room: room)
        assert [len(unit) for unit in units(jobs)] == sizes


def test_a_worker_with_several_threads_is_refused(cluster: Cluster) -> None:
    cluster.worker(threads=2)
    with (
        pytest.raises(ClusterError, match=r"must have one thread \(--nthreads 1\)\. Got 2"),
        pytest.warns(LinMDPWarning, match="no worker yet"),
    ):
        list(Dask(cluster.address).run(double, [1], no_steps))


def test_a_scheduler_that_goes_away_is_one_line(cluster: Cluster, tmp_path: Path) -> None:
    spec, out = tmp_path / "sweep.toml", tmp_path / "out"
    spec.write_text(SPEC)
    cluster.worker()
    coordinator = sweep(spec, out, "--dask", cluster.address)
    until(lambda: stored(out) > 0)
    cluster.scheduler.kill()
    _, err = coordinator.communicate(timeout=600)
    assert coordinator.returncode == 2
    assert err.splitlines()[-1].endswith("is gone; what is finished is kept, and the same command goes on.")
    assert "Traceback" not in err


def test_no_scheduler_is_one_line(tmp_path: Path) -> None:
    pytest.importorskip("distributed")
    with pytest.raises(ClusterError, match="There is no dask scheduler at"):
        list(Dask("tcp://127.0.0.1:9", timeout=0.5).run(double, [1], no_steps))
    for address in ("nonsense", "moon://x:1", ""):
        with pytest.raises(ClusterError, match="is no address of a dask scheduler"):
            Dask(address)


def test_without_dask_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(ClusterError, match=r"pip install 'linmdp\[dask\]'"):
        Dask("tcp://127.0.0.1:1")


@pytest.mark.parametrize("pool", [InProcess(), Processes(2)], ids=["here", "processes"])
def test_local_pools_do_every_piece_once(pool: Pool) -> None:
    done = list(pool.run(double, [1, 2, 3, 4], no_steps))
    assert sorted((d.place, d.value) for d in done) == [(i, 2 * (i + 1)) for i in range(4)]


def test_a_killed_process_costs_nothing_but_its_piece(tmp_path: Path) -> None:
    pieces = [tmp_path / str(i) for i in range(4)]
    for other in pieces[1:]:
        other.touch()
    done = list(Processes(2).run(kill_once, pieces, no_steps))
    assert sorted(d.value for d in done) == ["0", "1", "2", "3"]


def test_processes_that_are_killed_again_and_again_are_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pools, "DEATHS", 1)
    with pytest.raises(PieceFailed, match="2 processes were killed at work"):
        list(Processes(2).run(kill_always, [1, 2], no_steps))


def test_a_sweep_that_is_stopped_or_killed_leaves_no_process_behind_and_resumes(tmp_path: Path) -> None:
    spec, out = tmp_path / "sweep.toml", tmp_path / "out"
    spec.write_text(SPEC)
    for kill in (signal.SIGINT, signal.SIGTERM, signal.SIGKILL):
        before = stored(out)
        coordinator = sweep(spec, out, "--jobs", "2")
        until(lambda before=before: stored(out) > before)  # type: ignore[misc]
        family = _children(coordinator.pid)
        assert family
        coordinator.send_signal(kill)
        _, err = coordinator.communicate(timeout=600)
        assert coordinator.returncode == (-kill if kill == signal.SIGKILL else 1)
        assert kill == signal.SIGKILL or "The same command goes on." in err
        until(lambda family=family: not any(Path(f"/proc/{pid}").exists() for pid in family))  # type: ignore[misc]
    again = sweep(spec, out, "--jobs", "2")
    again.communicate(timeout=600)
    assert again.returncode == 0
    (tmp_path / "calm").mkdir()
    run_sweep(plan(read_sweep(spec)), Store(tmp_path / "calm"), processes=2)
    assert contents(out) == contents(tmp_path / "calm")


def _children(pid: int) -> list[int]:
    if not Path("/proc/self/task").exists():
        pytest.skip("no /proc here")
    return [int(child) for file in Path(f"/proc/{pid}/task").glob("*/children") for child in file.read_text().split()]
