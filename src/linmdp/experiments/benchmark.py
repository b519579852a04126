"""`linmdp benchmark`: agents on the fixed suite, each task scored from 0 (random policy) to 1 (best known)."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from linmdp.errors import InvalidParameter, LinMDPWarning, check_choice, described, unknown
from linmdp.experiments.suite import LATEST, SCALES, Suite, SuiteTask, suite
from linmdp.io.units import human_bytes
from linmdp.report.benchmark import Benchmark, TaskScore
from linmdp.report.style import is_baseline
from linmdp.results.store import Store
from linmdp.runner.batch import Job
from linmdp.runner.registry import AGENTS, SB3_AGENTS, agent_parameters, make_agent, make_env
from linmdp.runner.resources import predicted_bytes
from linmdp.runner.spec import check_names, parse_spec
from linmdp.runner.sweep import run_key, run_sweep
from linmdp.types import Array, RunResult

Say = Callable[[str], None]
Cell = tuple[str, str]
"""The names of a task and an agent."""


def run_benchmark(
    agents: Sequence[str],
    store: Store,
    *,
    scale: str = "quick",
    version: str = LATEST,
    processes: int | None = None,
    progress: bool = False,
    say: Say = lambda words: None,
) -> Benchmark:
    """Run what the store does not have yet, and score it. An agent that cannot run on a task has 0 there."""
    check_choice("benchmark", "scale", scale, SCALES)
    check_agents(agents)
    chosen = suite(version)
    refused = _refused(chosen, agents, scale)
    plan = {
        (task.name, agent): task.jobs(agent, scale, chosen.seed_range(scale))
        for task in chosen.tasks
        for agent in agents
        if (task.name, agent) not in refused
    }
    keys = {run_key(job) for jobs in plan.values() for job in jobs}
    say(f"suite {chosen.version}, {scale}: {len(keys)} runs, {len(keys - store.keys())} to do; {store.path}")
    failed = _run(plan, store, processes, progress)
    stored = {run.key: run.result for run in store.stored() if run.key in keys}
    scores = []
    for agent in agents:
        for task in chosen.tasks:
            reason = (refused | failed).get((task.name, agent), "")
            runs = [] if reason else [stored[run_key(job)] for job in plan[task.name, agent]]
            scores.append(_score(chosen, task, agent, scale, runs, reason))
    return Benchmark(chosen.version, chosen.fingerprint, scale, scores)


def check_agents(agents: Sequence[str]) -> None:
    """Refuse what is no agent anywhere, and parameters that it does not have."""
    if not agents or len(set(agents)) < len(agents):
        raise InvalidParameter(
            f"The agents of a benchmark must be given, each once. Got {', '.join(agents) or 'none'}."
        )
    for agent in agents:
        name, parameters = parse_spec(agent)
        if name not in AGENTS and name not in SB3_AGENTS:
            unknown("agent", name, (*AGENTS, *SB3_AGENTS))
        check_names(name, parameters, agent_parameters(name))


def _refused(chosen: Suite, agents: Sequence[str], scale: str) -> dict[Cell, str]:
    """Why some agents cannot be made for some tasks; one that can be made for none is an error."""
    found: dict[Cell, str] = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", LinMDPWarning)
        for task in chosen.tasks:
            env = make_env(task.env)
            for agent in agents:
                try:
                    # of its largest form: to a tighter limit, which it is told, it holds itself
                    _check_bytes(predicted_bytes(task.spec(agent), env.task, task.episodes[scale]), chosen.max_bytes)
                    make_agent(task.spec(agent), env, task.episodes[scale])
                except Exception as error:  # of an agent that someone else wrote, anything
                    found[task.name, agent] = described(error)
    for agent in agents:
        reasons = [found.get((task.name, agent)) for task in chosen.tasks]
        if all(reasons):
            raise InvalidParameter(f"'{agent}' can be made for no task of the suite: {reasons[0]}.")
    return found


def _check_bytes(needed: int | None, limit: int) -> None:
    """Raise if an agent would need more memory than is allowed."""
    if needed is not None and needed > limit:
        raise InvalidParameter(f"it needs about {human_bytes(needed)}, and {human_bytes(limit)} are allowed")


def _run(plan: dict[Cell, list[Job]], store: Store, processes: int | None, progress: bool) -> dict[Cell, str]:
    """Run everything; where something fails, one by one, to see whose fault it is. Why what failed did so."""
    options: dict[str, Any] = {"processes": processes, "progress": progress}
    try:
        run_sweep([job for jobs in plan.values() for job in jobs], store, **options)
        return {}
    except Exception:
        failed = {}
        for cell, jobs in plan.items():
            try:
                run_sweep(jobs, store, **options)
            except Exception as error:
                failed[cell] = described(error)
        return failed


def _score(chosen: Suite, task: SuiteTask, agent: str, scale: str, runs: Sequence[RunResult], reason: str) -> TaskScore:
    """1 - regret / regret of the random policy, of each run, over all its episodes; below 0 counts as 0."""
    anchor = chosen.anchors[task.name][scale]
    held = max((run.peak_bytes for run in runs), default=0)
    if held > chosen.limit(task) and not is_baseline(agent):
        reason = f"it held {human_bytes(held)}, and {human_bytes(chosen.limit(task))} are allowed"
    values = np.array([_value(run, anchor.best) for run in runs])
    scores: Array = np.maximum(0.0, (values - anchor.random) / (anchor.best - anchor.random))
    return TaskScore(
        task=task.name,
        kind=task.kind,
        agent=agent,
        episodes=task.episodes[scale],
        scores=np.zeros(chosen.seeds[scale]) if reason else scores,
        value=float(values.mean()) if len(values) else None,
        random=anchor.random,
        best=anchor.best,
        agent_bytes=held,
        cpu_seconds=float(np.mean([run.cpu_seconds for run in runs])) if runs else 0.0,
        reason=reason,
    )


def _value(run: RunResult, best: float) -> float:
    """What an episode was worth, on average over all of the run: exactly, where V* is known, else as it was earned."""
    return run.reward / run.episodes if run.regret is None else best - float(run.regret[-1]) / run.episodes
