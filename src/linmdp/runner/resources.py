"""Are memory and disk enough for many runs? Estimated before anything runs."""

from __future__ import annotations

import shutil
import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, NoReturn

from linmdp.agents.base import Agent
from linmdp.agents.lsvi import LSVIAgent
from linmdp.errors import InvalidParameter, LinMDPError, LinMDPWarning, OutputError
from linmdp.io.memory import available_memory
from linmdp.results.curves import is_long, thinned
from linmdp.results.rows import row_bytes
from linmdp.runner.batch import Job
from linmdp.runner.registry import AGENTS, construct, make_agent, make_env
from linmdp.runner.spec import parse_spec
from linmdp.types import Task

GIB = 2**30


LESS = "use max_bytes=2MiB or another storage, fewer --jobs, fewer episodes, or allow more with --max-memory"


class Footprint(NamedTuple):
    """Bytes of an agent at the end of a run, and of its environment."""

    agent: int
    env: int


def check_room(work: Sequence[Sequence[Job]], processes: int, folder: Path) -> None:
    """Raise if these units would not fit into the memory of that many processes, or what they write onto the disk."""
    jobs = [job for unit in work for job in unit]
    available = available_memory() if processes else None  # of other machines nothing is known
    saved = [job for job in jobs if job.save]
    sizes = sizes_of(jobs if available is not None else saved)
    if available is not None:
        check_memory(work, unit_bytes(work, sizes), processes, available)
    needed, free = sum(row_bytes(job.episodes) for job in jobs), free_disk(folder)
    needed += sum(sizes[setting(job)].agent for job in saved)
    if needed > free:
        raise OutputError(
            f"This needs about {needed / GIB:.3g} GiB of disk space for {len(jobs)} runs, "
            f"and '{folder}' has {free / GIB:.3g} GiB left."
        )


def check_memory(work: Sequence[Sequence[Job]], found: Sequence[int], processes: int, available: int) -> None:
    """Raise if the largest units, as many as there are processes, would not fit into memory side by side."""
    largest = sorted(zip(found, work, strict=True), reverse=True)[:processes]
    needed = sum(size for size, _ in largest)
    if needed > available:
        job, at_once = largest[0][1][0], f"{len(largest)} processes" if len(largest) > 1 else "one process"
        raise InvalidParameter(
            f"This needs about {needed / GIB:.3g} GiB of memory in {at_once}, and {available / GIB:.3g} GiB are "
            f"available. The largest run is {job.agent} in {job.env} with {job.episodes} episodes: "
            f"{LESS}."
        )


def unit_bytes(work: Sequence[Sequence[Job]], sizes: Mapping[Job, Footprint] | None = None) -> list[int]:
    """Peak bytes of each unit: runs in lockstep share the model, and each has its agent and its two curves twice."""
    sizes = sizes_of([unit[0] for unit in work]) if sizes is None else sizes
    first = [(unit[0], len(unit), sizes[setting(unit[0])]) for unit in work]
    points = {job: len(thinned(job.episodes)) if is_long(job.episodes) else job.episodes for job, *_ in first}
    return [runs * (size.agent + 2 * 2 * 8 * points[job]) + size.env for job, runs, size in first]


def setting(job: Job) -> Job:
    """What the bytes of a run depend on: runs with the same setting have the same."""
    return Job(job.env, job.agent, job.episodes, 0, 1)


def sizes_of(jobs: Sequence[Job]) -> dict[Job, Footprint]:
    """The bytes of each setting."""
    found: dict[Job, Footprint] = {}
    name, env = "", None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", LinMDPWarning)  # the plan has warned
        for job in dict.fromkeys(map(setting, jobs)):
            if name != job.env:
                name, env = job.env, make_env(job.env)
            found[job] = footprint(make_agent(job.agent, env, job.episodes), env, job.episodes)
    return found


def footprint(agent: Agent, env: Any, episodes: int) -> Footprint:
    """The bytes of an agent at the end of a run of that many episodes, and of its environment."""
    return Footprint(agent.bytes_after(episodes), _model_bytes(env))


class _Enough(Exception):
    """Raised in the middle of making an agent: what it will take is known."""


def predicted_bytes(spec: str, task: Task, episodes: int) -> int | None:
    """The most bytes that an LSVI agent will take, without making it; None where it is not known beforehand."""
    name, parameters = parse_spec(spec)
    kind = AGENTS.get(name)
    if kind is None or not issubclass(kind, LSVIAgent) or kind.make_storage is not LSVIAgent.make_storage:
        return None

    def stop(agent: LSVIAgent) -> NoReturn:  # in place of making the schedule, which comes before all large arrays
        raise _Enough(agent._bytes_of(next(agent._choices())))

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", LinMDPWarning)
        try:
            construct(type(name, (kind,), {"make_schedule": stop}), parameters, task, episodes)
        except _Enough as found:
            return int(found.args[0])
        except LinMDPError:  # it is reported where the agent is made
            return None
    return None


def _model_bytes(env: Any) -> int:
    """What describes an environment; a step that is seen many times through a view counts once."""
    model = getattr(env, "model", None)
    arrays = () if model is None else (model.theta, model.mu, model.mu_cdf)
    features = env.task.features.nbytes if env.task.knows("features") else 0
    return int(features + sum(a.nbytes if a.strides[0] else a[0].nbytes for a in arrays))


def free_disk(folder: Path) -> int:
    """Bytes that are free on the disk of a folder."""
    return shutil.disk_usage(folder).free
