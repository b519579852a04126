"""The general suite: families, perturbations, scores (docs, general-suite). About 3 minutes on two cores."""

from __future__ import annotations

import re
from contextlib import closing

from linmdp.envs.general import FAMILIES
from linmdp.envs.general.perturb import PERTURBATIONS
from linmdp.experiments.benchmark import run_benchmark
from linmdp.experiments.suite import suite
from linmdp.io.files import output_folder
from linmdp.results.store import Store
from research.study import Study

AGENTS = ("random", "auto", "stream-q")


def scores(study: Study) -> str:
    """Every agent, with warm-up counted and given; `linmdp benchmark` has other agents and scales."""
    with closing(Store(output_folder(study.store))) as store:
        parts = [
            run_benchmark(AGENTS, store, version="general", warm_up=warm_up, progress=True, say=print)
            for warm_up in ("counted", "given")
        ]
    return "\n\n".join(map(str, parts))


def families(_: Study) -> str:
    """What the suite is made of: the families of each half."""
    halves: dict[str, list[str]] = {"made": [], "kept": [], "memory": []}
    for name in sorted({task.family for task in suite("general", "quick").tasks}):
        family = FAMILIES[name]
        words = re.split(r":|, | \(|\.$", (family.make.__doc__ or "").splitlines()[0])[0]
        said = words.lower().rstrip("s") != name.rstrip("s")
        halves[family.half].append(f"`{name}`" + f" ({words[0].lower()}{words[1:]})" * said)
    return "\n".join(f"- *{half}*: {', '.join(names)}" for half, names in halves.items())


def perturbations(_: Study) -> str:
    """What must not matter, by kind."""
    kinds: dict[str, list[str]] = {}
    for name, change in PERTURBATIONS.items():
        kinds.setdefault(change.kind, []).append(f"`{name}` ({change.words})")
    return "\n".join(f"- *{kind}*: {', '.join(names)}" for kind, names in kinds.items())


PARTS = {"general_families": families, "general_perturbations": perturbations, "general_scores": scores}
