"""Planned runs: read from the store, or run and stored."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from linmdp.agents.backend import backend_for
from linmdp.results.store import Store
from linmdp.results.summary import grouped
from linmdp.runner.batch import Job
from linmdp.runner.start import estimate, in_words
from linmdp.runner.sweep import run_key, run_sweep
from linmdp.types import RunResult

Say = Callable[[str], None]
Runs = Mapping[tuple[str, str], Sequence[RunResult]]
"""Results by environment and agent."""


def run_planned(planned: list[Job], store: Store, jobs: int | None, say: Say, purpose: str) -> list[RunResult]:
    """The results of all planned runs; those missing from the store are run, after an estimate of the time.

    What goes to a GPU goes there first. A store that one has filled is read without one.
    """
    there = store.keys()
    for device in sorted({job.device for job in planned}, reverse=True):
        mine = [job for job in planned if job.device == device]
        if left := [job for job in mine if run_key(job) not in there]:
            backend_for(device)
            time = "on the GPU" if device != "cpu" else in_words(estimate(left, processes=jobs))
            say(f"{len(left)} of {len(mine)} runs {purpose}: {time}")
            run_sweep(mine, store, processes=jobs, progress=True)
    return list(store.results({run_key(job) for job in planned}))


def by_policy(results: Sequence[RunResult]) -> Runs:
    """The runs of each policy, by seed."""
    return grouped(sorted(results, key=lambda r: r.seed), lambda r: (r.env, r.agent))
