"""Sweeps: two workers against one, what a sweep costs beside its runs, and what one run costs.

python benchmarks/sweeps.py                 all parts; those in docs are written there
python benchmarks/sweeps.py overhead        some of them

The parts that compare take turns and are repeated, so that a neighbour's load falls on each alike.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np

from linmdp.io.units import human_bytes
from linmdp.report.tables import into_pages, markdown
from linmdp.results.rows import row_bytes
from linmdp.results.store import Store
from linmdp.runner.batch import Job, jobs_for, run_unit, units
from linmdp.runner.pool import Dask, Pool
from linmdp.runner.sweep import run_sweep
from linmdp.types import RunResult

ROOT = Path(__file__).parent.parent
ROUNDS = 3
SWEEP = """
name = "scaling"
[[runs]]
env = "synthetic:S=100,A=5,d=10,H=20"
agents = ["lsvi-ucb"]
grid.beta = [0.01, 0.02, 0.05, 0.1]
episodes = 500
seeds = 50
"""


@contextmanager
def cluster(workers: int) -> Iterator[str]:
    """A dask scheduler with workers of one thread, on this machine: its address."""
    started: list[subprocess.Popen[bytes]] = []

    def start(*arguments: str) -> None:
        command = [sys.executable, "-m", "dask", *arguments, "--no-dashboard"]
        started.append(subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL))

    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "scheduler.json"
        try:
            start("scheduler", "--host", "127.0.0.1", "--port", "0", "--scheduler-file", str(file))
            while not file.exists():
                time.sleep(0.1)
            address: str = json.loads(file.read_text())["address"]
            for _ in range(workers):
                start("worker", address, "--nthreads", "1", "--no-nanny", "--local-directory", folder)
            time.sleep(5)
            yield address
        finally:
            for process in reversed(started):
                process.terminate()
                process.wait()


def command_seconds(*options: str) -> float:
    """Wall time of `linmdp sweep` with 200 runs, from the start of the program to its end."""
    with tempfile.TemporaryDirectory() as folder:
        spec = Path(folder) / "sweep.toml"
        spec.write_text(SWEEP)
        program = [sys.executable, "-c", "from linmdp.cli import main; main()", "sweep", str(spec), "--out", folder]
        start = time.perf_counter()
        subprocess.run([*program, *options], check=True, capture_output=True)
        took = time.perf_counter() - start
        assert len(Store(Path(folder)).keys()) == 200
    return took


def dask_seconds(workers: int) -> float:
    """The same on a cluster, which lives for this turn alone: even idle ones take some of the cores."""
    with cluster(workers) as address:
        return command_seconds("--dask", address)


def bare_seconds(processes: int) -> float:
    """Wall time of a loop that is shared by so many processes, which need nothing but their core."""
    loop = f"x = 0\nfor i in range({300_000_000 // processes}): x += i"
    start = time.perf_counter()
    started = [subprocess.Popen([sys.executable, "-c", loop]) for _ in range(processes)]
    for process in started:
        process.wait()
    return time.perf_counter() - start


def scaling() -> str:
    """200 runs on two workers and on one, by turns; and a bare loop, which shows what the machine had to give."""
    turns: dict[str, Callable[[int], float]] = {
        "200 runs, --jobs": lambda workers: command_seconds("--jobs", str(workers)),
        "200 runs, --dask": dask_seconds,
        "a bare loop": bare_seconds,
    }
    took = {name: np.empty((ROUNDS, 2)) for name in turns}
    for i in range(ROUNDS):
        for name, turn in turns.items():
            took[name][i] = turn(1), turn(2)
    rows = []
    for name, seconds in took.items():
        ratios, (first, second) = seconds[:, 1] / seconds[:, 0], seconds.min(axis=0)
        each = ", ".join(f"{ratio:.2f}" for ratio in ratios)
        rows.append((name, f"{first:.1f} s", f"{second:.1f} s", f"{second / first:.2f}", each))
    header = ("what", "1 worker, least", "2 workers, least", "ratio (target: at most 0.55)", "ratio of each round")
    return markdown(header, rows)


def overhead() -> str:
    """Many tiny runs: what the sweep takes beside them, for each run."""
    cases: list[tuple[str, str, str, int]] = [
        ("lock:H=4", "random", "one process", 1),
        ("lock:H=4", "lsvi-ucb", "one process, 8 in lockstep", 1),
        ("synthetic", "random", "one process", 1),
        ("lock:H=4", "random", "2 processes", 2),
        ("lock:H=4", "random", "dask, 1 worker", 0),
    ]
    with cluster(1) as address:
        rows = [
            (env, agent, where, ", ".join(f"{_overhead(env, agent, processes, address):.1f}" for _ in range(ROUNDS)))
            for env, agent, where, processes in cases
        ]
    return markdown(("environment", "agent", "where", "ms per run beside its own time (target: under 50)"), rows)


def _overhead(env: str, agent: str, processes: int, address: str) -> float:
    jobs, own = jobs_for(env, [agent], episodes=5, seeds=400), list[RunResult]()
    pool: Pool | None = None if processes else Dask(address)
    run_sweep_into(jobs[:4], processes, pool, own.append)  # processes start, and modules are loaded
    own.clear()
    start = time.perf_counter()
    run_sweep_into(jobs, processes, pool, own.append)
    wall = (time.perf_counter() - start) * max(processes, 1)
    return (wall - sum(result.wall_seconds for result in own)) / len(jobs) * 1e3


def run_sweep_into(jobs: list[Job], processes: int, pool: Pool | None, on_run: Callable[[RunResult], None]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        store = Store(Path(folder))
        run_sweep(jobs, store, processes=processes or None, pool=pool, on_run=on_run)
        store.close()


def costs() -> str:
    """One run of 1,000 episodes, as one of a unit: time, memory, and bytes in the store."""
    paper, small = "synthetic", "synthetic:S=100,A=5,d=10,H=20"
    cases = [
        (paper, "lsvi-ucb:beta=0.05"),
        (paper, "lsvi-ucb-fixed:beta=0.05"),
        (paper, "lsvi-ucb-adaptive:beta=0.05"),
        (paper, "lsvi-ucb-fixed:beta=0.05,storage=features"),
        (small, "lsvi-ucb:beta=0.05"),
        ("lock", "lsvi-ucb:beta=1,lam=1"),
        ("lock", "random"),
    ]
    rows = []
    for env, agent in cases:
        unit = units(jobs_for(env, [agent], episodes=1000, seeds=16, eval_every=10))[0]
        start = time.process_time()
        results = run_unit(unit)
        took = (time.process_time() - start) / len(unit)
        memory = human_bytes(max(r.peak_bytes for r in results))
        rows.append((env, agent, str(len(unit)), f"{took:.2f} s", memory, human_bytes(row_bytes(1000))))
    return markdown(("environment", "agent", "runs in a unit", "CPU per run", "memory per run", "in the store"), rows)


PARTS = {f.__name__: f for f in (scaling, overhead, costs)}


def main() -> None:
    """All parts, or those named; where docs have `bench_sweeps_NAME`, it is written there."""
    for name in sys.argv[1:] or PARTS:
        load = os.getloadavg()[0]
        table = PARTS[name]()
        note = f"{os.cpu_count()} cores; load average before it: {load:.1f}."
        into_pages((ROOT / "docs").glob("*.md"), f"bench_sweeps_{name}", f"{table}\n\n{note}")
        print(f"{table}\n{note}\n", flush=True)


if __name__ == "__main__":
    main()
