"""How a store behaves when it is large: the time of a transaction, and of reading it, as the number of runs grows.

python benchmarks/store.py [RUNS ...]    (default: 1,000 10,000 100,000; a million takes about 5 GB and ten minutes)

A transaction is that of a unit of 8 runs, as a sweep makes them. Writes docs/generated/bench_store.md.
"""

from __future__ import annotations

import sys
import tempfile
import time
from contextlib import closing
from pathlib import Path

import numpy as np

import linmdp
from linmdp.report.comparison import Comparison
from linmdp.report.tables import markdown
from linmdp.results.store import Store
from linmdp.types import RunResult

ROOT = Path(__file__).parent.parent
EPISODES, SEEDS, UNIT = 100, 100, 8


def made_up(i: int, like: RunResult) -> tuple[str, RunResult]:
    """Run i of a sweep: one of many settings, with SEEDS seeds each."""
    fields = vars(like) | {"agent": f"lsvi-ucb:beta={1 + i // SEEDS}", "seed": i % SEEDS}
    return Store.key({"run": i}), RunResult(**fields)


def fill(store: Store, begin: int, end: int, like: RunResult) -> None:
    """So many runs more, in large transactions."""
    for i in range(begin, end, 5000):
        store.add([made_up(j, like) for j in range(i, min(end, i + 5000))])


def transactions(store: Store, begin: int, like: RunResult, count: int = 50) -> list[float]:
    """Seconds of each of so many transactions."""
    found = []
    for n in range(count):
        unit = [made_up(begin + n * UNIT + j, like) for j in range(UNIT)]
        start = time.perf_counter()
        store.add(unit)
        found.append(time.perf_counter() - start)
    return found


def main() -> None:
    env = linmdp.make_env("lock:H=4")
    like = linmdp.run(env, linmdp.make_agent("lsvi-ucb:beta=0.1", env), episodes=EPISODES)
    rows = []
    with tempfile.TemporaryDirectory() as folder, closing(Store(Path(folder))) as store:
        filled = 0
        for size in [int(a.replace(",", "")) for a in sys.argv[1:]] or [1_000, 10_000, 100_000]:
            fill(store, filled, size, like)
            times = np.array(transactions(store, size, like)) * 1e3
            filled = size + 50 * UNIT
            start = time.perf_counter()
            store.keys()
            known = time.perf_counter() - start
            start = time.perf_counter()
            Comparison(store.results()).table()
            shown = time.perf_counter() - start
            rows.append(
                (
                    f"{size:,}",
                    f"{np.median(times):.1f} ms ({np.quantile(times, 0.9):.1f} ms)",
                    f"{known:.2f} s",
                    f"{shown:.1f} s",
                    f"{store.path.stat().st_size / 1e6:,.0f} MB",
                )
            )
            print(*rows[-1], flush=True)
    heads = ("runs", "a transaction of 8 runs: median (90%)", "what is there, on resuming", "`linmdp table`", "file")
    (ROOT / "docs/generated/bench_store.md").write_text(markdown(heads, rows) + "\n")


if __name__ == "__main__":
    main()
