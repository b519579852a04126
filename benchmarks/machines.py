"""A plan for many machines: what a coordinator can take, measured, and a simulation of 1, 10 and 100 machines.

python benchmarks/machines.py    (half a minute)

What the coordinator does with a finished unit (unpickle it, give it its verdict, store it in one transaction) is timed
here; what dask adds and how long units take are figures of other tables, named below. Workers never wait for the
coordinator, since all tasks are submitted at once: results wait, in a queue. Prints both
tables; the first is `machines_limits` in docs.
"""

from __future__ import annotations

import heapq
import pickle
import tempfile
import time
from contextlib import closing
from pathlib import Path
from typing import NamedTuple

import numpy as np

import linmdp
from linmdp.io.units import human_bytes
from linmdp.report.tables import in_pages, into_pages, markdown
from linmdp.results.rows import row_bytes
from linmdp.results.store import Store, machine
from linmdp.results.verdict import verdict
from linmdp.types import RunResult

ROOT = Path(__file__).parent.parent
CORES = 16
DASK = 1.0e-3
"""Seconds of the scheduler for a task, which it takes in its own process (dask's documentation: about 1 ms)."""
SPREAD = 0.2
"""Standard deviation of the logarithm of a unit's time: machines differ, and so do runs."""
PRICES = {"core": 0.04, "gpu": 4.0}
"""Of an hour, in dollars: what clouds ask for, about. It is an assumption: put in your own."""


class Unit(NamedTuple):
    """One task: runs, episodes of each, and seconds on one worker; `workers` of a machine do such tasks."""

    name: str
    runs: int
    episodes: int
    seconds: float
    workers: int
    price: str


def units() -> list[Unit]:
    """Four kinds of task; their times are those of the tables of `sweeps.py` (for 1,000 episodes) and `gpu.py`."""
    costs = {(row[0], row[1]): float(row[3].split()[0]) for row in cells("bench_sweeps_costs")}
    small, paper = "synthetic:S=100,A=5,d=10,H=20", "synthetic"
    exact = next(row[1] for row in cells("bench_gpu") if row[0].startswith("exact: 512 seeds x K=12,000"))
    return [
        Unit("lock, K=1,000", 8, 1_000, 8 * costs["lock", "lsvi-ucb:beta=1,lam=1"], CORES, "core"),
        Unit(f"{small}, K=1,000", 8, 1_000, 8 * costs[small, "lsvi-ucb:beta=0.05"], CORES, "core"),
        Unit(f"{paper}, K=12,000", 8, 12_000, 12 * 8 * costs[paper, "lsvi-ucb:beta=0.05"], CORES, "core"),
        Unit(f"{paper}, K=12,000, one H200 a machine", 512, 12_000, float(exact.split()[0]), 1, "gpu"),
    ]


def cells(table: str) -> list[list[str]]:
    """The rows of a table of the docs."""
    lines = in_pages(sorted((ROOT / "docs").glob("*.md")), table).splitlines()
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines if line.startswith("|")][2:]


def coordinated(unit: Unit, store: Store, like: RunResult, rounds: int = 5) -> tuple[float, int]:
    """Seconds of the coordinator for one unit, the median; and the bytes that come over the network."""
    steps = np.ones(unit.episodes)
    fields = vars(like) | {"episodes": unit.episodes}
    took = []
    for i in range(rounds):
        own = [{"seed": i * unit.runs + j, "rewards": steps + j, "regret": j * steps} for j in range(unit.runs)]
        runs = [RunResult(**fields | each) for each in own]
        parcel = pickle.dumps((runs, machine()), protocol=5)
        start = time.perf_counter()
        back, where = pickle.loads(parcel)  # as dask does between the two processes
        for run in back:
            run.verdict = verdict([run])
        store.add([(Store.key({"unit": unit.name, "run": r.seed}), r) for r in back], where)
        took.append(time.perf_counter() - start)
    return float(np.median(took)), len(parcel)


class Simulated(NamedTuple):
    """Seconds until the last result is stored, that the coordinator works, and that a result waits (95%)."""

    wall: float
    busy: float
    wait: float


def simulate(unit: Unit, machines: int, tasks: int, service: float) -> Simulated:
    """So many tasks, first come first served; each result is then taken by one coordinator, one after the other."""
    rng, workers = np.random.default_rng(0), machines * unit.workers
    times = unit.seconds * rng.lognormal(-(SPREAD**2) / 2, SPREAD, size=tasks)
    free, finished = [0.0] * workers, np.empty(tasks)
    for i, seconds in enumerate(times):
        finished[i] = heapq.heappop(free) + seconds
        heapq.heappush(free, finished[i])
    stored, waits = 0.0, np.empty(tasks)
    for i, done in enumerate(np.sort(finished)):
        waits[i] = max(0.0, stored - done)
        stored = max(stored, done) + service
    return Simulated(stored, tasks * service, float(np.quantile(waits, 0.95)))


def clock(seconds: float) -> str:
    """Seconds as people say them."""
    for size, name in ((86_400, "days"), (3600, "h"), (60, "min")):
        if seconds >= 2 * size:
            return f"{seconds / size:.1f} {name}"
    return f"{seconds:.2g} s" if seconds < 10 else f"{seconds:.0f} s"


def main() -> None:
    env = linmdp.make_env("lock:H=4")
    like = linmdp.run(env, linmdp.make_agent("lsvi-ucb:beta=0.1", env), episodes=100)
    rows, limits = list[tuple[str, ...]](), list[tuple[str, ...]]()
    with tempfile.TemporaryDirectory() as folder, closing(Store(Path(folder))) as store:
        for unit in units():
            service, sent = coordinated(unit, store, like)
            most = int(unit.seconds / max(service, DASK) / unit.workers)
            sizes = human_bytes(sent), human_bytes(unit.runs * row_bytes(unit.episodes))
            limits.append(
                (unit.name, str(unit.runs), clock(unit.seconds), f"{service * 1e3:.1f} ms", *sizes, f"{most:,}")
            )
            for machines in (1, 10, 100):
                tasks = min(20 * machines * unit.workers, 100_000)
                found = simulate(unit, machines, tasks, max(service, DASK))
                hours = machines * (unit.workers if unit.price == "core" else 1) * found.wall / 3600
                runs = tasks * unit.runs
                kind = (unit.name, str(machines), f"{runs:,}", clock(found.wall), f"{runs / found.wall:,.1f}")
                cost = f"${hours * PRICES[unit.price] / runs * 1e3:,.2g}"
                rows.append((*kind, f"{found.busy / found.wall:.0%}", clock(found.wait), cost))
    heads = ("a unit", "its runs", "on one worker", "the coordinator", "sent", "stored", "machines that it can serve")
    first = markdown(heads, limits)
    into_pages((ROOT / "docs").glob("*.md"), "machines_limits", first)
    heads = ("a unit", "machines", "runs", "wall time", "runs a second", "coordinator busy", "results wait, 95%")
    print(first, markdown((*heads, "cost of 1,000 runs"), rows), sep="\n\n")


if __name__ == "__main__":
    main()
