"""Planned runs: read from the store, or run and stored."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from linmdp.results.store import Store
from linmdp.runner.batch import Job
from linmdp.runner.estimate import estimate, in_words
from linmdp.runner.sweep import run_key, run_sweep
from linmdp.types import RunResult

Say = Callable[[str], None]
Runs = Mapping[tuple[str, str], Sequence[RunResult]]
"""Results by environment and agent."""


def run_planned(planned: list[Job], store: Store, jobs: int | None, say: Say, purpose: str) -> list[RunResult]:
    """The results of all planned runs; those missing from the store are run, after an estimate of the time."""
    there = store.keys()
    left = [job for job in planned if run_key(job) not in there]
    if left:
        say(f"{len(left)} of {len(planned)} runs {purpose}: {in_words(estimate(left, processes=jobs))}")
        run_sweep(planned, store, processes=jobs, progress=True)
    return list(store.results({run_key(job) for job in planned}))


def grouped(results: Sequence[RunResult]) -> Runs:
    """The runs of each policy, by seed."""
    groups: dict[tuple[str, str], list[RunResult]] = {}
    for r in sorted(results, key=lambda r: r.seed):
        groups.setdefault((r.env, r.agent), []).append(r)
    return groups
