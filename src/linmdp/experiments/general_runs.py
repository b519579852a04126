"""`linmdp benchmark general`: what the store does not have yet is run, and all of it is scored."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from contextlib import ExitStack, closing
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

import numpy as np

from linmdp.envs.general.perturb import PERTURBATIONS
from linmdp.errors import InvalidParameter, LinMDPWarning, check_choice, described, invalid, unknown
from linmdp.experiments.benchmark import Say, check_agents
from linmdp.experiments.general import GeneralSuite, GeneralTask, general_suite
from linmdp.experiments.suite import SCALES
from linmdp.plugins import carried
from linmdp.report.general import GeneralBenchmark, Score
from linmdp.results.curves import whole
from linmdp.results.store import Store, existing_store
from linmdp.results.verdict import LEARNED
from linmdp.runner.batch import Job, local_pool, run_counted
from linmdp.runner.progress import Advance, progress_bar
from linmdp.runner.random_play import RandomPlay, random_play, with_verdict
from linmdp.runner.registry import AGENTS, SB3_AGENTS, make_agent, make_env
from linmdp.runner.spec import parse_spec
from linmdp.runner.sweep import run_key
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

    task: GeneralTask
    agent: str
    jobs: tuple[Job, ...]


def run_general(
    agents: Sequence[str],
    store: Store,
    *,
    scale: str = "quick",
    perturb: Sequence[str] = (),
    leave_out: bool = False,
    warm_up: str = "counted",
    shard: tuple[int, int] | None = None,
    processes: int | None = None,
    progress: bool = False,
    say: Say = lambda words: None,
) -> GeneralBenchmark | None:
    """Run what is missing, and score it; an agent that fails on a task has 0 there.

    With a `shard` (i, n) only every n-th run is done, from the i-th on (counted from 1), and nothing is scored. What
    shards have left in folders beside the store is read as if it were in it. A `warm_up` that is counted takes the
    place of as many steps of episodes; one that is given comes for nothing.
    """
    check_choice("benchmark", "scale", scale, SCALES)
    check_choice("benchmark", "warm_up", warm_up, WARM_UP)
    check_agents(agents)
    names = _perturbations(perturb)
    if leave_out and len(agents) < 2:
        invalid("benchmark", "leave_out", "of an agent and variants of it: give two agents or more", len(agents))
    suite = general_suite(scale)
    _check_any(suite, agents)
    cells = _cells(suite, agents, names)
    jobs = [job for cell in cells for job in cell.jobs]
    with ExitStack() as opened:
        stores = [store] if shard else [store, *_shards(store, opened)]
        done = set[str]().union(*(each.keys() for each in stores))
        if shard:
            jobs = jobs[shard[0] - 1 :: shard[1]]
        left = [job for job in jobs if run_key(job) not in done]
        part = f", part {shard[0]} of {shard[1]}" if shard else ""
        say(f"suite {suite.version}, {scale}{part}: {len(jobs)} runs, {len(left)} to do; {store.path}")
        for words in suite.left_out.values():
            say(f"left out: {words}")
        failed = _run(left, store, processes, progress)
        if shard:
            for job, reason in failed.items():
                say(f"{job.agent} failed on {job.env}: {reason}")
            return None
        wanted = {run_key(job) for job in jobs}
        runs = {run.key: whole(run.result) for each in stores for run in each.stored() if run.key in wanted}
    scores = [_score(suite, cell, runs, failed, warm_up) for cell in cells]
    return GeneralBenchmark(suite.version, suite.fingerprint, scale, scores, warm_up=warm_up, leave_out=leave_out)


def _perturbations(given: Sequence[str]) -> list[str]:
    """Their names; "all" stands for all."""
    if list(given) == ["all"]:
        return list(PERTURBATIONS)
    for name in given:
        if name not in PERTURBATIONS:
            unknown("perturbation", name, (*PERTURBATIONS, "all"))
    return list(dict.fromkeys(given))


def _check_any(suite: GeneralSuite, agents: Sequence[str]) -> None:
    """Refuse an agent that can be made for no task; it is known with the first one that it can be made for."""
    left, reasons = list(agents), dict[str, str]()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", LinMDPWarning)
        for task in suite.tasks:
            env = make_env(task.env)
            for agent in tuple(left):
                try:
                    make_agent(agent, env, task.episodes[suite.scale])
                    left.remove(agent)
                except Exception as error:  # of an agent that someone else wrote, anything
                    reasons[agent] = described(error)
            if not left:
                return
    raise InvalidParameter(f"'{left[0]}' can be made for no task of the suite: {reasons.get(left[0], 'it has none')}.")


def _cells(suite: GeneralSuite, agents: Sequence[str], names: Sequence[str]) -> list[Cell]:
    """Every agent on every task, as it is and then with each perturbation that applies."""
    changed = [found for name in names for task in suite.tasks if (found := task.perturbed(name)) is not None]
    return [
        Cell(task, agent, tuple(Job(task.env, agent, task.episodes[suite.scale], seed, 1) for seed in suite.seeds))
        for task in (*suite.tasks, *changed)
        for agent in agents
    ]


def _shards(store: Store, opened: ExitStack) -> list[Store]:
    """The stores of the shards beside a store."""
    folders = sorted(path.parent for path in store.path.parent.glob(f"{SHARDS}/runs.sqlite"))
    return [opened.enter_context(closing(existing_store(folder))) for folder in folders]


def shard_folder(out: Path, shard: tuple[int, int]) -> Path:
    """Where a part is kept."""
    return out / f"shard-{shard[0]}-of-{shard[1]}"


def parsed_shard(text: str) -> tuple[int, int]:
    """ "2/8" as (2, 8)."""
    place, slash, count = text.partition("/")
    if not (slash and place.isdecimal() and count.isdecimal() and 1 <= int(place) <= int(count)):
        invalid("benchmark", "shard", "i/n with 1 <= i <= n, as in 2/8", text)
    return int(place), int(count)


def _run(jobs: Sequence[Job], store: Store, processes: int | None, progress: bool) -> dict[Job, str]:
    """Run and store; why some have failed."""
    failed, work = dict[Job, str](), [[job] for job in jobs]
    if not work:
        return failed
    pool = local_pool(work, processes)
    with (
        progress_bar("episodes", sum(job.episodes for job in jobs), progress) as advance,
        closing(pool.run(carried(_tried), work, advance)) as finished,
    ):
        for place, found, where in finished:
            if isinstance(found, str):
                failed[jobs[place]] = found
            else:
                store.add([(run_key(jobs[place]), found)], where)
    return failed


def _tried(unit: Sequence[Job], advance: Advance) -> RunResult | str:
    """A run with its verdict, or why it has failed."""
    try:
        (result,) = run_counted(unit, advance)
        played = result.interactions
        judged = with_verdict(result, _random_play(unit[0].env))
        judged.interactions = played  # without those of the judge
        return judged
    except Exception as error:  # of an agent that someone else wrote, anything
        return described(error)


@lru_cache(maxsize=8)
def _random_play(spec: str) -> RandomPlay:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", LinMDPWarning)
        return random_play(make_env(spec))


def _score(suite: GeneralSuite, cell: Cell, runs: dict[str, RunResult], failed: dict[Job, str], warm_up: str) -> Score:
    """An agent on a task; a run that has failed makes all its scores there 0."""
    task, n = cell.task, len(cell.jobs)
    reason = next((failed[job] for job in cell.jobs if job in failed), "")
    mine = [] if reason else [runs[run_key(job)] for job in cell.jobs]
    before = [steps_before(run) for run in mine]
    earned = [
        returns_of(run, task, count if warm_up == "counted" else 0) for run, count in zip(mine, before, strict=True)
    ]
    none = np.zeros(n)
    return Score(
        family=task.family,
        half=task.half,
        instance=task.instance,
        perturb=task.perturb,
        agent=cell.agent,
        end=none if reason else task.anchor.score(np.array([at_the_end(x) for x in earned])),
        whole=none if reason else task.anchor.score(np.array([x.mean() for x in earned])),
        constant=float(task.anchor.score(np.array(task.anchor.constant))),
        false=np.array([_says_too_much(run, task) for run in mine], dtype=np.bool_),
        agent_bytes=max((run.peak_bytes for run in mine), default=0),
        before=float(np.mean(before)) if mine else 0.0,
        steps=float(np.mean([steps(run) for run in mine])) if mine else 0.0,
        cpu_ms=1e3 * sum(run.cpu_seconds for run in mine) / sum(map(steps, mine)) if mine else 0.0,
        reason=reason,
    )


def at_the_end(returns: Array) -> float:
    """The mean of the last fifth."""
    return float(returns[-max(1, len(returns) // LAST) :].mean())


def _says_too_much(run: RunResult, task: GeneralTask) -> bool:
    """Whether it says "learned", and its own last episodes say that it has not."""
    late = at_the_end(returns_of(run, task, 0))
    return run.verdict.startswith(LEARNED) and float(task.anchor.score(np.array(late))) < LITTLE


def steps(run: RunResult) -> int:
    """Steps of its episodes."""
    return int(run.costs[-1][3])


def steps_before(run: RunResult) -> int:
    """Steps before its first episode, if the agent makes use of what they were played for."""
    name = parse_spec(run.agent)[0]
    kind = AGENTS[name] if name in AGENTS else SB3_AGENTS[name]
    return max(0, (run.interactions or 0) - steps(run)) if kind.needs_features else 0


def returns_of(run: RunResult, task: GeneralTask, before: int) -> Array:
    """What each of the K episodes that an agent is given has earned, in the units of the instance.

    The steps before them stand at the beginning as episodes of random play, of the run's own mean length, and as many
    episodes at the end fall out.
    """
    earned = (run.rewards - task.shift) / task.factor
    warm = round(before * run.episodes / steps(run))
    found: Array = np.concatenate([np.full(warm, task.anchor.random), earned])[: run.episodes]
    return found
