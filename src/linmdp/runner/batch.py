"""Many runs: agents x seeds, in lockstep and on several processes, each run the same as if it were alone."""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from itertools import groupby
from typing import Any, NamedTuple

from linmdp.agents.backend import backend_for
from linmdp.agents.lsvi import LSVIUCB
from linmdp.errors import LinMDPWarning, check_int
from linmdp.runner.diagnostics import MOST_EPISODES
from linmdp.runner.engine import Setting
from linmdp.runner.lockstep import run_lockstep
from linmdp.runner.progress import Advance, FileMeter, progress_bar, times, watched
from linmdp.runner.registry import AGENTS, make_agent, make_env, make_learner, make_model, model_known
from linmdp.runner.spec import parse_spec
from linmdp.types import RunResult

GROUP = 8
"""Runs in lockstep on a CPU: more gain little, and take memory that the caches do not have."""


class Job(NamedTuple):
    """One run, as plain data."""

    env: str
    agent: str
    episodes: int
    seed: int
    eval_every: int
    device: str = "cpu"


def jobs_for(
    env: str,
    agents: Sequence[str],
    *,
    episodes: int,
    seeds: int,
    seed: int = 0,
    eval_every: int = 1,
    device: str = "cpu",
) -> list[Job]:
    """Every agent with every seed, after one trial of each spec: bad input is refused before anything runs."""
    check_int("run", "episodes", episodes, low=1, high=MOST_EPISODES)
    check_int("run", "seeds", seeds, low=1, high=1_000_000)
    check_int("run", "seed", seed, low=0)
    check_int("run", "eval_every", eval_every, low=1)
    backend_for(device)
    environment = make_env(env)
    for agent in agents:
        make_agent(agent, environment, episodes)
    return [Job(env, agent, episodes, seed + i, eval_every, device) for agent in agents for i in range(seeds)]


def units(jobs: Sequence[Job]) -> list[list[Job]]:
    """The jobs in order, cut into groups that run together.

    How they are cut depends on the jobs alone, never on the number of processes: the last bits of a matrix product may
    depend on its size, and a run must give the same numbers on any machine's number of cores.
    """
    cut = []
    for job, same in groupby(jobs, key=lambda job: job._replace(seed=0)):
        runs = list(same)
        if not runs_in_lockstep(job):
            cut += [[run] for run in runs]
        elif job.device != "cpu":
            cut.append(runs)
        else:  # at least two groups, so that two cores have work; fewer than four runs are not worth a group
            groups = len(runs) if len(runs) < 4 else max(2, -(-len(runs) // GROUP))
            cut += [runs[i * len(runs) // groups : (i + 1) * len(runs) // groups] for i in range(groups)]
    return cut


def runs_in_lockstep(job: Job) -> bool:
    """Whether the job is LSVI with counts on a model that is known: those can share their products."""
    agent, parameters = parse_spec(job.agent)
    return (
        model_known(job.env)
        and issubclass(AGENTS[agent], LSVIUCB)
        and parameters.get("storage", "auto") in ("auto", "counts")
    )


def run_unit(jobs: Sequence[Job], progress: bool | Advance = False) -> list[RunResult]:
    """The runs of one unit. Warnings come back in the results, not on the side."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", LinMDPWarning)
        if len(jobs) == 1 and (jobs[0].device == "cpu" or not runs_in_lockstep(jobs[0])):
            return [_run_alone(jobs[0], progress)]
        return _run_together(jobs, progress)


def _run_alone(job: Job, progress: bool | Advance) -> RunResult:
    from linmdp.runner.loop import run

    env: Any = make_env(job.env)
    result = run(
        env,
        make_agent(job.agent, env, job.episodes),
        episodes=job.episodes,
        seed=job.seed,
        progress=progress,
        eval_every=job.eval_every,
        name=job.env,
    )
    result.agent = job.agent
    return result


def _run_together(jobs: Sequence[Job], progress: bool | Advance) -> list[RunResult]:
    first = jobs[0]
    model = make_model(first.env)
    agent = make_learner(first.agent, model.task, first.episodes)
    assert isinstance(agent, LSVIUCB)
    assert agent.caps is not None
    settings = [Setting.of(agent, job.agent, job.seed) for job in jobs]
    with _one_blas_thread() if first.device == "cpu" else nullcontext():
        return run_lockstep(
            model,
            settings,
            caps=agent.caps,
            dtype=agent.dtype,
            env=first.env,
            episodes=first.episodes,
            eval_every=first.eval_every,
            backend=backend_for(first.device),
            progress=progress,
        )


def _one_blas_thread() -> AbstractContextManager[Any]:
    from threadpoolctl import threadpool_limits

    limit: AbstractContextManager[Any] = threadpool_limits(1, user_api="blas")
    return limit


def run_jobs(jobs: Sequence[Job], *, processes: int | None = None, progress: bool = False) -> Iterator[RunResult]:
    """All results, in the order of `jobs`, each as soon as it and those before it are done."""
    for _, results in run_units(units(jobs), processes=processes, progress=progress):
        yield from results


def run_units(
    work: Sequence[list[Job]], *, processes: int | None = None, progress: bool = False
) -> Iterator[tuple[list[Job], list[RunResult]]]:
    """Every unit with its results, in order."""
    processes = default_processes(len(work)) if processes is None else check_int("run", "jobs", processes, low=1)
    with progress_bar("episodes", sum(job.episodes for unit in work for job in unit), progress) as advance:
        if processes == 1 or len(work) <= 1 or work[0][0].device != "cpu":
            for unit in work:
                yield unit, run_unit(unit, times(len(unit), advance))
            return
        import joblib

        # An agent's arrays fit the cache of one core: two processes with one BLAS thread each beat one with two.
        with joblib.parallel_config(backend="loky", inner_max_num_threads=1), watched(advance) as folder:
            parallel = joblib.Parallel(n_jobs=processes, return_as="generator")
            tasks = (
                joblib.delayed(run_unit)(unit, FileMeter(folder / str(i), len(unit))) for i, unit in enumerate(work)
            )
            yield from zip(work, parallel(tasks), strict=True)


def default_processes(work: int) -> int:
    """As many as there are cores to use and pieces of work to do."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return max(1, min(cores, work))
