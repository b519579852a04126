"""The comparison on tasks, from the folder of `linmdp reproduce tasks` and others with runs of the same tasks.

linmdp reproduce tasks --scale paper --out DIR
.venv/bin/python docs/measure_compared.py DIR [MEASURED/default-gym]

What was interrupted is shown with the seeds that it has.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

from linmdp.experiments.stored_runs import grouped
from linmdp.experiments.tasks import ends, tasks
from linmdp.report.tables import markdown
from linmdp.results.stats import mean_interval
from linmdp.results.store import Store
from linmdp.types import RunResult

DOCS = Path(__file__).parent
SCALE = "paper"
NAMES = ("Fold, no parameter", "tuned", "DQN, defaults", "DQN, tuned", "PPO, defaults", "PPO, tuned", "random")
TUNED = ("Fold, tuned", "LSVI-UCB, by hand", "Fold")
"""What stands under "tuned", on a task that has it."""


def main() -> None:
    """Write the table."""
    results = list[RunResult]()
    for folder in sys.argv[1:]:
        store = Store(Path(folder))
        results += store.results(store.keys())
        store.close()
    (DOCS / "generated" / "tasks_compared.md").write_text(compared(results) + "\n", encoding="utf-8")


def compared(results: Sequence[RunResult]) -> str:
    """Return at the end of every task and agent, with its seeds."""
    found, rows = grouped(results), []
    for task in tasks(SCALE):
        named = {name: found.get((task.played(agent), agent), ()) for agent, name in task.agents.items()}
        named["tuned"] = next((named[name] for name in TUNED if name in named), ())
        rows.append((task.title, f"{task.episodes:,}", *(_cell(named.get(name, ())) for name in NAMES)))
    return markdown(("task", "episodes", *NAMES), rows)


def _cell(runs: Sequence[RunResult]) -> str:
    if not runs:
        return "-"
    late = ends(runs)
    if len(runs) == 1:
        return f"{late[0]:.3g} (1)"
    interval = mean_interval(late)
    return f"{interval.mean:.3g} [{interval.low:.3g}, {interval.high:.3g}] ({len(runs)})"


if __name__ == "__main__":
    main()
