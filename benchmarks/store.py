"""How a store behaves when it is large: the time of a transaction, and of reading it, as the number of runs grows.

python benchmarks/store.py DIR [RUNS ...]    (default: 1,000 10,000 100,000 1,000,000; the last takes 5 GB)

The store stays in DIR, and so do the rows of the table: a call that was stopped is repeated, and goes on.

The runs are made up: regret and rewards of one run on a lock with noise of their own, four environments, and 100 seeds
of each setting of beta. A transaction is that of a unit of 8 runs, as a sweep makes them. `linmdp table` and
`linmdp report` are run as commands, on up to `READ` runs, and their CPU time is taken, since others may share the
machine. Its table is `bench_store` in docs.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from contextlib import closing
from pathlib import Path

import numpy as np

import linmdp
from linmdp.io.files import output_folder
from linmdp.io.units import human_bytes
from linmdp.report.tables import into_pages, markdown
from linmdp.results.store import Store
from linmdp.types import RunResult

ROOT = Path(__file__).parent.parent
SIZES = (1_000, 10_000, 100_000, 1_000_000)
EPISODES, SEEDS, ENVS, UNIT, TIMED = 100, 100, 4, 8, 500
READ = 100_000
"""Larger stores are not shown as a table or a report here."""
LEARNING = 0.2
"""Where the runs differ: the standard deviation of the logarithm of their regret, over the seeds of a setting."""


def made_up(i: int, like: RunResult) -> tuple[str, RunResult]:
    """Run i of a sweep: setting i // SEEDS, which is better or worse, and one of its seeds, which are, too."""
    setting, seed = divmod(i, SEEDS)
    own = np.random.default_rng(i)
    scale = np.exp(np.random.default_rng(setting).normal() + LEARNING * own.normal())
    assert like.regret is not None
    fields = vars(like) | {
        "env": f"lock:H={4 + setting % ENVS}",
        "agent": f"lsvi-ucb:beta={(1 + setting // ENVS) / 100:g}",
        "seed": seed,
        "regret": like.regret * scale,
        "rewards": like.rewards + own.normal(size=len(like.rewards)),
    }
    return Store.key({"run": i}), RunResult(**fields)


def fill(store: Store, begin: int, end: int, like: RunResult) -> None:
    """So many runs more, in large transactions."""
    for i in range(begin, end, 5000):
        store.add([made_up(j, like) for j in range(i, min(end, i + 5000))])


def transactions(store: Store, begin: int, like: RunResult) -> list[float]:
    """Seconds of each of `TIMED` transactions."""
    found = []
    for n in range(TIMED):
        unit = [made_up(begin + n * UNIT + j, like) for j in range(UNIT)]
        start = time.perf_counter()
        store.add(unit)
        found.append(time.perf_counter() - start)
    return found


def command(*arguments: str) -> tuple[float, int]:
    """CPU time of `linmdp ...`, from the start of the program to its end, and the most memory that it held."""
    code = (
        "import resource, sys; from linmdp.cli import main\n"
        "def said(): used = resource.getrusage(resource.RUSAGE_SELF); "
        "print(used.ru_utime + used.ru_stime, used.ru_maxrss * 1024, file=sys.stderr)\n"
        "try: main()\n"
        "finally: said()"
    )
    done = subprocess.run([sys.executable, "-c", code, *arguments], check=True, capture_output=True, text=True)
    took, held = done.stderr.split()[-2:]
    return float(took), int(held)


def measured(store: Store, size: int, like: RunResult) -> tuple[str, ...]:
    """A row of the table."""
    start = time.perf_counter()
    store.keys()
    known, shown, load = time.perf_counter() - start, ["-", "-"], os.getloadavg()[0]
    if size <= READ:
        for i, verb in enumerate(("table", "report")):
            took, held = command(verb, str(store.path.parent))
            shown[i] = f"{took:.1f} s, {human_bytes(held)}"
    times = np.array(transactions(store, size, like)) * 1e3
    median, most, nearly = np.quantile(times, (0.5, 0.9, 0.99))
    taken = f"{median:.1f} ms ({most:.1f} ms, {nearly:.0f} ms)"
    return f"{size:,}", taken, f"{known:.2f} s", *shown, human_bytes(store.path.stat().st_size), f"{load:.1f}"


def main() -> None:
    env = linmdp.make_env("lock:H=4")
    like = linmdp.run(env, linmdp.make_agent("lsvi-ucb:beta=0.1", env), episodes=EPISODES)
    folder, sizes = Path(sys.argv[1]), [int(a.replace(",", "")) for a in sys.argv[2:]] or SIZES
    with closing(Store(output_folder(folder))) as store:
        for size in sizes:
            if f"{size:,}" not in (row[0] for row in map(json.loads, store.notes("measured"))):
                fill(store, len(store.keys()), size, like)
                store.note("measured", json.dumps(row := measured(store, size, like)))
                print(*row, flush=True)
        rows = [json.loads(line) for line in store.notes("measured")]
    heads = (
        "runs",
        "a transaction of 8 runs: median (90%, 99%)",
        "what is there, on resuming",
        "`linmdp table`: CPU, memory",
        "`linmdp report`: CPU, memory",
        "file",
        "load of the machine",
    )
    cores = f"{os.cpu_count()} cores. Load: the processes that wanted to run, on average over the minute before."
    into_pages((ROOT / "docs").glob("*.md"), "bench_store", f"{markdown(heads, rows)}\n\n{cores}")


if __name__ == "__main__":
    main()
