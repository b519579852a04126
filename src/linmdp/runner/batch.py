"""Many runs: agents x seeds, on several processes, each run the same as if it were alone."""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from linmdp.agents.base import Agent
from linmdp.errors import LinMDPWarning, check_int
from linmdp.runner.loop import run
from linmdp.runner.registry import make_agent, make_env
from linmdp.types import RunResult


class Job(NamedTuple):
    """One run, as plain data."""

    env: str
    agent: str
    episodes: int
    seed: int
    eval_every: int


def jobs_for(
    env: str, agents: Sequence[str], *, episodes: int, seeds: int, seed: int = 0, eval_every: int = 1
) -> list[Job]:
    """Every agent with every seed, after one trial of each spec: bad input is refused before anything runs."""
    check_int("run", "episodes", episodes, low=1)
    check_int("run", "seeds", seeds, low=1)
    check_int("run", "seed", seed, low=0)
    check_int("run", "eval_every", eval_every, low=1)
    environment = make_env(env)
    for agent in agents:
        make_agent(agent, environment, episodes)
    return [Job(env, agent, episodes, seed + i, eval_every) for agent in agents for i in range(seeds)]


def run_job(job: Job, progress: bool = False) -> RunResult:
    """One run from its description. Warnings come back in the result, not on the side."""
    env: Any = make_env(job.env)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", LinMDPWarning)
        agent: Agent = make_agent(job.agent, env, job.episodes)
        result = run(
            env,
            agent,
            episodes=job.episodes,
            seed=job.seed,
            progress=progress,
            eval_every=job.eval_every,
            name=job.env,
        )
    result.agent = job.agent
    return result


def run_jobs(jobs: Sequence[Job], *, processes: int | None = None, progress: bool = False) -> Iterator[RunResult]:
    """All results, in the order of `jobs`, each as soon as it and those before it are done."""
    processes = default_processes(len(jobs)) if processes is None else check_int("run", "jobs", processes, low=1)
    if processes == 1:
        yield from (run_job(job, progress) for job in jobs)
        return
    import joblib

    # An agent's arrays fit the cache of one core: two processes with one BLAS thread each beat one with two.
    with joblib.parallel_config(backend="loky", inner_max_num_threads=1):
        parallel = joblib.Parallel(n_jobs=processes, return_as="generator")
        yield from parallel(joblib.delayed(run_job)(job) for job in jobs)


def default_processes(jobs: int) -> int:
    """As many as there are cores to use and jobs to do."""
    return max(
        1,
        min(len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1, jobs),
    )
