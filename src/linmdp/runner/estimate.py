"""How long will it take? Measured on this machine in about a second, before anything long starts."""

from __future__ import annotations

import time
from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np

from linmdp.agents.lsvi import LSVIUCB
from linmdp.agents.sb3 import SB3Agent
from linmdp.runner.batch import Job, default_processes, units
from linmdp.runner.loop import run
from linmdp.runner.registry import make_agent, make_env
from linmdp.types import EpisodeRecord

PROBE_EPISODES = 150
LOCKSTEP = 0.7
"""What a run costs in lockstep with others, over what it costs alone (docs, speed)."""


GAME_PROBE_EPISODES = 40
"""A game takes so much longer than the agent that fewer episodes must do."""

SB3_STEP = 6e-4
"""CPU seconds of a step of the agents of Stable-Baselines3, training included, about."""


class Costs:
    """CPU seconds of an episode in one environment, each measured when it is asked for, by one short run.

    Medians, because a busy machine makes some episodes slow.
    """

    def __init__(self, env: Any) -> None:
        self.env = env
        self._episodes = PROBE_EPISODES if env.unwrapped.task.S is not None else GAME_PROBE_EPISODES

    @cached_property
    def plain(self) -> float:
        """Without a learner."""
        return float(np.median(_episode_times(self.env, "random", self._episodes // 4)))

    @cached_property
    def counts(self) -> float:
        """Of LSVI with counts."""
        return float(np.median(_episode_times(self.env, "lsvi-ucb", self._episodes // 4)))

    @cached_property
    def stored(self) -> tuple[float, float]:
        """Of LSVI with stored samples, and of each sample that it holds besides."""
        times = _episode_times(self.env, "lsvi-ucb:storage=features", self._episodes)
        third = len(times) // 3
        early, late = float(np.median(times[:third])), float(np.median(times[-third:]))
        each = max(late - early, 0.0) / (len(times) - third)
        return max(early - each * third / 2, 0.0), each


def _episode_times(env: Any, agent: str, episodes: int) -> np.ndarray:
    marks = [time.process_time()]

    def mark(_: EpisodeRecord) -> None:
        marks.append(time.process_time())

    run(env, make_agent(agent, env, episodes), episodes=episodes, eval_every=episodes, on_episode=mark)
    return np.diff(marks)[2:]  # the first ones load and compile


def estimate(jobs: Sequence[Job], *, processes: int | None = None) -> float:
    """Wall seconds of the jobs, roughly; 0 for none."""
    work = units(jobs)
    if not work:
        return 0.0
    costs = {name: Costs(make_env(name)) for name in dict.fromkeys(job.env for job in jobs)}
    seconds = 0.0
    for unit in work:
        alone = _seconds(unit[0], costs[unit[0].env]) * len(unit)
        seconds += alone * (LOCKSTEP if len(unit) > 1 else 1)
    return seconds / (processes or default_processes(len(work)))


def _seconds(job: Job, cost: Costs) -> float:
    agent = make_agent(job.agent, cost.env, job.episodes)
    if isinstance(agent, SB3Agent):
        return (cost.plain + SB3_STEP * agent.task.H) * job.episodes
    if not isinstance(agent, LSVIUCB):
        return cost.plain * job.episodes
    if "storage=features" not in job.agent and "storage=states" not in job.agent and agent.task.S is not None:
        return cost.counts * job.episodes
    held = agent.samples_after(job.episodes) / 2  # on average, between two resets
    base, each_sample = cost.stored
    return (base + each_sample * held) * job.episodes


def in_words(seconds: float) -> str:
    """90 as "about 2 minutes"."""
    if seconds < 90:
        return f"about {max(1, round(seconds))} seconds"
    if seconds < 5400:
        return f"about {round(seconds / 60)} minutes"
    return f"about {seconds / 3600:.1f} hours"
