"""Before runs start: what was chosen for them, and what they will take of memory, disk and time on this machine."""

from __future__ import annotations

import math
import shutil
import time
from collections.abc import Callable, Sequence
from functools import cache, lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from linmdp.agents.backend import imagined
from linmdp.agents.base import Agent
from linmdp.agents.lsvi import LSVIAgent
from linmdp.agents.sb3 import SB3Agent
from linmdp.envs.guard import Guard, as_it_is
from linmdp.errors import InvalidParameter, LinMDPError, OutputError, without_warnings
from linmdp.io.memory import available_memory
from linmdp.io.units import human_bytes
from linmdp.results.curves import is_long, thinned
from linmdp.results.rows import row_bytes
from linmdp.results.summary import chosen_words
from linmdp.runner.batch import Job, check_device, default_processes, planned, units
from linmdp.runner.loop import play
from linmdp.runner.registry import AGENTS, construct, make_agent, make_env
from linmdp.runner.spec import parse_spec
from linmdp.types import Array, Task

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


def made_within(spec: str, env: Any, episodes: int, available: float | None) -> Agent:
    """The agent, if it takes no more than so many bytes from its start; one that takes more is never made."""
    needed = 0 if available is None else predicted_bytes(spec, env.unwrapped.task, 1) or 0
    if available is not None and needed > available:
        words = f"'{spec}' needs about {human_bytes(needed)} of memory from the start"
        raise TooLarge(f"{words}, and {human_bytes(int(available))} are available: {LESS}.", needed)
    return make_agent(spec, env, episodes)


def made_to_stay(spec: str, env: Any, episodes: int, limit: int | None) -> Agent:
    """The agent, if it does not need more memory than is allowed, in its largest form."""
    needed = 0 if limit is None else predicted_bytes(spec, env.task, episodes) or 0
    if limit is not None and needed > limit:
        raise TooLarge(f"it needs about {human_bytes(needed)}, and {human_bytes(limit)} are allowed", needed)
    return make_agent(spec, env, episodes)


def check_fits(work: Sequence[Sequence[Job]], processes: int, folder: Path | None = None) -> None:
    """Raise if these units would not fit into the memory of that many processes, or what they write into the folder.

    Of other machines (no processes here) nothing is known.
    """
    sizes, jobs = fresh_sizes(), [job for unit in work for job in unit]
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
            task_env = environment(env)
            return Footprint(make_agent(agent, task_env, episodes).bytes_after(episodes), _model_bytes(task_env))

    return lambda job: made(job.env, job.agent, job.episodes)


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


WORTH_A_TRIAL = 20.0
"""Seconds, by a rough guess, from which on a trial run is played: one that is too low by far is still no hour."""

TRIAL = 1.0
"""CPU seconds of all trial runs together, about."""

FIRST, PATIENCE = 8, 4
"""A trial run goes on to that many episodes for so many times its seconds: the first may cost far more than others."""

LONG = 3600.0
"""Seconds from which on a start must be wanted."""

PROBE_EPISODES, PROBE_SECONDS = 120, 20.0
"""Of a short run, at most, and of all of them together."""

LOCKSTEP = 0.7
"""What a run costs in lockstep with others, over what it costs alone (docs, speed)."""

GAME_PROBE_EPISODES = 30
"""A game takes so much longer than the agent that fewer episodes must do."""

SB3_STEP = 6e-4
"""CPU seconds of a step of the agents of Stable-Baselines3, training included, about."""


ROUGH_STEP, ROUGH_PRODUCT = 1e-5, 1e-9
"""CPU seconds of a step of an environment, and of a multiplication, for a first guess."""


class Start(NamedTuple):
    """The jobs of a command, with the environment and an agent of each spec that were made to check them."""

    jobs: list[Job]
    env: Any
    agents: dict[str, Agent]

    def chosen(self) -> str:
        """What was chosen for parameters that were left open, in one line; empty where nothing was."""
        said: list[tuple[str, Any, tuple[str, ...]]] = []
        with as_it_is(self.env):
            said.append((self.jobs[0].env, getattr(self.env.unwrapped, "chosen", {}), ()))
        said += [(spec, getattr(agent, "chosen", {}), _learned(agent)) for spec, agent in self.agents.items()]
        return "; ".join(f"{spec}: chosen {_words(chosen, later)}" for spec, chosen, later in said if chosen)

    def check_memory(self, jobs: Sequence[Job], processes: int | None) -> None:
        """Raise if those of the jobs that are to be run would not fit into memory side by side."""
        work = units(jobs)
        check_fits(work, processes or default_processes(len(work)))

    def seconds(self, jobs: Sequence[Job], processes: int | None) -> float:
        """Wall seconds of those of the jobs that are to be run, roughly; 0 for a short one, or where nobody knows."""
        guess = wall_seconds(jobs, lambda job: rough(self.agents[job.agent], job.episodes), processes)
        if guess < WORTH_A_TRIAL or jobs[0].device != "cpu":
            return 0.0
        limit = TRIAL / len(self.agents)
        try:
            return wall_seconds(jobs, lambda job: job_seconds(job, self.env, self.agents[job.agent], limit), processes)
        except LinMDPError:  # the run will say it better
            return 0.0


def _learned(agent: Agent) -> tuple[str, ...]:
    """What follows from the data, so that there is nothing to say of it before there are any."""
    return ("lam", "beta") if getattr(agent, "auto", True) else ("beta",)


def _words(chosen: dict[str, Any], later: Sequence[str]) -> str:
    words = [chosen_words([{name: value for name, value in chosen.items() if name not in later}])]
    if learned := [name for name in later if name in chosen]:
        words.append(f"{' and '.join(learned)} from the data")
    if "bytes" in chosen:
        because = f" ({chosen['reason']})" if "reason" in chosen else ""
        words.append(f"at most {human_bytes(chosen['bytes'])}{because}")
    return ", ".join(filter(None, words))


def prepared(env: str, agents: Sequence[str], *, episodes: int, seeds: int, **options: Any) -> Start:
    """Every agent with every seed, checked by making each once, if memory is enough for that."""
    jobs = planned(env, agents, episodes=episodes, seeds=seeds, **options)
    made, available, found = make_env(env), available_memory(), dict[str, Agent]()
    for job in {job.agent: job for job in jobs}.values():
        found[job.agent] = made_within(job.agent, made, job.episodes, available)
        check_device(job, found[job.agent])
    return Start(jobs, made, found)


class Cost(NamedTuple):
    """CPU seconds of an agent in an environment: to play an episode, to plan, and for each sample that it goes through.

    Medians, because a busy machine makes some episodes slow.
    """

    episode: float
    planning: float
    sample: float

    def seconds(self, agent: Agent, episodes: int) -> float:
        """The whole run, by what the agent says of itself."""
        held = agent.samples_held(episodes) / 2  # on average, between two resets
        return self.episode * episodes + (self.planning + self.sample * held) * agent.plannings(episodes)


def rough(agent: Agent, episodes: int) -> float:
    """CPU seconds from the sizes of the task alone: often too few, and seldom by more than a factor of 30."""
    task, held = agent.task, agent.samples_held(episodes) / 2  # on average, as below
    if isinstance(agent, LSVIAgent):
        held *= agent.horizon.samples_per_episode
    d = task.d if task.knows("d") else 0  # of an agent that has not asked for features
    planning = task.H * d * (d + task.A * (held + (task.S or 0)))
    return ROUGH_STEP * task.H * episodes + ROUGH_PRODUCT * (planning * agent.plannings(episodes))


def tried_cost(env: Any, agent: Agent, episodes: int, *, seconds: float = math.inf) -> Cost:
    """By a short run, of about that many CPU seconds, or for its first episodes up to `PATIENCE` times as many."""
    guard, planning, playing, begin = Guard(env), list[float](), list[float](), time.process_time()
    most = PROBE_EPISODES if env.unwrapped.task.S is not None else GAME_PROBE_EPISODES
    with as_it_is(env):
        for k in range(min(episodes, most)):
            start, version = time.process_time(), agent.policy_version
            agent.begin_episode()
            planned = time.process_time()
            for _ in play(guard, agent, guard.reset(k, seed=None if k else 0), k):
                pass
            playing.append(time.process_time() - planned)
            if agent.policy_version != version or not planning:
                planning.append(planned - start)
            if time.process_time() - begin > seconds * (1 if k + 1 >= FIRST else PATIENCE):
                break
    base, each = _line(np.array(planning)) if agent.samples_held(episodes) else (float(np.median(planning)), 0.0)
    return Cost(float(np.median(playing)), base, each)


def _line(times: Array) -> tuple[float, float]:
    """Times that grow with every sample, as a constant and a slope."""
    third = max(1, len(times) // 3)
    early, late = float(np.median(times[:third])), float(np.median(times[-third:]))
    each = max(late - early, 0.0) / max(1, len(times) - third)
    return max(early - each * third / 2, 0.0), each


def estimate(jobs: Sequence[Job], *, processes: int | None = None) -> float:
    """Wall seconds of the jobs, roughly; 0 for none."""
    envs = {name: make_env(name) for name in dict.fromkeys(job.env for job in jobs)}
    each = PROBE_SECONDS / max(1, len({(job.env, job.agent, job.episodes) for job in jobs}))
    return wall_seconds(jobs, lambda job: job_seconds(job, envs[job.env], seconds=each), processes)


def wall_seconds(jobs: Sequence[Job], each: Callable[[Job], float], processes: int | None = None) -> float:
    """The same from the CPU seconds of a job, which is asked once for jobs that differ in their seed alone."""
    work = units(jobs)
    if not work:
        return 0.0
    known: dict[tuple[str, str, int], float] = {}
    seconds = 0.0
    for unit in work:
        job = unit[0]
        if (key := (job.env, job.agent, job.episodes)) not in known:
            known[key] = each(job)
        seconds += known[key] * len(unit) * (LOCKSTEP if len(unit) > 1 else 1)
    return seconds / (processes or default_processes(len(work)))


def job_seconds(job: Job, env: Any, agent: Agent | None = None, seconds: float = math.inf) -> float:
    """CPU seconds of a job, by a short run of its agent, which is made anew if it is not given."""
    agent = agent or make_agent(job.agent, env, job.episodes)
    if isinstance(agent, SB3Agent):
        steps, random = agent.task.H * job.episodes, make_agent("random", env)
        played = tried_cost(env, random, job.episodes, seconds=seconds)
        return played.seconds(random, job.episodes) + SB3_STEP * steps
    return tried_cost(env, agent, job.episodes, seconds=seconds).seconds(agent, job.episodes)


def in_words(seconds: float) -> str:
    """90 as "about 2 minutes"."""
    if seconds < 90:
        return f"about {(whole := max(1, round(seconds)))} second{'s' * (whole > 1)}"
    if seconds < 5400:
        return f"about {round(seconds / 60)} minutes"
    return f"about {seconds / 3600:.1f} hours"
