"""The suite `general-1`: instances of every family of `linmdp.envs.general`, and what scores on them lie between."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from linmdp.envs.general import FAMILIES, NAMES, instance
from linmdp.envs.general.base import Family
from linmdp.envs.general.perturb import PERTURBATIONS, DoesNotApply, original, perturbed
from linmdp.errors import InvalidParameter
from linmdp.experiments import study
from linmdp.types import Array

VERSION = "general-1"


class GeneralAnchor(NamedTuple):
    """What an episode is worth to random play, the best known policy, and the best that always plays one `action`.

    `shortest` are the steps of the shortest episode of random and constant play.
    """

    random: float
    best: float
    constant: float
    action: int
    shortest: int

    def score(self, returns: Array) -> Array:
        """0 for random play, 1 for the best known; what is worse than random play is cut at -1."""
        found: Array = np.maximum(-1.0, (returns - self.random) / (self.best - self.random))
        return found


class GeneralTask(NamedTuple):
    """An instance of a family, perturbed or not; rewards times `factor`, plus `shift` an episode, are its returns."""

    family: str
    half: str
    instance: int
    H: int
    episodes: dict[str, int]
    anchor: GeneralAnchor
    perturb: str = ""
    factor: float = 1.0
    shift: float = 0.0

    @property
    def env(self) -> str:
        """Its spec."""
        change = f",perturb={self.perturb}" * bool(self.perturb)
        return f"general:family={self.family},instance={self.instance}{change}"

    @property
    def name(self) -> str:
        """The family and the number of the instance."""
        return f"{self.family}/{self.instance}"

    def perturbed(self, name: str) -> GeneralTask | None:
        """The same with a perturbation; None where that does not apply.

        Rewards are shifted only where all episodes have H steps: elsewhere what is paid at an early end, so that it is
        worth what it was, would be a reward of another size.
        """
        if PERTURBATIONS[name].shifts and self.anchor.shortest < self.H:
            return None
        try:
            made = perturbed(instance(self.family, self.instance), name, self.instance)
        except DoesNotApply:
            return None
        at_0, at_1 = original(made, np.array([0.0, 1.0])).tolist()
        factor = 1 / (at_1 - at_0)
        return self._replace(perturb=name, factor=factor, shift=-at_0 * factor)


class GeneralSuite(NamedTuple):
    """The instances at one scale, with their seeds; `left_out` says which families cannot be made here, and why."""

    version: str
    fingerprint: str
    scale: str
    tasks: tuple[GeneralTask, ...]
    seeds: range
    left_out: dict[str, str]


def anchors_path() -> Path:
    """Where the anchors are."""
    return Path(__file__).parent / f"{VERSION}.json"


def known_anchors() -> dict[str, list[dict[str, Any]]]:
    """What is in that file, by family, for its instances 0, 1, ...; nothing where it is missing."""
    path = anchors_path()
    found: dict[str, list[dict[str, Any]]] = json.loads(path.read_text("utf-8")) if path.exists() else {}
    return found


def general_suite(scale: str) -> GeneralSuite:
    """The suite at a scale, of the families whose anchors are known and whose packages are installed."""
    data, anchors = study(VERSION), known_anchors()
    families = {name: FAMILIES[name] for name in NAMES if name in anchors}
    tasks, left_out = list[GeneralTask](), dict[str, str]()
    for name, family in families.items():
        try:
            made = [instance(name, i) for i in range(data["instances"][scale])]
        except InvalidParameter as missing:
            left_out[name] = str(missing)
            continue
        tasks += [
            GeneralTask(name, family.half, i, env.H, family.episodes, GeneralAnchor(**anchors[name][i]))
            for i, env in enumerate(made)
        ]
    text = json.dumps([data, anchors, [_facts(family) for family in families.values()]], sort_keys=True)
    seeds = range(data["seed"], data["seed"] + data["seeds"][scale])
    return GeneralSuite(VERSION, hashlib.sha256(text.encode()).hexdigest()[:16], scale, tuple(tasks), seeds, left_out)


def _facts(family: Family) -> dict[str, Any]:
    return {key: getattr(family, key) for key in ("name", "half", "H", "episodes", "extra")}
