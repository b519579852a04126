"""The comparison on tasks, from the folder of `linmdp reproduce tasks`: the page of the docs, and a short table.

linmdp reproduce tasks --scale paper --out DIR
.venv/bin/python docs/measure_compared.py DIR
"""

from __future__ import annotations

import shutil
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from linmdp.experiments.stored_runs import grouped
from linmdp.experiments.tasks import TaskRuns, ends, task_page, tasks
from linmdp.io.units import human_bytes
from linmdp.report.tables import markdown
from linmdp.results.store import Store
from linmdp.types import RunResult

DOCS = Path(__file__).parent
SCALE = "paper"
KINDS = {"Fold": "lsvi-ucb-fold:", "LSVI-UCB": "lsvi-ucb:", "DQN": "sb3-dqn", "PPO": "sb3-ppo", "random": "random"}
"""What the agents of a kind begin with."""


def main() -> None:
    """Write both."""
    folder = Path(sys.argv[1])
    store = Store(folder)
    results = list(store.results(store.keys()))
    store.close()
    page = task_page(tasks(SCALE), results, folder)
    for picture in folder.glob("task-*.png"):
        shutil.copy(picture, DOCS / "images" / picture.name)
    page = page.split("\n\n", 1)[1].replace("](task-", "](images/task-")
    (DOCS / "generated" / "tasks_compared.md").write_text(page + "\n", encoding="utf-8")
    (DOCS / "generated" / "tasks_best.md").write_text(summary(results) + "\n", encoding="utf-8")


def summary(results: Sequence[RunResult]) -> str:
    """One line per task: the best learner of each kind by its return at the end, and its memory."""
    found, rows = grouped(results), []
    for task in tasks(SCALE):
        kinds = ([a for a in task.agents if a.startswith(name)] for name in KINDS.values())
        rows.append((task.title, f"{task.episodes:,}", *(_best(task, agents, found) for agents in kinds)))
    return markdown(("task", "episodes", *KINDS), rows)


def _best(task: TaskRuns, agents: Sequence[str], found: Mapping[tuple[str, str], Sequence[RunResult]]) -> str:
    there = [found[task.env, agent] for agent in agents if (task.env, agent) in found]
    if not there:
        return "-"
    best = max(there, key=lambda runs: float(ends(runs).mean()))
    size = max(r.peak_bytes for r in best)
    return f"{ends(best).mean():.3g}" + (f" in {human_bytes(size)}" if size else "")


if __name__ == "__main__":
    main()
