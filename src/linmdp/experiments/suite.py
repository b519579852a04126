"""The suites of `linmdp benchmark`: tasks, budgets, seeds, and the two values that scores lie between."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from linmdp.experiments import study
from linmdp.runner.batch import Job
from linmdp.runner.registry import SB3_AGENTS, agent_parameters
from linmdp.runner.spec import parse_spec, written_spec

LATEST = "1"
SCALES = ("quick", "full")
GENERAL = ("general", "general-1")
SUITES = (LATEST, *GENERAL)
"""What a suite may be called; the first is the default."""


class SuiteTask(NamedTuple):
    """An environment, K at each scale and, where memory is tight, the most bytes that an agent may hold."""

    name: str
    kind: str
    env: str
    episodes: dict[str, int]
    max_bytes: int | None = None

    def spec(self, agent: str) -> str:
        """The agent as it is run here: told of the limit, if it has a parameter for that and none is given."""
        name, given = parse_spec(agent)
        told = self.max_bytes is not None and name != "optimal" and name not in SB3_AGENTS
        if not told or "max_bytes" in given or "max_bytes" not in agent_parameters(name):
            return agent
        return written_spec(name, given | {"max_bytes": self.max_bytes})

    def jobs(self, agent: str, scale: str, seeds: Sequence[int]) -> list[Job]:
        """Its runs."""
        return [Job(self.env, self.spec(agent), self.episodes[scale], seed, 1) for seed in seeds]


class Anchor(NamedTuple):
    """What an episode is worth, on average, to the random policy and to the best one that is known."""

    random: float
    best: float


class Suite(NamedTuple):
    """Tasks that stay as they are.

    `max_bytes` is the limit of tasks without one of their own, `anchors` are by task and scale, and `fingerprint`
    changes with any of it.
    """

    version: str
    tasks: tuple[SuiteTask, ...]
    first_seed: int
    seeds: dict[str, int]
    max_bytes: int
    anchors: dict[str, dict[str, Anchor]]
    fingerprint: str

    def limit(self, task: SuiteTask) -> int:
        """The most bytes that an agent may hold."""
        return task.max_bytes or self.max_bytes

    def seed_range(self, scale: str) -> range:
        """The seeds of every run."""
        return range(self.first_seed, self.first_seed + self.seeds[scale])


def tasks_of(version: str) -> tuple[SuiteTask, ...]:
    """The tasks alone, as they are before their anchors are known."""
    return tuple(SuiteTask(**task) for task in study(f"benchmark-{version}")["tasks"])


def anchors_file(version: str) -> Path:
    """Where the anchors of a suite are."""
    return Path(__file__).parent / f"benchmark-{version}.json"


def suite(version: str = LATEST) -> Suite:
    """The suite of a version."""
    data, known = study(f"benchmark-{version}"), json.loads(anchors_file(version).read_text("utf-8"))
    anchors = {name: {scale: Anchor(*known[name][scale]) for scale in SCALES} for name in known}
    text = json.dumps([data, known], sort_keys=True)
    return Suite(
        version=data["version"],
        tasks=tasks_of(version),
        first_seed=data["seed"],
        seeds=data["seeds"],
        max_bytes=data["max_bytes"],
        anchors=anchors,
        fingerprint=hashlib.sha256(text.encode()).hexdigest()[:16],
    )
