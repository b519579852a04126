"""`linmdp reproduce tasks`: learners on practical tasks, what is run and how the comparison is shown."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

import numpy as np

from linmdp.envs.planning import optimum
from linmdp.experiments import study
from linmdp.experiments.stored_runs import Say, grouped, run_planned
from linmdp.io.files import write_atomic
from linmdp.io.units import human_bytes
from linmdp.report.style import is_baseline
from linmdp.report.tables import markdown
from linmdp.results.curves import returns
from linmdp.results.stats import mean_interval
from linmdp.results.store import Store
from linmdp.runner.batch import Job
from linmdp.runner.registry import make_model, model_known
from linmdp.types import Array, RunResult


class TaskRuns(NamedTuple):
    """One task: its environment, number of episodes, and agents (spec -> name).

    `raw` is the environment for DQN and PPO: the same, where observations must not be hashed.
    """

    title: str
    env: str
    episodes: int
    agents: dict[str, str]
    raw: str

    def played(self, agent: str) -> str:
        """The environment that an agent plays."""
        return self.raw if agent.startswith("sb3-") else self.env


def tasks(scale: str) -> list[TaskRuns]:
    """All tasks, at a scale. The quick scale leaves out agents that keep samples of continuous tasks."""
    groups, found = STUDY["groups"], list[TaskRuns]()
    for task in STUDY["tasks"]:
        chosen = [groups[name] for name in task["agents"] if scale == "paper" or name != "sampled"]
        agents = {spec: name for group in chosen for spec, name in group.items()}
        raw = task.get("raw", task["env"])
        found.append(TaskRuns(task["title"], task["env"], task["episodes"][scale], agents, raw))
    return found


STUDY = study("tasks")
TASK_SEEDS = {"quick": 3, "paper": 10}
TAIL = 10
"""The end of a run is its last tenth."""


def compare_tasks(scale: str, out: Path, store: Store, jobs: int | None, say: Say, seeds: int | None = None) -> str:
    """Run what is missing, write tasks.md, and return it; `seeds` None: those of the scale."""
    if find_spec("stable_baselines3") is None:
        say("DQN and PPO are left out: they need the extra 'baselines'")
    planned = task_jobs(scale, seeds or TASK_SEEDS[scale])
    page = task_page(tasks(scale), run_planned(planned, store, jobs, say, "for tasks"))
    write_atomic(out / "tasks.md", page.encode() + b"\n")
    return page


def task_jobs(scale: str, seeds: int) -> list[Job]:
    """What is run, seed by seed, so that what was interrupted has all agents.

    Agents that keep samples of continuous tasks, which take longer than all others together, come last.
    """
    chosen, sb3, slow = tasks(scale), find_spec("stable_baselines3") is not None, STUDY["groups"]["sampled"]
    planned = [
        Job(task.played(agent), agent, task.episodes, seed, max(1, task.episodes // 100))
        for seed in range(seeds)
        for task in chosen
        for agent in task.agents
        if sb3 or not agent.startswith("sb3-")
    ]
    return sorted(planned, key=lambda job: job.agent in slow)


def task_page(chosen: Sequence[TaskRuns], results: Sequence[RunResult]) -> str:
    """A table of each task that has run; `linmdp report` draws them."""
    found, parts = grouped(results), ["## tasks: learners on practical tasks"]
    for task in chosen:
        here = {agent: found.get((task.played(agent), agent), ()) for agent in task.agents}
        mine = {agent: list(runs) for agent, runs in here.items() if runs}
        if not mine:
            continue
        best = float(optimum(make_model(task.env)).V[0, 0]) if model_known(task.env) else None
        seeds = max(len(runs) for runs in mine.values())
        parts += [
            f"### {task.title}",
            f"`{task.env}`, {task.episodes:,} episodes, {seeds} seeds" + (f"; V* = {best:.4g}." if best else "."),
            task_table(task, mine, best),
        ]
    return "\n\n".join(parts)


def ends(runs: Sequence[RunResult]) -> Array:
    """Mean reward of the last tenth of the episodes, of each run."""
    return np.array([returns(r)[-max(1, len(r.rewards) // TAIL) :].mean() for r in runs])


def lost(runs: Sequence[RunResult], optimum: float) -> Array | None:
    """Fraction of the optimal return that the policies of the last tenth lose, exactly; None without a model."""
    found = []
    for r in runs:
        if r.regret is None:
            return None
        n = max(1, len(r.regret) // TAIL)
        found.append((r.regret[-1] - r.regret[-n - 1]) / n * len(r.regret) / r.episodes / optimum)
    return np.array(found)


def task_table(task: TaskRuns, found: dict[str, list[RunResult]], optimum: float | None) -> str:
    """One row per agent: return at the end and on the way, memory and time."""
    rows = []
    for spec, name in task.agents.items():
        if spec not in found:
            continue
        runs = found[spec]
        late, whole = mean_interval(ends(runs)), mean_interval(np.array([r.reward / r.episodes for r in runs]))
        behind = lost(runs, optimum) if optimum else None
        rows.append(
            (
                name,
                f"{late.mean:.3g} [{late.low:.3g}, {late.high:.3g}]",
                f"{ends(runs).min():.3g}",
                "-" if behind is None else f"{behind.mean():.1%}",
                f"{whole.mean:.3g}",
                "-" if is_baseline(spec) else human_bytes(max(r.peak_bytes for r in runs)),
                f"{np.mean([r.cpu_seconds for r in runs]):.0f} s",
            )
        )
    header = ("agent", "return at the end", "worst seed", "below the optimum", "return, mean", "memory", "CPU time")
    return markdown(header, rows)
