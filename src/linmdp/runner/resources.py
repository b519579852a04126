"""Are memory and disk enough for many runs? Forecast before anything runs."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Sequence
from functools import cache, lru_cache
from pathlib import Path
from typing import Any, NamedTuple

from linmdp.agents.backend import imagined
from linmdp.agents.base import Agent
from linmdp.agents.lsvi import LSVIAgent
from linmdp.errors import InvalidParameter, LinMDPError, OutputError, without_warnings
from linmdp.io.memory import available_memory
from linmdp.io.units import human_bytes
from linmdp.results.curves import is_long, thinned
from linmdp.results.rows import row_bytes
from linmdp.runner.batch import Job, check_device
from linmdp.runner.registry import AGENTS, construct, make_agent, make_env
from linmdp.runner.spec import parse_spec
from linmdp.types import Task

GIB = 2**30
LESS = "use max_bytes=2MiB or another storage, fewer --jobs, fewer episodes, or allow more with --max-memory"


class Footprint(NamedTuple):
    """Bytes of an agent at the end of a run, and of its environment."""

    agent: int
    env: int


Sizes = Callable[[Job], Footprint]


class TooLarge(InvalidParameter):
    """An agent would take more memory than there is for it; `needed` bytes."""

    def __init__(self, words: str = "", needed: int = 0) -> None:
        super().__init__(words)
        self.needed = needed


def made_within(spec: str, env: Any, episodes: int, room: float | None) -> Agent:
    """The agent, if it takes no more than so many bytes from its start; one that takes more is never made."""
    needed = 0 if room is None else predicted_bytes(spec, env.unwrapped.task, 1) or 0
    if room is not None and needed > room:
        words = f"'{spec}' needs about {human_bytes(needed)} of memory from the start"
        raise TooLarge(f"{words}, and {human_bytes(int(room))} are available: {LESS}.", needed)
    return make_agent(spec, env, episodes)


def made_to_stay(spec: str, env: Any, episodes: int, limit: int | None) -> Agent:
    """The agent, if it does not need more memory than is allowed, in its largest form."""
    needed = 0 if limit is None else predicted_bytes(spec, env.task, episodes) or 0
    if limit is not None and needed > limit:
        raise TooLarge(f"it needs about {human_bytes(needed)}, and {human_bytes(limit)} are allowed", needed)
    return make_agent(spec, env, episodes)


def made_for(jobs: Sequence[Job], env: Any, room: float | None) -> dict[str, Agent]:
    """An agent of each spec, made for the environment of the jobs, if it takes no more than so many bytes."""
    found: dict[str, Agent] = {}
    for job in {job.agent: job for job in jobs}.values():
        found[job.agent] = made_within(job.agent, env, job.episodes, room)
        check_device(job, found[job.agent])
    return found


def check_room(
    work: Sequence[Sequence[Job]], processes: int, folder: Path | None = None, sizes: Sizes | None = None
) -> None:
    """Raise if these units would not fit into the memory of that many processes, or what they write into the folder.

    Of other machines (no processes here) nothing is known. `sizes`: of what is made already.
    """
    sizes, jobs = sizes or fresh_sizes(), [job for unit in work for job in unit]
    available = available_memory() if processes else None
    if available is not None:
        _check_memory(work, unit_bytes(work, sizes), processes, available)
    if folder is None:
        return
    needed = sum(row_bytes(job.episodes) + (sizes(job).agent if job.save else 0) for job in jobs)
    if needed > (free := free_disk(folder)):
        raise OutputError(
            f"This needs about {needed / GIB:.3g} GiB of disk space for {len(jobs)} runs, "
            f"and '{folder}' has {free / GIB:.3g} GiB left."
        )


def _check_memory(work: Sequence[Sequence[Job]], found: Sequence[int], processes: int, available: int) -> None:
    """The largest units, as many as there are processes, must fit into memory side by side."""
    largest = sorted(zip(found, work, strict=True), reverse=True)[:processes]
    needed = sum(size for size, _ in largest)
    if needed > available:
        job, at_once = largest[0][1][0], f"{len(largest)} processes" if len(largest) > 1 else "one process"
        raise InvalidParameter(
            f"This needs about {needed / GIB:.3g} GiB of memory in {at_once}, and {available / GIB:.3g} GiB are "
            f"available. The largest run is {job.agent} in {job.env} with {job.episodes} episodes: {LESS}."
        )


def unit_bytes(work: Sequence[Sequence[Job]], sizes: Sizes) -> list[int]:
    """Peak bytes of each unit: runs in lockstep share the model, and each has its agent and its two curves twice."""
    found = []
    for unit in work:
        size, K = sizes(unit[0]), unit[0].episodes
        points = len(thinned(K)) if is_long(K) else K
        found.append(len(unit) * (size.agent + 2 * 2 * 8 * points) + size.env)
    return found


def fresh_sizes() -> Sizes:
    """The bytes of each run, by making its agent once for all runs that have the same."""
    environment = lru_cache(maxsize=1)(make_env)

    @cache
    def made(env: str, agent: str, episodes: int) -> Footprint:
        with without_warnings():  # the plan has warned
            return footprint(make_agent(agent, environment(env), episodes), environment(env), episodes)

    return lambda job: made(job.env, job.agent, job.episodes)


def footprint(agent: Agent, env: Any, episodes: int) -> Footprint:
    """The bytes of an agent at the end of a run of that many episodes, and of its environment."""
    return Footprint(agent.bytes_after(episodes), _model_bytes(env))


def predicted_bytes(spec: str, task: Task, episodes: int) -> int | None:
    """The most bytes that an LSVI agent will take, without making it; None where it is not known beforehand."""
    name, parameters = parse_spec(spec)
    kind = AGENTS.get(name)
    if kind is None or not issubclass(kind, LSVIAgent) or kind.own_storage:
        return None

    with without_warnings(), imagined():
        try:
            agent: Any = construct(kind, parameters, task, episodes)
            return int(agent.most_bytes(episodes))
        except LinMDPError:  # it is reported where the agent is made
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
