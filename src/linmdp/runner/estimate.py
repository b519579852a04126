"""How long will it take? Measured on this machine, in seconds, before anything long starts."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from linmdp.agents.base import Agent
from linmdp.agents.lsvi import LSVIAgent
from linmdp.agents.sb3 import SB3Agent
from linmdp.envs.guard import Guard, as_it_is
from linmdp.runner.batch import Job, default_processes, units
from linmdp.runner.loop import play
from linmdp.runner.registry import make_agent, make_env
from linmdp.types import Array

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


def measured(env: Any, agent: Agent, episodes: int, *, seconds: float = math.inf) -> Cost:
    """By a short run, of about that many CPU seconds at most."""
    with as_it_is(env):
        return _measured(env, agent, episodes, time.process_time() + seconds)


def _measured(env: Any, agent: Agent, episodes: int, end: float) -> Cost:
    guard, planning, playing = Guard(env), list[float](), list[float]()
    for k in range(min(episodes, PROBE_EPISODES if env.unwrapped.task.S is not None else GAME_PROBE_EPISODES)):
        start, version = time.process_time(), agent.policy_version
        agent.begin_episode()
        planned = time.process_time()
        for _ in play(guard, agent, guard.reset(k, seed=None if k else 0), k):
            pass
        playing.append(time.process_time() - planned)
        if agent.policy_version != version or not planning:
            planning.append(planned - start)
        if time.process_time() > end:
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
        played = measured(env, random, job.episodes, seconds=seconds)
        return played.seconds(random, job.episodes) + SB3_STEP * steps
    return measured(env, agent, job.episodes, seconds=seconds).seconds(agent, job.episodes)


def in_words(seconds: float) -> str:
    """90 as "about 2 minutes"."""
    if seconds < 90:
        return f"about {max(1, round(seconds))} seconds"
    if seconds < 5400:
        return f"about {round(seconds / 60)} minutes"
    return f"about {seconds / 3600:.1f} hours"
