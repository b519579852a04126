"""What a user hears before a run starts, and when it does not."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import typer

from linmdp.io.units import human_bytes

if TYPE_CHECKING:
    from linmdp.runner.batch import Job

WORTH_SAYING = 60.0
"""Seconds from which on a forecast is worth a line."""


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


def checked_start(
    env: str, agents: Sequence[str], *, jobs: int | None, out: Path | None, yes: bool, **sizes: Any
) -> list[Job]:
    """The jobs of `run` and `compare`, if memory is enough for them and so much time is wanted; it says what it found.

    `jobs` are processes; what is stored in the folder `out` already takes no time.
    """
    from linmdp.runner.start import prepared

    start = prepared(env, agents, **sizes)
    words = start.chosen()  # as it is before a trial run
    if left := _left(start.jobs, out):
        start.check_memory(left, jobs)
        size = max(start.agents[job.agent].bytes_after(job.episodes) for job in left)
        confirm(start.seconds(left, jobs), size, yes, "fewer --episodes or --seeds, more --jobs, or linmdp check")
    if words:
        say(words)
    return start.jobs


def confirm(seconds: float, size: int, yes: bool, less: str) -> None:
    """Say what it will take: time, and bytes of an agent.

    More than an hour must be wanted: by an answer on a terminal, elsewhere by --yes.
    """
    from linmdp.runner.start import LONG, in_words

    terminal = sys.stdin is not None and sys.stdin.isatty() and sys.stderr is not None and sys.stderr.isatty()
    if seconds > LONG and not (yes or terminal):
        stop(f"this will take {in_words(seconds)}: use --yes to start it all the same, or {less}.", 2)
    if seconds > WORTH_SAYING:
        say(f"forecast: {in_words(seconds)}, at most {human_bytes(size)} an agent")
    if seconds > LONG and not yes and not typer.confirm("Start?", err=True):
        stop("not started.", 1)


def _left(planned: list[Job], out: Path | None) -> list[Job]:
    """The jobs that the folder does not have; a folder that cannot be written to is refused here."""
    if out is None:
        return planned
    from linmdp.results.store import opened_store
    from linmdp.runner.sweep import run_key

    with opened_store(out) as store:
        done = store.keys()
    return [job for job in planned if run_key(job) not in done]
