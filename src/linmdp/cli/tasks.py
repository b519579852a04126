"""`linmdp reproduce tasks`: the comparison on tasks that people have."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path

from linmdp.cli.planned import Say, run_planned
from linmdp.cli.tables import grouped
from linmdp.envs.planning import optimum
from linmdp.io.files import write_atomic
from linmdp.report.tasks import TASK_SEEDS, TaskRuns, task_figure, task_table, tasks
from linmdp.results.store import Store
from linmdp.runner.batch import Job
from linmdp.runner.guard import task_of
from linmdp.runner.registry import make_env, make_model, model_known
from linmdp.types import RunResult


def compare_tasks(scale: str, out: Path, store: Store, jobs: int | None, say: Say) -> str:
    """Run what is missing, draw a figure a task, write tasks.md, and return it."""
    chosen, sb3 = tasks(scale), find_spec("stable_baselines3") is not None
    if not sb3:
        say("DQN and PPO are left out: they need the extra 'baselines'")
    planned = [
        Job(task.env, agent, task.episodes, seed, max(1, task.episodes // 100))
        for task in chosen
        for agent in task.agents
        if sb3 or not agent.startswith("sb3-")
        for seed in range(TASK_SEEDS[scale])
    ]
    page = task_page(chosen, run_planned(planned, store, jobs, say, "for tasks"), out)
    write_atomic(out / "tasks.md", page.encode() + b"\n")
    return page


def task_page(chosen: Sequence[TaskRuns], results: Sequence[RunResult], out: Path) -> str:
    """A table and a figure of each task that has run."""
    found, parts = grouped(results), ["## tasks: learners on tasks that people have"]
    for task in chosen:
        mine = {agent: list(found[task.env, agent]) for agent in task.agents if (task.env, agent) in found}
        if not mine:
            continue
        best = float(optimum(make_model(task.env)).V[0, 0]) if model_known(task.env) else None
        task_figure(task, mine, out, task_of(make_env(task.env)).H)
        seeds = max(len(runs) for runs in mine.values())
        parts += [
            f"### {task.title}",
            f"`{task.env}`, {task.episodes:,} episodes, {seeds} seeds" + (f"; V* = {best:.4g}." if best else "."),
            task_table(task, mine, best),
            f"![{task.title}](task-{task.title.lower()}.png)",
        ]
    return "\n\n".join(parts)
