"""How long will it take? Measured on this machine in about a second, before anything long starts."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from linmdp.agents.lsvi import LSVIUCB
from linmdp.runner.batch import Job, default_processes, units
from linmdp.runner.loop import run
from linmdp.runner.registry import make_agent, make_env
from linmdp.types import EpisodeRecord

PROBE_EPISODES = 150
LOCKSTEP = 0.7
"""What a run costs in lockstep with others, over what it costs alone (docs, speed)."""


class Costs(NamedTuple):
    """CPU seconds of an episode: with counts, with stored samples, and of each sample that is held besides."""

    counts: float
    samples: float
    each_sample: float


def measure_costs(env: Any) -> Costs:
    """One short run with each kind of storage. Medians, because a busy machine makes some episodes slow."""
    counts = _episode_times(env, "lsvi-ucb", PROBE_EPISODES // 4)
    stored = _episode_times(env, "lsvi-ucb:storage=features", PROBE_EPISODES)
    third = len(stored) // 3
    early, late = float(np.median(stored[:third])), float(np.median(stored[-third:]))
    each = max(late - early, 0.0) / (len(stored) - third)
    return Costs(float(np.median(counts)), max(early - each * third / 2, 0.0), each)


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
    envs = {job.env: make_env(job.env) for job in jobs}
    costs = {name: measure_costs(env) for name, env in envs.items()}
    seconds = 0.0
    for unit in work:
        alone = _seconds(unit[0], envs[unit[0].env], costs[unit[0].env]) * len(unit)
        seconds += alone * (LOCKSTEP if len(unit) > 1 else 1)
    return seconds / (processes or default_processes(len(work)))


def _seconds(job: Job, env: Any, cost: Costs) -> float:
    agent = make_agent(job.agent, env, job.episodes)
    if not isinstance(agent, LSVIUCB):
        return 0.1 * cost.counts * job.episodes
    if "storage=features" not in job.agent and "storage=states" not in job.agent:
        return cost.counts * job.episodes
    held = agent.samples_after(job.episodes) / 2  # on average, between two resets
    return (cost.samples + cost.each_sample * held) * job.episodes


def in_words(seconds: float) -> str:
    """90 as "about 2 minutes"."""
    if seconds < 90:
        return f"about {max(1, round(seconds))} seconds"
    if seconds < 5400:
        return f"about {round(seconds / 60)} minutes"
    return f"about {seconds / 3600:.1f} hours"
