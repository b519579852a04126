"""`linmdp run` and `compare`: every result in the order of the plan, kept in a folder or not."""

from __future__ import annotations

import json
from collections.abc import Callable, Generator, Iterable, Sequence
from contextlib import closing
from itertools import starmap
from pathlib import Path
from typing import Any

import numpy as np

from linmdp.errors import check_int, invalid
from linmdp.io.files import own, write_atomic
from linmdp.results.curves import whole
from linmdp.results.run_folder import LINES, agent_file, write_lines
from linmdp.results.stats import GROUP, GROUPS, AdaStop
from linmdp.results.store import existing_store, opened_store
from linmdp.results.summary import score
from linmdp.runner.batch import Job, in_order
from linmdp.runner.sweep import run_key, run_missing
from linmdp.types import RunResult

AUTO = "auto"


def checked_seeds(seeds: Any, agents: Sequence[str]) -> Any:
    """How many seeds to plan for: the most, where they are "auto"."""
    if seeds == AUTO and len(agents) < 2:
        invalid("compare", "seeds", "a whole number where there is one agent: 'auto' compares two or more", seeds)
    if isinstance(seeds, str) and seeds != AUTO:
        invalid("compare", "seeds", "a whole number, or 'auto'", seeds)
    return GROUP * GROUPS if seeds == AUTO else check_int("compare", "seeds", seeds, low=1)


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


OnRun = Callable[[RunResult], None]


def run_into(
    folder: Path,
    jobs: Sequence[Job],
    *,
    command: str,
    save: bool = True,
    processes: int | None = None,
    progress: bool = False,
    verdict: bool = True,
    on_run: OnRun | None = None,
) -> Generator[RunResult, None, None]:
    """Every result in the order of `jobs`, each as soon as it and those before it are there.

    Runs that the store of the folder has are read from it; the others are stored when they are finished, with `save`
    each with its agent, and given to `on_run`. At the end, also after an interruption, `results.jsonl` is written
    beside the store.
    """
    with opened_store(folder) as store:
        store.note("command", command)
        keys = [run_key(job) for job in jobs]
        place_of = {key: place for place, key in enumerate(keys)}
        waiting = {place_of[run.key]: whole(run.result) for run in store.stored() if run.key in place_of}
        fresh = dict[str, RunResult]()
        work = [saving(folder, job) for job in jobs] if save else jobs
        for key in (key for place, key in enumerate(keys) if place not in waiting):
            for leftover in own(folder / "agents").glob(f".{key}.*"):  # of a process that was killed while it saved
                leftover.unlink(missing_ok=True)

        def noted(place: int, result: RunResult) -> tuple[int, RunResult]:
            fresh[keys[place]] = result
            if on_run:
                on_run(result)
            return place, result

        try:
            with closing(run_missing(work, store, processes=processes, progress=progress, verdict=verdict)) as finished:
                yield from in_order(len(jobs), waiting, starmap(noted, finished))
        finally:
            if fresh or (store.keys() and not (folder / LINES).exists()):
                write_lines(folder / LINES, store, fresh)


def saving(folder: Path, job: Job) -> Job:
    """The job with its agent saved in the folder."""
    return job._replace(save=str(agent_file(folder, run_key(job))))


def where_it_stopped(jobs: Sequence[Job], done: int, folder: Path | None) -> str:
    """What is finished, where it is, and how to go on; `done` runs are finished where there is no folder."""
    again = "The same command goes on."
    if folder is not None and (folder / "runs.sqlite").exists():
        with closing(existing_store(folder)) as store:
            done = len(store.keys() & {run_key(job) for job in jobs})
        return f"stopped: {done} of {len(jobs)} runs are stored in {store.path}. {again}"
    if jobs[0].checkpoint:
        return f"stopped: {done} of {len(jobs)} runs are finished. {again[:-1]} from {jobs[0].checkpoint}."
    if not done:
        return f"stopped: none of {len(jobs)} runs is finished."
    return f"stopped: {done} of {len(jobs)} runs are finished; use --out to keep them."


def keep_stopped(result: RunResult | None, folder: Path) -> str:
    """Write the episodes of a run that its environment stopped; where they are, in words."""
    if not result:
        return ""
    path = folder / "partial.jsonl"
    folder.mkdir(parents=True, exist_ok=True)
    write_atomic(path, json.dumps(result.to_json()).encode() + b"\n")
    return f" Its first {result.episodes} episodes are in '{path}'."
