"""What a user hears before a run starts, and when it does not."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

if TYPE_CHECKING:
    from linmdp.runner.batch import Job


def say(words: str) -> None:
    """A line on standard error."""
    if sys.stderr is not None:  # print(file=None) would write to standard output
        print(words, file=sys.stderr, flush=True)


def stop(words: str, status: int) -> NoReturn:
    """End the program with a line."""
    say(f"linmdp: {words}")
    raise SystemExit(status)


def stop_if_damaged(words: Sequence[str]) -> None:
    """Name what is damaged, after the rest was shown: status 1, since not all was."""
    for line in dict.fromkeys(words):
        say(f"linmdp: {line}.")
    if words:
        raise SystemExit(1)


def checked_start(env: str, agents: Sequence[str], *, jobs: int | None, out: Path | None, **sizes: Any) -> list[Job]:
    """The jobs of `run` and `compare`, if memory is enough for those that the folder `out` does not have.

    It says what was chosen. `jobs` are processes.
    """
    from linmdp.runner.start import prepared

    start = prepared(env, agents, **sizes)
    if left := _left(start.jobs, out):
        start.check_memory(left, jobs)
    if words := start.chosen():
        say(words)
    return start.jobs


def _left(planned: list[Job], out: Path | None) -> list[Job]:
    """The jobs that the folder does not have; a folder that cannot be written to is refused here."""
    if out is None:
        return planned
    from linmdp.results.store import opened_store
    from linmdp.runner.sweep import run_key

    with opened_store(out) as store:
        done = store.keys()
    return [job for job in planned if run_key(job) not in done]
