"""`linmdp benchmark`: what the store does not have yet is run, and all of it is scored."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from linmdp.envs.general.perturb import PERTURBATIONS
from linmdp.errors import InvalidParameter, check_choice, described, invalid, unknown, without_warnings
from linmdp.experiments.stored_runs import Say
from linmdp.experiments.suite import GENERAL, LATEST, SCALES, SUITES, Suite, SuiteTask, suite
from linmdp.io.units import human_bytes
from linmdp.report.benchmark import Benchmark, Score
from linmdp.report.plots import is_baseline
from linmdp.results.curves import whole
from linmdp.results.store import Store, existing_store
from linmdp.results.summary import most
from linmdp.results.verdict import LEARNED
from linmdp.runner.batch import Job
from linmdp.runner.registry import AGENTS, SB3_AGENTS, agent_parameters, make_env
from linmdp.runner.spec import check_names, parse_spec
from linmdp.runner.start import made_to_stay
from linmdp.runner.sweep import Shard, run_key, run_tried, shard_of
from linmdp.types import Array, RunResult

LAST = 5
"""The end of a run is the last one of so many parts of its episodes."""
LITTLE = 0.1
"""A run that says "learned" with less than this score at the end has said too much."""
WARM_UP = ("counted", "given")
SHARDS = "shard-*-of-*"
"""The folders of the parts that were run apart, beside the store."""


class Cell(NamedTuple):
    """An agent on a task, with a run for each seed."""

    task: SuiteTask
    agent: str
    jobs: tuple[Job, ...]


def run_benchmark(
    agents: Sequence[str],
    store: Store,
    *,
    version: str = LATEST,
    scale: str = "quick",
    perturb: Sequence[str] = (),
    leave_out: bool = False,
    warm_up: str | None = None,
    shard: Shard | None = None,
    processes: int | None = None,
    progress: bool = False,
    say: Say = lambda words: None,
) -> Benchmark | None:
    """Run what is missing, and score it; an agent that fails on a task has 0 there.

    With a `shard` (i, n) only every n-th run is done, from the i-th on (counted from 1), and nothing is scored. What
    shards have left in folders beside the store is read as if it were in it. A `warm_up` that is counted takes the
    place of as many steps of episodes; one that is given comes for nothing.
    """
    check_choice("benchmark", "suite", version, tuple(SUITES))
    check_choice("benchmark", "scale", scale, SCALES)
    if warm_up is not None:
        check_choice("benchmark", "warm_up", warm_up, WARM_UP)
    _check_agents(agents)
    names = _perturbations(perturb)
    if names and SUITES[version] != GENERAL:
        invalid("benchmark", "perturb", "left out but for the suite 'general'", ",".join(names))
    if leave_out and len(agents) < 2:
        invalid("benchmark", "leave_out", "of an agent and variants of it: give two agents or more", len(agents))
    chosen = suite(version, scale)
    _check_any(chosen, agents)
    cells = _cells(chosen, agents, names)
    jobs = [job for cell in cells for job in cell.jobs]
    with ExitStack() as opened:
        stores = [store] if shard else [store, *_shards(store, opened)]
        done = set[str]().union(*(each.keys() for each in stores))
        if shard:
            jobs = list(shard_of(jobs, shard))
        left = [job for job in jobs if run_key(job) not in done]
        part = f", part {shard[0]} of {shard[1]}" if shard else ""
        say(f"suite {chosen.version}, {scale}{part}: {len(jobs)} runs, {len(left)} to do; {store.path}")
        for words in chosen.left_out:
            say(f"left out: {words}")
        failed = run_tried(left, store, processes=processes, progress=progress, limit=chosen.max_bytes)
        if shard:
            for job, reason in failed.items():
                say(f"{job.agent} failed on {job.env}: {reason}")
            return None
        wanted = {run_key(job) for job in jobs}
        runs = {run.key: whole(run.result) for each in stores for run in each.stored() if run.key in wanted}
    warm = warm_up or chosen.warm_up
    scores = [_score(chosen, cell, runs, failed, warm) for cell in cells]
    more: dict[str, Any] = {"measure": chosen.measure, "warm_up": warm, "leave_out": leave_out}
    return Benchmark(chosen.version, chosen.fingerprint, scale, scores, **more)


def _check_agents(agents: Sequence[str]) -> None:
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


def _perturbations(given: Sequence[str]) -> list[str]:
    """Their names; "all" stands for all."""
    if list(given) == ["all"]:
        return list(PERTURBATIONS)
    for name in given:
        if name not in PERTURBATIONS:
            unknown("perturbation", name, (*PERTURBATIONS, "all"))
    return list(dict.fromkeys(given))


def _check_any(chosen: Suite, agents: Sequence[str]) -> None:
    """Refuse an agent that can be made for no task; it is known with the first one that it can be made for."""
    left, reasons = list(agents), dict[str, str]()
    with without_warnings():
        for task in chosen.tasks:
            env = make_env(task.env)
            for agent in tuple(left):
                try:
                    made_to_stay(task.spec(agent), env, task.episodes, chosen.max_bytes)
                    left.remove(agent)
                except Exception as error:  # of an agent that someone else wrote, anything
                    reasons.setdefault(agent, described(error))
            if not left:
                return
    raise InvalidParameter(f"'{left[0]}' can be made for no task of the suite: {reasons.get(left[0], 'it has none')}.")


def _cells(chosen: Suite, agents: Sequence[str], names: Sequence[str]) -> list[Cell]:
    """Every agent on every task, as it is and then with each perturbation that applies."""
    changed = [found for name in names for task in chosen.tasks if (found := task.perturbed(name)) is not None]
    return [Cell(task, agent, task.jobs(agent, chosen.seeds)) for task in (*chosen.tasks, *changed) for agent in agents]


def _shards(store: Store, opened: ExitStack) -> list[Store]:
    """The stores of the shards beside a store."""
    folders = sorted(path.parent for path in store.path.parent.glob(f"{SHARDS}/runs.sqlite"))
    return [opened.enter_context(closing(existing_store(folder))) for folder in folders]


def shard_folder(out: Path, shard: Shard) -> Path:
    """Where a part is kept."""
    return out / f"shard-{shard[0]}-of-{shard[1]}"


def _score(chosen: Suite, cell: Cell, runs: dict[str, RunResult], failed: dict[Job, str], warm_up: str) -> Score:
    """An agent on a task; a run that has failed makes all its scores there 0."""
    task, n = cell.task, len(cell.jobs)
    reason = next((failed[job] for job in cell.jobs if job in failed), "")
    mine = [] if reason else [runs[run_key(job)] for job in cell.jobs]
    held, limit = max((run.peak_bytes for run in mine), default=0), task.max_bytes or chosen.max_bytes
    if limit is not None and held > limit and not is_baseline(cell.agent):
        reason = f"it held {human_bytes(held)}, and {human_bytes(limit)} are allowed"
    before = [steps_before(run) for run in mine]
    lost = before if warm_up == "counted" else [0] * len(before)
    earned = [returns_of(run, task, count) for run, count in zip(mine, lost, strict=True)]
    none = np.zeros(n)
    return Score(
        task=task.name,
        family=task.family,
        half=task.half,
        kind=task.kind,
        perturb=task.perturb,
        agent=cell.agent,
        episodes=task.episodes,
        whole=none if reason else task.score(np.array([x.mean() for x in earned])),
        end=none if reason else task.score(np.array([at_the_end(x) for x in earned])),
        value=float(np.mean([x.mean() for x in earned])) if earned else None,
        random=task.anchor.random,
        best=task.anchor.best,
        constant=float("nan") if np.isnan(task.anchor.constant) else float(task.score(task.anchor.constant)),
        false=np.array([_says_too_much(run, task) for run in mine], dtype=np.bool_),
        agent_bytes=held,
        planning_bytes=most(run.planning_bytes for run in mine),
        before=float(np.mean(before)) if mine else 0.0,
        steps=float(np.mean([steps(run) for run in mine])) if mine else 0.0,
        cpu_seconds=float(np.mean([run.cpu_seconds for run in mine])) if mine else 0.0,
        reason=reason,
    )


def at_the_end(returns: Array) -> float:
    """The mean of the last fifth."""
    return float(returns[-max(1, len(returns) // LAST) :].mean())


def _says_too_much(run: RunResult, task: SuiteTask) -> bool:
    """Whether it says "learned", and its own last episodes say that it has not."""
    return run.verdict.startswith(LEARNED) and float(task.score(at_the_end(returns_of(run, task, 0)))) < LITTLE


def steps(run: RunResult) -> int:
    """Steps of its episodes."""
    return int(run.costs[-1][3]) if run.costs else run.interactions or 0


def steps_before(run: RunResult) -> int:
    """Steps before its first episode, if the agent makes use of what they were played for."""
    name = parse_spec(run.agent)[0]
    kind = AGENTS[name] if name in AGENTS else SB3_AGENTS[name]
    return max(0, (run.interactions or 0) - steps(run)) if kind.needs_features else 0


def returns_of(run: RunResult, task: SuiteTask, before: int) -> Array:
    """What each of the K episodes that an agent is given was worth, in the units of the task.

    Exactly, where V* is known, else as it was earned. The steps before them stand at the beginning as episodes of
    random play, of the run's own mean length, and as many episodes at the end fall out.
    """
    if run.regret is not None:
        earned = task.anchor.best - np.diff(run.regret, prepend=0.0)
    else:
        earned = (run.rewards - task.shift) / task.factor
    warm = round(before * run.episodes / steps(run)) if before else 0
    found: Array = np.concatenate([np.full(warm, task.anchor.random), earned])[: run.episodes]
    return found
