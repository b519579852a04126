"""Progress bars on standard error, shown only where it is a terminal."""

from __future__ import annotations

import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

Advance = Callable[..., None]
"""Called after each step, or with the number of steps that were done."""

INTERVAL = 0.3
"""Seconds between two readings of what other processes have done."""


@contextmanager
def progress_bar(what: str, total: int, show: bool | Advance) -> Iterator[Advance]:
    """A function to call after each of `total` steps; `show` may itself be that function, of a larger bar."""
    if callable(show):
        yield show
        return
    if not (show and sys.stderr is not None and sys.stderr.isatty()):
        yield lambda steps=1: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn

    columns = (TextColumn(what), BarColumn(), TaskProgressColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(what, total=total)
        yield lambda steps=1: bar.advance(task, steps)


def times(weight: int, advance: Advance) -> Advance:
    """An `Advance` whose every step counts `weight` times."""
    return lambda steps=1: advance(steps * weight)


class FileMeter:
    """An `Advance` for a child process: the count stands in a file, where `watched` looks at it."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._count, self._written = 0, 0.0

    def __call__(self, steps: int = 1) -> None:
        self._count += steps
        now = time.monotonic()
        if now - self._written > INTERVAL:
            self._written = now
            with suppress(OSError):  # a disk that is full must not stop the work
                self.path.write_text(str(self._count))


def _count_in(path: Path) -> int:
    """What a meter wrote; a file that is being written may look empty, and one of a process that died torn."""
    try:
        return int(path.read_text() or 0)
    except (OSError, ValueError):
        return 0


@contextmanager
def watched(advance: Advance) -> Iterator[Path]:
    """A folder for `FileMeter`s; while it is open a thread brings what they count to `advance`."""
    with tempfile.TemporaryDirectory(prefix="linmdp-") as name:
        folder, stop, seen = Path(name), threading.Event(), 0

        def look() -> None:
            nonlocal seen
            while not stop.wait(INTERVAL):
                count = sum(_count_in(path) for path in folder.iterdir())
                if count > seen:  # a file that is being written may look empty
                    advance(count - seen)
                    seen = count

        thread = threading.Thread(target=look, daemon=True)
        thread.start()
        try:
            yield folder
        finally:
            stop.set()
            thread.join()
