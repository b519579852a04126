"""Progress on standard error: a bar on a terminal, a line that is rewritten in a notebook, or a line now and then."""

from __future__ import annotations

import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path

import numpy as np

from linmdp.results.verdict import number
from linmdp.types import Array

Advance = Callable[..., None]
"""Called after each step, or with the number of steps that were done."""
Note = Callable[[], str]
"""What to say beside the count; asked only when it is shown, since that is seldom."""

INTERVAL = 0.3
"""Seconds between two readings of what other processes have done, and between two notes."""
LINES = 10.0
"""Seconds between two lines where there is no terminal."""
RECENT = 10
"""Episodes whose mean return is shown."""


class Meter:
    """An `Advance` that also takes what to say. This one counts for a function that takes the number of steps alone."""

    def __init__(self, count: Advance = lambda steps=1: None) -> None:
        self._count = count

    def __call__(self, steps: int = 1, note: Note | None = None) -> None:
        self._count(steps)


class Paced(Meter):
    """A meter that shows what it has counted, not more often than every `interval` seconds."""

    interval = INTERVAL

    def __init__(self) -> None:
        self.count, self._shown = 0, time.monotonic()

    def __call__(self, steps: int = 1, note: Note | None = None) -> None:
        self.count += steps
        now = time.monotonic()
        if now - self._shown > self.interval:
            self._shown = now
            self.show(note() if note else "")

    def show(self, words: str) -> None:
        """Show the count, and these words."""
        raise NotImplementedError


class Lines(Paced):
    """For a log: a line every ten seconds. For a notebook: one line that is rewritten."""

    def __init__(self, what: str, total: int, *, rewritten: bool = False) -> None:
        super().__init__()
        self.what, self.total, self.rewritten, self._begun = what, total, rewritten, time.monotonic()
        self.interval = INTERVAL if rewritten else LINES

    def show(self, words: str) -> None:
        passed = time.monotonic() - self._begun
        left = passed * (self.total - self.count) / max(1, self.count)
        said = [f"{self.what}: {self.count:,} of {self.total:,}", *filter(None, [words]), f"{_clock(left)} left"]
        line, end = ", ".join(said), "\n"
        if self.rewritten:
            line, end = f"\r{line:<99}", ""
        print(line, end=end, file=sys.stderr, flush=True)

    def close(self) -> None:
        """Take the line away again."""
        if self.rewritten:
            print(f"\r{'':<99}\r", end="", file=sys.stderr, flush=True)


class FileMeter(Paced):
    """A meter for a child process: count and words stand in a file, where `watched` looks at them."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.path, self._shown = path, 0.0

    def show(self, words: str) -> None:
        with suppress(OSError):  # a disk that is full must not stop the work
            self.path.write_text(f"{self.count} {words}")


class _Bar(Paced):
    """A bar of rich."""

    def __init__(self, what: str, total: int) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn

        super().__init__()
        note = TextColumn("{task.fields[note]}", markup=False)
        columns = (TextColumn(what), BarColumn(24), TaskProgressColumn(), TimeRemainingColumn(), note)
        self.bar = Progress(*columns, console=Console(stderr=True), transient=True)
        self.task = self.bar.add_task(what, total=total, note="")

    def __call__(self, steps: int = 1, note: Note | None = None) -> None:
        self.bar.advance(self.task, steps)
        super().__call__(steps, note)

    def show(self, words: str) -> None:
        self.bar.update(self.task, note=words)


@contextmanager
def progress_bar(what: str, total: int, show: bool | Advance) -> Iterator[Meter]:
    """A function to call after each of `total` steps; `show` may itself be that function, of a larger bar."""
    if callable(show):
        yield show if isinstance(show, Meter) else Meter(show)
    elif not show or sys.stderr is None:
        yield Meter()
    elif sys.stderr.isatty():
        bar = _Bar(what, total)
        with bar.bar:
            yield bar
    else:
        lines = Lines(what, total, rewritten="ipykernel" in sys.modules)
        try:
            yield lines
        finally:
            lines.close()


class Times(Meter):
    """A meter whose every step counts `weight` times for another one, where it says who is at work."""

    def __init__(self, weight: int, advance: Advance, who: str = "") -> None:
        self.weight, self.advance, self.who = weight, advance if isinstance(advance, Meter) else Meter(advance), who

    def __call__(self, steps: int = 1, note: Note | None = None) -> None:
        self.advance(steps * self.weight, note and (lambda: f"{self.who}: {note()}" if self.who else note()))


def recent(rewards: Array, gaps: Array | None) -> str:
    """The return of the last episodes and, where it is known, what their policies lose; each (k,) or (k, runs)."""
    if not len(rewards):
        return ""
    words = f"return {number(float(np.mean(rewards[-RECENT:])))}"
    if gaps is None:
        return words
    return f"{words}, regret {number(float(np.mean(gaps[-RECENT:])))} an episode"


def _clock(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes // 60}:{minutes % 60:02}:{rest:02}"


def _noted(path: Path) -> tuple[int, str]:
    """What a meter wrote; a file that is being written may look empty, and one of a process that died torn."""
    try:
        count, _, words = path.read_text().partition(" ")
        return int(count or 0), words
    except (OSError, ValueError):
        return 0, ""


@contextmanager
def watched(advance: Advance) -> Iterator[Path]:
    """A folder for `FileMeter`s; while it is open a thread brings what they count to `advance`."""
    with tempfile.TemporaryDirectory(prefix="linmdp-") as name:
        folder, stop, seen = Path(name), threading.Event(), dict[str, int]()
        meter = advance if isinstance(advance, Meter) else Meter(advance)

        def watch() -> None:
            while not stop.wait(INTERVAL):
                found = {path.name: _noted(path) for path in sorted(folder.iterdir())}
                news = {name: count for name, (count, _) in found.items() if count > seen.get(name, 0)}
                if news:
                    steps = sum(count - seen.get(name, 0) for name, count in news.items())
                    seen.update(news)
                    meter(steps, partial(_at_work, [found[name][1] for name in news]))

        thread = threading.Thread(target=watch, daemon=True)
        thread.start()
        try:
            yield folder
        finally:
            stop.set()
            thread.join()


def _at_work(notes: Sequence[str]) -> str:
    """What two of the processes say: more would not fit into a line."""
    return "; ".join(list(dict.fromkeys(filter(None, notes)))[:2])
