"""The tables of what is learned with no parameter, from the stores of their sweeps. What a store lacks is run.

.venv/bin/python docs/measure_default.py DIR
.venv/bin/python docs/measure_default.py DIR gym:LunarLander-v3   (only the rows of these tasks of default-gym)
"""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from linmdp.io.files import output_folder
from linmdp.io.units import human_bytes
from linmdp.report.tables import markdown
from linmdp.results.stats import mean_interval
from linmdp.results.store import Store
from linmdp.runner.sweep import plan, read_sweep, run_sweep
from linmdp.types import RunResult

DOCS = Path(__file__).parent
REGRET = ("task", "agent", "storage", "regret [95% interval]", "worst seed", "of random", "agent memory", "CPU s")
UNTOUCHED = ("task", "", "no parameter [95% interval]", "`lam=0.1`", "random")
RETURN = ("task", "episodes", "return [95% interval]", "worst seed", "random", "agent memory", "CPU ms a step")


def swept(name: str, tasks: Sequence[str] = ()) -> list[RunResult]:
    """All results of a sweep, or those of some tasks; those that are missing are run first."""
    store = Store(output_folder(Path(sys.argv[1]) / name))
    runs = [run for run in plan(read_sweep(DOCS.parent / "examples" / f"{name}.toml")) if not tasks or run.env in tasks]
    run_sweep(runs, store, progress=True)
    return [r for r in store.results() if not tasks or r.env in tasks]


def last_tenth(results: Sequence[RunResult]) -> np.ndarray:
    """The mean return of the last tenth of the episodes, one per seed."""
    tails = [r.rewards[-max(1, len(r.rewards) // 10) :] for r in results]  # of long runs, sums of several episodes
    return np.array([t.sum() / len(t) * len(r.rewards) / r.episodes for t, r in zip(tails, results, strict=True)])


def main() -> None:
    """Run what is missing, and write the three tables of docs/generated and that of the README."""
    if tasks := sys.argv[2:]:
        fresh = {row[0]: row for row in gym_rows(swept("default-gym", tasks))}
        write_gym([fresh.get(row[0], row) for row in written_rows()])
        return
    results, rows = swept("default"), []
    for env in dict.fromkeys(r.env for r in results):
        random = np.mean([r.final_regret for r in results if (r.env, r.agent) == (env, "random")])
        for agent in ("lsvi-ucb", "lsvi-ucb-fold"):
            mine = [r for r in results if (r.env, r.agent) == (env, agent)]
            regret = np.array([r.final_regret for r in mine])
            memory, cpu = max(r.peak_bytes for r in mine), np.mean([r.cpu_seconds for r in mine])
            numbers = (f"{regret.max():.4g}", f"{regret.mean() / random:.3f}", human_bytes(memory), f"{cpu:.1f}")
            rows.append((f"`{env}`", f"`{agent}`", mine[0].chosen["storage"], str(mean_interval(regret)), *numbers))
    (DOCS / "generated/default.md").write_text(markdown(REGRET, rows) + "\n")
    write_gym(gym_rows(swept("default-gym")))
    (DOCS / "generated/untouched.md").write_text(markdown(UNTOUCHED, untouched(swept("untouched"))) + "\n")


def gym_rows(results: Sequence[RunResult]) -> list[tuple[str, ...]]:
    """A row for each task."""
    rows = list[tuple[str, ...]]()
    for env in dict.fromkeys(r.env for r in results):
        mine, random = ([r for r in results if (r.env, r.agent) == (env, who)] for who in ("lsvi-ucb-fold", "random"))
        returns, memory = last_tenth(mine), max(r.peak_bytes for r in mine)
        steps, cpu = sum(r.costs[-1][3] for r in mine), sum(r.cpu_seconds for r in mine)
        numbers = (f"{returns.min():.4g}", f"{last_tenth(random).mean():.4g}", human_bytes(memory))
        ended = (*numbers, f"{1000 * cpu / steps:.2f}")
        rows.append((f"`{env}`", f"{mine[0].episodes:,}", str(mean_interval(returns)), *ended))
    return rows


def written_rows() -> list[tuple[str, ...]]:
    """The rows of the table as it is."""
    lines = (DOCS / "generated/default_gym.md").read_text().splitlines()[2:]
    return [tuple(cell.strip() for cell in line.strip("|").split("|")) for line in lines]


def write_gym(rows: Sequence[tuple[str, ...]]) -> None:
    """The table of Gymnasium's tasks, here and in the README."""
    table = markdown(RETURN, rows)
    (DOCS / "generated/default_gym.md").write_text(table + "\n")
    readme = DOCS.parent / "README.md"
    marks = re.compile(r"(<!-- default -->\n).*?(<!-- /default -->)", re.DOTALL)
    readme.write_text(marks.sub(rf"\1{table}\n\2", readme.read_text()))


def untouched(results: Sequence[RunResult]) -> list[tuple[str, ...]]:
    """Regret where it is known, else the return at the end: no parameter, lam=0.1, random."""
    rows = []
    for env in dict.fromkeys(r.env for r in results):
        here, cells = [r for r in results if r.env == env], []
        known = here[0].final_regret is not None
        for agent in ("lsvi-ucb", "lsvi-ucb:lam=0.1", "random"):
            mine = [r for r in here if r.agent == agent]
            values = np.array([r.final_regret for r in mine]) if known else last_tenth(mine)
            cells.append(str(mean_interval(values)) if mine else "-")
        rows.append((f"`{env}`", "regret" if known else "return", *cells))
    return rows


if __name__ == "__main__":
    main()
