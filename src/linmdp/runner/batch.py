"""Many runs: agents x seeds, in lockstep and on several processes, each run the same as if it were alone."""

from __future__ import annotations

import gc
import os
from collections.abc import Generator, Iterator, Sequence
from contextlib import closing, nullcontext
from functools import lru_cache
from itertools import groupby
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias, TypeVar

from linmdp.agents.backend import backend_for
from linmdp.agents.base import Agent
from linmdp.agents.lsvi import LSVIAgent
from linmdp.agents.sb3 import SB3Agent
from linmdp.envs.base import LinearModel
from linmdp.envs.linear_mdps import LINEAR_MDPS
from linmdp.errors import InvalidData, InvalidParameter, LinMDPError, WorkFailed, check_int, invalid, without_warnings
from linmdp.io.files import output_folder
from linmdp.plugins import carried
from linmdp.runner.lockstep import Run, run_lockstep
from linmdp.runner.measured import MOST_EPISODES, RunStopped, one_blas_thread
from linmdp.runner.pool import InProcess, PieceFailed, Pool, Processes, Results
from linmdp.runner.progress import Advance, Times, progress_bar
from linmdp.runner.random_play import RandomPlay, random_play, with_verdict
from linmdp.runner.registry import AGENTS, ENVS, make_agent, make_env, make_learner, make_model, model_known
from linmdp.runner.spec import parse_spec, rerun_words
from linmdp.types import RunResult

Value = TypeVar("Value")
Runs: TypeAlias = Generator[RunResult, None, None]

GROUP = 8
"""Runs in lockstep on a CPU: more gain little, and take memory that the caches do not have."""


MOST_PROCESSES = 1024
"""Processes of one machine that a run may ask for; a larger number is a slip."""
LARGE = 2**26
"""Bytes of an agent from which on it is worth a collection that it is gone before the next one."""


class Job(NamedTuple):
    """One run, as plain data."""

    env: str
    agent: str
    episodes: int
    seed: int
    eval_every: int
    device: str = "cpu"
    checkpoint: str | None = None
    every: int | None = None
    save: str | None = None
    """The file that the agent goes to at the end of the run."""


def jobs_for(env: str, agents: Sequence[str], *, episodes: int, seeds: int, **options: Any) -> list[Job]:
    """Every agent with every seed, after one trial of each spec: bad input is refused before anything runs.

    The options are those of `planned`.
    """
    jobs, made = planned(env, agents, episodes=episodes, seeds=seeds, **options), make_env(env)
    for job in {job.agent: job for job in jobs}.values():
        check_device(job, make_agent(job.agent, made, job.episodes))
    return jobs


def planned(
    env: str,
    agents: Sequence[str],
    *,
    episodes: int,
    seeds: int,
    seed: int = 0,
    eval_every: int = 1,
    device: str = "cpu",
    checkpoint: str | None = None,
    every: int | None = None,
) -> list[Job]:
    """The same with numbers checked, and specs not yet tried."""
    check_int("run", "episodes", episodes, low=1, high=MOST_EPISODES)
    check_int("run", "seeds", seeds, low=1, high=1_000_000)
    check_int("run", "seed", seed, low=0)
    check_int("run", "eval_every", eval_every, low=1)
    backend_for(device)
    if checkpoint is not None and device != "cpu":
        invalid("run", "device", "'cpu' where 'checkpoint' is given", device)
    if every is not None and checkpoint is None:
        invalid("run", "every", "given with 'checkpoint'", every)
    if every is not None:
        check_int("run", "every", every, low=1)
    rest = (eval_every, device, checkpoint, every)
    return [Job(env, agent, episodes, seed + i, *rest) for agent in agents for i in range(seeds)]


def check_device(job: Job, agent: Agent) -> None:
    """Refuse an agent that was meant for a GPU and cannot go there; those that do not plan run beside it."""
    if job.device != "cpu" and isinstance(agent, LSVIAgent) and not runs_in_lockstep(job):
        raise InvalidParameter(
            f"The 'device' parameter must be 'cpu' for '{job.agent}': a GPU runs LSVI agents with counts and a bonus "
            f"whose beta is a number, or beta and lam both 'auto'. Got {job.device!r}."
        )


def units(jobs: Sequence[Job]) -> list[list[Job]]:
    """The jobs in order, cut into groups that run together.

    How they are cut depends on the jobs alone, never on the number of processes: the last bits of a matrix product may
    depend on its size, and a run must give the same numbers on any machine's number of cores.
    """
    cut = []
    for _, same in groupby(jobs, key=_kind):
        runs = list(same)
        if not runs_in_lockstep(runs[0]):
            cut += [[run] for run in runs]
        elif runs[0].device != "cpu":
            cut += within_memory(runs, gpu_bytes())
        else:  # at least two groups, so that two cores have work; fewer than four runs are not worth a group
            groups = len(runs) if len(runs) < 4 else max(2, -(-len(runs) // GROUP))
            cut += [runs[i * len(runs) // groups : (i + 1) * len(runs) // groups] for i in range(groups)]
    return cut


def _kind(job: Job) -> tuple[Any, ...]:
    """What jobs have in common that run together: on a GPU they may be different settings."""
    found = None if job.device == "cpu" else _batch(job)
    return job._replace(seed=0, save=None, agent=job.agent if found is None else ""), found and found.common


def within_memory(runs: Sequence[Job], available: int) -> list[list[Job]]:
    """Runs for a GPU in as few batches, of about the same size, as that many bytes allow."""
    most = max(batch.bytes_each for run in runs if (batch := _batch(run)))
    batches = min(len(runs), -(-len(runs) * most // available))
    return [list(runs[i * len(runs) // batches : (i + 1) * len(runs) // batches]) for i in range(batches)]


def gpu_bytes() -> int:
    """What the runs on a GPU may take of its memory: graphs, draws and the model need the rest."""
    import torch

    return int(0.8 * torch.cuda.get_device_properties(0).total_memory)


class Batch(NamedTuple):
    """`common`: runs of one environment for which this is equal can run together; and the bytes of each."""

    common: tuple[Any, ...]
    bytes_each: int


def runs_in_lockstep(job: Job) -> bool:
    """Whether the runs of this job can share their products: the model is known, and the agent says yes.

    Not a run with checkpoints.
    """
    return _batch(job) is not None


def _batch(job: Job) -> Batch | None:
    if job.checkpoint is not None or not model_known(job.env):
        return None
    return _batch_of(job.env, job.agent, job.episodes, job.device, AGENTS.get(parse_spec(job.agent)[0]))


@lru_cache(maxsize=1024)
def _batch_of(env: str, spec: str, episodes: int, device: str, kind: type | None) -> Batch | None:
    """The same of an agent of that kind, which is part of the question: a name can be registered anew."""
    if kind is None or not vars(kind).get("in_lockstep"):
        return None
    with without_warnings():
        try:
            agent = make_learner(spec, _model(env).task, episodes)
        except LinMDPError:  # it is reported where it is run
            return None
    setting = agent.lockstep()
    if setting is None:
        return None
    learner, schedule = setting.agent, type(setting.schedule)
    explore = learner.make_exploration(0.0)
    if device != "cpu" and not explore.on_gpu:
        return None
    together = schedule if schedule.joins else None  # a schedule that decides for all runs wants those of its kind
    kind_of_q = (type(learner).make_exploration, type(explore), explore.offset, learner.horizon)
    return Batch((*kind_of_q, learner.dtype, learner.cap, together), learner.nbytes)


def run_unit(jobs: Sequence[Job], progress: bool | Advance = False) -> list[RunResult]:
    """The runs of one unit. Warnings come back in the results, not on the side."""
    with without_warnings():
        if len(jobs) == 1 and (jobs[0].device == "cpu" or not runs_in_lockstep(jobs[0])):
            return [_run_alone(jobs[0], progress)]
        return _run_together(jobs, progress)


def _run_alone(job: Job, progress: bool | Advance) -> RunResult:
    from linmdp.runner.loop import run

    env = _env(job.env)
    agent = make_agent(job.agent, env, job.episodes)
    try:
        result = run(
            env,
            agent,
            episodes=job.episodes,
            seed=job.seed,
            progress=progress,
            eval_every=job.eval_every,
            name=job.env,
            checkpoint=job.checkpoint,
            every=job.every,
            verdict=False,
        )
    except RunStopped as stopped:
        if stopped.result:
            stopped.result.agent = job.agent
        raise
    result.agent = job.agent
    if job.save is not None and not isinstance(agent, SB3Agent):  # whose library keeps its own files
        result.warnings += _saved(agent, job, Path(job.save))
    return result


def _saved(agent: Agent, job: Job, path: Path) -> list[str]:
    """Save the agent with the run that it comes from; what went wrong where it is an agent that cannot be saved."""
    output_folder(path.parent)
    try:
        agent.save(path, run={"env": job.env, "agent": job.agent, "episodes": job.episodes, "seed": job.seed})
    except (InvalidParameter, InvalidData) as error:
        return [f"{agent.name}: the agent is not saved: {error}"]
    return []


def _run_together(jobs: Sequence[Job], progress: bool | Advance) -> list[RunResult]:
    first = jobs[0]
    model = _model(first.env)
    made = {job.agent: make_learner(job.agent, model.task, job.episodes) for job in jobs}
    runs = [Run(made[job.agent].lockstep(), job.agent, job.seed) for job in jobs]  # each with a schedule of its own

    def save(i: int, trained: Agent) -> list[str]:
        path = jobs[i].save
        return [] if path is None else _saved(trained, jobs[i], Path(path))

    with one_blas_thread() if first.device == "cpu" else nullcontext():
        return run_lockstep(
            model,
            runs,
            env=first.env,
            episodes=first.episodes,
            eval_every=first.eval_every,
            backend=backend_for(first.device),
            progress=progress,
            on_agent=save if any(job.save for job in jobs) else None,
        )


def _env(spec: str) -> Any:
    """A new environment; its model may have served other runs."""
    if parse_spec(spec)[0] not in LINEAR_MDPS:
        return make_env(spec)
    from linmdp.envs.linear import LinearMDPEnv

    return LinearMDPEnv(_model(spec))


_last: dict[tuple[str, Any], LinearModel] = {}


def _model(spec: str) -> LinearModel:
    """The model of a spec; the last one is kept, since it often takes longer to make than a short run takes."""
    key = spec, ENVS[parse_spec(spec)[0]]  # an environment may be registered anew
    if key not in _last:
        _last.clear()  # first, so that there are never two of them
        _last[key] = make_model(spec)
    return _last[key]


def run_jobs(
    jobs: Sequence[Job], *, processes: int | None = None, progress: bool = False, verdict: bool = True
) -> Runs:
    """All results, in the order of `jobs`, each as soon as it and those before it are done."""
    work = units(jobs)
    with closing(run_units(work, local_pool(work, processes), progress=progress, verdict=verdict)) as finished:
        for results in in_order(len(work), {}, ((done.place, done.value) for done in finished)):
            yield from results


def in_order(total: int, there: dict[int, Value], finished: Iterator[tuple[int, Value]]) -> Iterator[Value]:
    """What is there and what is finished, by their places: each as soon as it and those before it are there."""
    for place in range(total):
        while place not in there:
            there.update([next(finished)])
        yield there.pop(place)


def run_units(work: Sequence[list[Job]], pool: Pool, *, progress: bool = False, verdict: bool = True) -> Results:
    """The results of every unit, with its place in `work`, in the order in which they finish.

    They get their verdicts here and not where they run: random play is played once, not in every process. Without
    `verdict` it is not played at all.
    """
    known: dict[str, RandomPlay] = {}
    with progress_bar("episodes", sum(job.episodes for unit in work for job in unit), progress) as advance:
        try:
            with closing(pool.run(carried(run_counted), work, advance)) as finished:
                for done in finished:
                    for job, result in zip(work[done.place], done.value, strict=True) if verdict else ():
                        beside_random_play(job, result, known)
                    yield done
        except PieceFailed as error:
            unit = work[error.place]
            raise WorkFailed(f"{_words(unit)} failed: {error}.") from error


def beside_random_play(job: Job, result: RunResult, known: dict[str, RandomPlay]) -> None:
    """Give a result its verdict; random play in an environment is played once, in an instance of its own."""
    if job.env not in known:
        with without_warnings():
            known[job.env] = random_play(_env(job.env))
    result.rerun = rerun_words(job.env, job.agent)
    with_verdict(result, known[job.env])


def run_counted(unit: Sequence[Job], advance: Advance) -> list[RunResult]:
    """The runs of one unit; every episode of every run is counted."""
    results = run_unit(unit, Times(len(unit), advance, parse_spec(unit[0].agent)[0]))
    if max(result.peak_bytes for result in results) > LARGE:
        gc.collect()  # the parts of an agent point at each other: it would still be there beside the next one
    return results


def local_pool(work: Sequence[list[Job]], processes: int | None = None) -> Pool:
    """Processes of this machine, or none but this one where that is enough."""
    if processes is None:
        processes = default_processes(len(work))
    else:
        processes = min(check_int("run", "jobs", processes, low=1, high=MOST_PROCESSES), len(work))
    if processes == 1 or len(work) <= 1 or work[0][0].device != "cpu":
        return InProcess()
    return Processes(processes)


def default_processes(work: int) -> int:
    """As many as there are cores to use and pieces of work to do."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return max(1, min(cores, work))


def _words(unit: Sequence[Job]) -> str:
    job, last = unit[0], unit[-1].seed
    seeds = f"seed {job.seed}" if last == job.seed else f"seeds {job.seed} to {last}"
    return f"{job.agent} in {job.env}, {job.episodes} episodes, {seeds},"
