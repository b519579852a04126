"""The suites of `linmdp benchmark`: tasks, budgets, seeds, and the two values that scores lie between.

Suite 1 are tasks that have names. Suite general-1 are instances of every family of `linmdp.envs.general`.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from linmdp.envs.general import FAMILIES, NAMES, instance
from linmdp.envs.general.perturb import PERTURBATIONS, DoesNotApply, original, perturbed
from linmdp.errors import InvalidParameter
from linmdp.experiments import study
from linmdp.runner.batch import Job
from linmdp.runner.registry import SB3_AGENTS, agent_parameters
from linmdp.runner.spec import parse_spec, written_spec
from linmdp.types import Array

LATEST, GENERAL = "1", "general-1"
SCALES = ("quick", "full")
SUITES = {LATEST: LATEST, "general": GENERAL, GENERAL: GENERAL}
"""What a suite may be called; the first is the default."""
FACTS = ("name", "half", "H", "episodes", "extra")
"""Of a family, what the fingerprint tells."""
HALVES = ("made", "kept", "memory")
"""Families that learners may be made on, those where they are only judged, and those that need a memory of the past."""


class Anchor(NamedTuple):
    """What an episode is worth to random play, the best known policy, and the best that always plays one `action`.

    `shortest` are the steps of the shortest episode of random and constant play.
    """

    random: float
    best: float
    constant: float = float("nan")
    action: int = 0
    shortest: int = 0


class SuiteTask(NamedTuple):
    """A task with K at the scale of the suite.

    Attributes
    ----------
    max_bytes : where memory is tight, the most that an agent may hold
    floor : what is worse than random play has this score at least
    factor, shift : rewards times `factor`, plus `shift` an episode, are the returns of a perturbed task
    """

    name: str
    family: str
    half: str
    kind: str
    env: str
    episodes: int
    anchor: Anchor
    max_bytes: int | None = None
    floor: float = 0.0
    perturb: str = ""
    factor: float = 1.0
    shift: float = 0.0

    def spec(self, agent: str) -> str:
        """The agent as it is run here: told of the limit, if it has a parameter for that and none is given."""
        name, given = parse_spec(agent)
        told = self.max_bytes is not None and name != "optimal" and name not in SB3_AGENTS
        if not told or "max_bytes" in given or "max_bytes" not in agent_parameters(name):
            return agent
        return written_spec(name, given | {"max_bytes": self.max_bytes})

    def jobs(self, agent: str, seeds: Sequence[int]) -> tuple[Job, ...]:
        """Its runs."""
        return tuple(Job(self.env, self.spec(agent), self.episodes, seed, 1) for seed in seeds)

    def score(self, returns: Array | float) -> Array:
        """0 for random play, 1 for the best known."""
        span = self.anchor.best - self.anchor.random
        found: Array = np.maximum(self.floor, (np.asarray(returns) - self.anchor.random) / span)
        return found

    def perturbed(self, name: str) -> SuiteTask | None:
        """The same with a perturbation; None where that does not apply.

        Rewards are shifted only where all episodes have the same length: elsewhere what is paid at an early end, so
        that it is worth what it was, would be a reward of another size.
        """
        if not self.env.startswith("general:"):
            return None
        seed = int(self.name.partition("/")[2])
        made = instance(self.family, seed)
        if PERTURBATIONS[name].shifts and self.anchor.shortest < made.H:
            return None
        try:
            changed = perturbed(made, name, seed)
        except DoesNotApply:
            return None
        at_0, at_1 = original(changed, np.array([0.0, 1.0])).tolist()
        factor = 1 / (at_1 - at_0)
        return self._replace(env=f"{self.env},perturb={name}", perturb=name, factor=factor, shift=-at_0 * factor)


class Suite(NamedTuple):
    """The tasks at one scale, which stay as they are: `fingerprint` changes with any of it.

    Attributes
    ----------
    measure : the scores that count, of the "whole" run or those at its "end"
    warm_up : whether steps before the first episode are "counted" or "given", where nobody says
    max_bytes : the most that an agent may hold, on any task
    left_out : which families cannot be made here, and why
    """

    version: str
    fingerprint: str
    scale: str
    tasks: tuple[SuiteTask, ...]
    seeds: range
    measure: str
    warm_up: str
    max_bytes: int | None = None
    left_out: tuple[str, ...] = ()


def suite(name: str, scale: str) -> Suite:
    """A suite by its name."""
    return _general(scale) if SUITES[name] == GENERAL else _named(SUITES[name], scale)


def anchors_file(version: str) -> Path:
    """Where the anchors of a suite are."""
    return Path(__file__).parent / f"{version if version == GENERAL else f'benchmark-{version}'}.json"


def known_anchors(version: str) -> dict[str, Any]:
    """What is in that file."""
    known: dict[str, Any] = json.loads(anchors_file(version).read_text("utf-8"))
    return known


def _named(version: str, scale: str) -> Suite:
    data, known = study(f"benchmark-{version}"), known_anchors(version)
    tasks = list[SuiteTask]()
    for task in data["tasks"]:
        name, K, most = task["name"], task["episodes"][scale], task.get("max_bytes")
        anchor = Anchor(*known[name][scale])
        tasks.append(SuiteTask(name, name, "all", task["kind"], task["env"], K, anchor, most))
    seeds = range(data["seed"], data["seed"] + data["seeds"][scale])
    return Suite(version, _fingerprint([data, known]), scale, tuple(tasks), seeds, "whole", "given", data["max_bytes"])


def _general(scale: str) -> Suite:
    """Of the families whose anchors are known and whose packages are installed."""
    data, known = study(GENERAL), known_anchors(GENERAL)
    families = {name: FAMILIES[name] for name in NAMES if name in known}
    tasks, left_out = list[SuiteTask](), list[str]()
    for name, family in sorted(families.items(), key=lambda item: HALVES.index(item[1].half)):
        try:
            for i in range(data["instances"][scale]):
                instance(name, i)
                env, K = f"general:family={name},instance={i}", family.episodes[scale]
                anchor = Anchor(**known[name][i])
                tasks.append(SuiteTask(f"{name}/{i}", name, family.half, family.half, env, K, anchor, floor=-1.0))
        except InvalidParameter as missing:
            left_out.append(str(missing))
    seeds = range(data["seed"], data["seed"] + data["seeds"][scale])
    facts = [{key: getattr(family, key) for key in FACTS} for family in families.values()]
    fingerprint = _fingerprint([data, known, facts])
    return Suite(GENERAL, fingerprint, scale, tuple(tasks), seeds, "end", "counted", None, tuple(left_out))


def _fingerprint(data: Any) -> str:
    return hashlib.sha256(json.dumps(data, sort_keys=True).encode()).hexdigest()[:16]
