"""Time of one choice among A actions: search and scan, on weights that an agent has learned in a catalogue.

.venv/bin/python benchmarks/actions.py     the table and the picture of docs, many-actions; minutes
"""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import linmdp
from linmdp.io.units import human_bytes
from linmdp.report.tables import into_pages, markdown

SIZES = (1_000, 10_000, 100_000, 1_000_000)
EPISODES = 40
DOCS = Path(__file__).parents[1] / "docs"
HEAD = ("factors", "A", "regret per episode", "search, ms", "scan, ms", "looked at", "features and cells")


def main() -> None:
    """One table for few and for many factors, and the slopes on log axes."""
    rows, slopes = list[tuple[str, ...]](), list[str]()
    for factors, sizes in ((4, SIZES), (16, SIZES[:-1])):
        found = np.array([measure(A, factors, rows) for A in sizes])
        search, scan = np.polyfit(np.log(sizes), np.log(found), 1)[0]
        last = np.log(found[-1, 0] / found[-2, 0]) / np.log(sizes[-1] / sizes[-2])
        slopes.append(
            f"With {factors} factors the time of a search grows as $A^{{{search:.2f}}}$ over all sizes and as "
            f"$A^{{{last:.2f}}}$ over the last step, that of a scan as $A^{{{scan:.2f}}}$."
        )
    text = f"{markdown(HEAD, rows)}\n\n{' '.join(slopes)}\n"
    into_pages(DOCS.glob("*.md"), "actions", text)
    draw(rows)
    print(text)


def draw(rows: list[tuple[str, ...]]) -> None:
    """The same on log axes, from the rows of the table."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7, 4), layout="constrained")
    axes = figure.add_subplot()
    for factors, colour in (("4", "#1f77b4"), ("16", "#d62728")):
        mine = [row for row in rows if row[0] == factors]
        A = [int(row[1].replace(",", "")) for row in mine]
        for column, name, style in ((3, "search", "o-"), (4, "scan", "s--")):
            axes.plot(A, [float(row[column]) for row in mine], style, color=colour, label=f"{name}, {factors} factors")
    axes.set(xscale="log", yscale="log", xlabel="actions A", ylabel="one choice, CPU ms")
    axes.grid(alpha=0.3)
    axes.legend(frameon=False)
    figure.savefig(DOCS / "images/actions.png", dpi=110)


def measure(A: int, factors: int, rows: list[tuple[str, ...]]) -> tuple[float, float]:
    """Seconds of a search and of a scan, medians over steps and states."""
    env: Any = linmdp.make_env(f"catalogue:A={A},factors={factors}")
    agent: Any = linmdp.make_agent("lsvi-ucb", env, episodes=EPISODES)
    result = linmdp.run(env, agent, episodes=EPISODES, seed=0, eval_every=EPISODES - 1)
    storage, task = agent._planner.storage, env.task
    lost = (result.regret[-1] - result.regret[-2]) if result.regret is not None else np.nan
    storage.searches[:] = 0.0
    pairs = [(h, s) for h in range(task.H) for s in range(task.S)]
    search = median(pairs * 3, storage.found)
    scan = median(pairs[:: max(1, len(pairs) // 10)], lambda h, s: storage.q_values(h, s).max())
    shares = f"{storage.diagnostics()['actions_scored']:.2%}"
    numbers = (f"{factors}", f"{A:,}", f"{lost:.3f}", f"{1e3 * search:.2f}", f"{1e3 * scan:.2f}")
    rows.append((*numbers, shares, human_bytes(task.features.nbytes)))
    print(*rows[-1], flush=True)
    return search, scan


def median(pairs: list[tuple[int, int]], call: Callable[[int, int], Any]) -> float:
    """CPU seconds of a call."""
    times = []
    for h, s in pairs:
        start = time.process_time()
        call(h, s)
        times.append(time.process_time() - start)
    return float(np.median(times))


if __name__ == "__main__":
    main()
