"""`--seeds auto`: groups of seeds, until it is decided which agents differ."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from linmdp.errors import invalid
from linmdp.results.adastop import GROUP, GROUPS, AdaStop
from linmdp.results.summary import score
from linmdp.runner.batch import Job
from linmdp.types import RunResult

AUTO = "auto"


def checked_seeds(seeds: Any, agents: Sequence[str]) -> Any:
    """How many seeds to plan for: the most, where they are "auto"."""
    if seeds == AUTO and len(agents) < 2:
        invalid("compare", "seeds", "a whole number where there is one agent: 'auto' compares two or more", seeds)
    return GROUP * GROUPS if seeds == AUTO else seeds  # which is looked at where runs are planned


def run_until_decided(
    plan: Sequence[Job], agents: Sequence[str], run: Callable[[list[Job]], Iterable[RunResult]]
) -> tuple[list[RunResult], AdaStop]:
    """The results in the order of the plan, and what was decided; who is not compared runs with the first group."""
    first, found, test = min(job.seed for job in plan), dict[Job, RunResult](), AdaStop(agents)
    wanted = list(dict.fromkeys(job.agent for job in plan))
    while wanted:
        seeds = range(first + test.seeds, first + test.seeds + GROUP)
        part = [job for job in plan if job.agent in wanted and job.seed in seeds]
        found |= zip(part, run(part), strict=True)
        scores = {a: [score(found[job]) for job in part if job.agent == a] for a in test.wanted}
        test.add(
            {a: np.array(x, np.float32).astype(np.float64) for a, x in scores.items()}
        )  # as they are when read again
        wanted = test.wanted
    return [found[job] for job in plan if job in found], test
