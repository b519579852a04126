"""All runs of a sweep, or of `run` and `compare`, in one SQLite file: a run is there whole or not at all.

One process writes (the coordinator). The order of the rows is that of the plan. Curves are float32: regret and rewards
of every episode up to `POINTS` episodes, of that many evenly spaced ones beyond (the first and the last among them),
both summed up to there, so that thinning loses no total.
"""

from __future__ import annotations

import hashlib
import json
import os
import platform
import shutil
import sqlite3
import subprocess
import tempfile
from collections.abc import Callable, Container, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from linmdp.errors import InvalidData, OutputError, StoreBusy, described
from linmdp.io.files import output_folder, own
from linmdp.results.rows import COLUMNS, DAMAGE, PlacedRow, Row, StoredRun, row_of, runs_in
from linmdp.types import RunResult

OnDamage = Callable[[str], None]
"""Hears of each part of a store that is damaged and left out, in one line."""

VERSION = 1
LARGEST_VALUE = 1 << 24
"""Bytes of one value in the file; far more than any that is written."""

PATIENCE = 60.0
"""Seconds to wait for another program that writes to the same store."""

BEGINNING = b"SQLite format 3\0"
"""Of every file of SQLite. It would take a shorter one for an empty one, and write over it."""

COUNT = "runs"
"""In `meta`: how many runs were stored. Stores of older versions, whose runs have no checksum, do not say it."""

SIGNED_ROW = "SELECT 1 FROM runs WHERE record LIKE '{\"checksum\"%' LIMIT 1"

SCHEMA = """
CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL) STRICT;
CREATE TABLE runs (
    key TEXT PRIMARY KEY, record TEXT NOT NULL, at BLOB NOT NULL, regret BLOB, rewards BLOB NOT NULL,
    machine TEXT NOT NULL, finished REAL NOT NULL
) STRICT;
"""
INSERT = """
INSERT OR IGNORE INTO runs (rowid, key, record, at, regret, rewards, machine, finished)
VALUES (CASE WHEN EXISTS (SELECT 1 FROM runs WHERE rowid = ?) THEN NULL ELSE ? END, ?, ?, ?, ?, ?, ?, ?)
"""


TOGETHER = 256
"""Rows that are read together."""

KIND = "CASE WHEN json_valid(record) THEN json_extract(record, '$.env', '$.episodes', '$.agent') ELSE record END"
"""Of every run its environment, K and agent, from its record alone: curves lie on other pages, which are not read."""


def existing_store(folder: Path) -> Store:
    """The store in a folder, which must be there."""
    path = folder / "runs.sqlite"
    if not path.is_file() or not path.stat().st_size:
        raise InvalidData(f"There is no store of a sweep, run or compare (runs.sqlite) in '{folder}'.")
    return Store(folder)


@contextmanager
def opened_store(folder: Path) -> Iterator[Store]:
    """The store in a folder, made if it is missing; a folder that was made for it and stays empty is removed again."""
    new = not os.path.exists(folder)  # a name that is too long does not exist, either
    store = Store(output_folder(folder))
    try:
        yield store
    finally:
        empty = new and not store.keys() and not store.noted()
        store.close()
        if empty:
            store.path.unlink(missing_ok=True)
            with suppress(OSError):  # something else is in it
                folder.rmdir()


class Store:
    """`runs.sqlite` in a folder; made if it is missing."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / "runs.sqlite"
        self._copy: tempfile.TemporaryDirectory[str] | None = None
        self._counted = False
        """Whether the number of runs was looked up; from then on it is added to."""
        with self._errors("cannot be opened"):
            self._db = self._connected()
        try:
            with self._errors("cannot be opened"):
                self._open()
        except BaseException:
            self._db.close()
            raise

    def _connected(self) -> sqlite3.Connection:
        """The file, or where its folder cannot be written to (SQLite would keep a log beside it) the file as it is."""
        path, log, *_ = (own(self.path.with_name(self.path.name + end)) for end in ("", "-wal", "-shm", "-journal"))
        if path.is_file() and path.stat().st_size:
            with path.open("rb") as file:
                if file.read(len(BEGINNING)) != BEGINNING:
                    raise InvalidData(f"'{path}' is no store of linmdp. It is left as it is.")
        if os.access(path.parent, os.W_OK) or not path.exists():
            return sqlite3.connect(path, isolation_level=None, timeout=PATIENCE)
        if log.is_file() and log.stat().st_size:  # the last runs are in the log alone, which goes with a file
            self._copy = tempfile.TemporaryDirectory(prefix="linmdp-store-")
            for part in (path, log):
                shutil.copy(part, self._copy.name)
            return sqlite3.connect(Path(self._copy.name) / path.name, isolation_level=None)
        uri = f"{path.resolve().as_uri()}?immutable=1"
        return sqlite3.connect(uri, uri=True, isolation_level=None)

    @contextmanager
    def _errors(self, what: str) -> Iterator[None]:
        """Whatever SQLite raises, in one line."""
        try:
            yield
        except sqlite3.OperationalError as error:
            if getattr(error, "sqlite_errorcode", None) == sqlite3.SQLITE_BUSY:
                wrote = f"another program has been writing to it for {PATIENCE:g} seconds"
                raise StoreBusy(f"The store '{self.path}' {what}: {wrote}. Try again when it is done.") from error
            raise OutputError(f"The store '{self.path}' {what}: {error}.") from error
        except (sqlite3.Error, UnicodeDecodeError, OverflowError) as error:
            raise InvalidData(
                f"'{self.path}' is damaged or no store of linmdp: {error}. It is left as it is."
            ) from error

    def _open(self) -> None:
        """Nothing is written before it is known that the file is a store; nothing in it may run as SQL."""
        self._db.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, LARGEST_VALUE)
        self._db.execute("PRAGMA trusted_schema = OFF")
        if self._db.execute("PRAGMA page_count").fetchone() == (0,):
            words = f"('version', '{VERSION}'), ('{COUNT}', '0')"
            self._db.executescript(f"BEGIN; {SCHEMA} INSERT INTO meta VALUES {words}; COMMIT;")
        there = {sql for (sql,) in self._db.execute("SELECT sql FROM sqlite_master WHERE sql IS NOT NULL")}
        if there != {statement.strip() for statement in SCHEMA.split(";") if statement.strip()}:
            raise InvalidData(f"'{self.path}' is no store of linmdp. It is left as it is.")
        (found,) = self._db.execute("SELECT value FROM meta WHERE key = 'version'").fetchone() or ("none",)
        if found != str(VERSION):
            raise InvalidData(
                f"The store '{self.path}' must be of version {VERSION}. Got {found:.40}. It is left as it is."
            )
        self._db.execute("PRAGMA journal_mode = WAL")
        # a power cut may take the last units, which are then run again, and never a part of one: waiting for the disk
        # in each transaction would keep the workers of a large cluster waiting, too
        self._db.execute("PRAGMA synchronous = NORMAL")

    @staticmethod
    def key(configuration: dict[str, Any]) -> str:
        """The hash of a run's configuration."""
        return hashlib.sha256(json.dumps([VERSION, configuration], sort_keys=True).encode()).hexdigest()

    def keys(self) -> set[str]:
        """What is stored."""
        with self._errors("cannot be read"):
            return {key for (key,) in self._db.execute("SELECT key FROM runs")}

    def add(
        self,
        runs: Sequence[tuple[str, RunResult]],
        where: dict[str, Any] | None = None,
        places: Sequence[int] | None = None,
    ) -> None:
        """Store finished runs in one transaction; a run that is there already stays as it is.

        `where` is the `machine()` that they ran on, if it is not this one. `places` are theirs in the plan, from 1 on:
        runs are read back in that order, however they finished. A place that is taken means a place at the end.
        """
        ran_on, fresh, refused = json.dumps(where or machine()), list[tuple[int | None, Row]](), list[InvalidData]()
        numbers: Sequence[int | None] = places or [None] * len(runs)
        for place, (key, result) in zip(numbers, runs, strict=True):
            try:
                fresh.append((place, row_of(key, result, ran_on)))
            except InvalidData as error:  # its neighbours are stored all the same
                refused.append(error)
        self._insert(fresh)
        if refused:
            raise refused[0]

    def take(self, other: Store, damaged: OnDamage) -> None:
        """Store the runs of another store as they are, each at its place where that is free; damaged ones are told."""
        for rows in other._rows(COLUMNS, other._places(damaged), damaged):
            whole = {run.key for run in other._decoded(rows, costs=True, damaged=damaged)}
            self._insert([(row[-1], row[:-1]) for row in rows if row[0] in whole])

    def _insert(self, fresh: Sequence[tuple[int | None, Row]]) -> None:
        with self._errors("could not be written"):
            try:
                self._db.execute("BEGIN IMMEDIATE")
                new = sum(self._db.execute(INSERT, (place, place, *row)).rowcount for place, row in fresh)
                self._count(new)
                self._db.execute("COMMIT")
            except sqlite3.Error:
                with suppress(sqlite3.Error):  # what went wrong first is what counts
                    self._db.execute("ROLLBACK")
                raise

    def _count(self, new: int) -> None:
        """Note how many runs there are, so that one that is lost is missed; the first time they are counted."""
        there = "SELECT count(*) FROM runs" if not self._counted else f"SELECT value + {new} FROM meta WHERE key = ?"
        (total,) = self._db.execute(there, (COUNT,) if self._counted else ()).fetchone() or (new,)
        self._db.execute("INSERT OR REPLACE INTO meta VALUES (?, ?)", (COUNT, str(total)))
        self._counted = True

    def results(self, keys: Container[str] | None = None) -> Iterator[RunResult]:
        """Every stored run, or those of `keys`; curves are as stored: `rewards` are sums between stored episodes."""
        return (run.result for run in self.stored() if keys is None or run.key in keys)

    def stored(self, *, costs: bool = True, damaged: OnDamage | None = None) -> Iterator[StoredRun]:
        """Every stored run with what is stored beside it; without `costs` on the way it is read in half the time.

        A damaged run is told to `damaged` and left out, or raises where nobody would hear of it.
        """
        for rows in self._rows(COLUMNS, self._places(damaged), damaged):
            yield from self._decoded(rows, costs=costs, damaged=damaged)

    def settings(self, damaged: OnDamage | None = None) -> Iterator[list[RunResult]]:
        """The runs of one environment, K and agent after the other, as they first appear, each in order of its seeds.

        Only those of one setting are in memory, without their costs on the way.
        """
        texts, kinds = dict[str, list[int]](), dict[tuple[Any, ...], list[int]]()
        for rows in self._rows(f"rowid, {KIND}", self._places(damaged), damaged):
            for place, text in rows:
                texts.setdefault(text, []).append(place)
        for text, places in texts.items():
            try:
                kinds.setdefault(_kind(json.loads(text)), []).extend(places)
            except DAMAGE:
                kinds.setdefault((text,), []).extend(places)  # what is wrong with them is found where they are read
        for places in kinds.values():
            if found := sorted(self.at(places, damaged), key=lambda r: r.seed):
                yield found

    def at(self, places: Sequence[int], damaged: OnDamage | None = None) -> Iterator[RunResult]:
        """The runs at these places, in their order, without their costs on the way."""
        for rows in self._rows(COLUMNS, places, damaged):
            yield from (run.result for run in self._decoded(rows, costs=False, damaged=damaged))

    def _places(self, damaged: OnDamage | None) -> list[int]:
        """Where the runs are, in order. That some are gone is told to `damaged`."""
        with self._errors("cannot be read"):
            places = sorted({place for (place,) in self._db.execute("SELECT rowid FROM runs")})
            (said,) = self._db.execute("SELECT value FROM meta WHERE key = ?", (COUNT,)).fetchone() or (None,)
            older = said is None and bool(places) and not self._db.execute(SIGNED_ROW).fetchone()
        if damaged and said != str(len(places)) and not older:
            damaged(f"'{self.path}' must hold {said or 'a known number of':.20} runs. It holds {len(places)}")
        return places

    def _rows(self, columns: str, places: Sequence[int], damaged: OnDamage | None) -> Iterator[list[Any]]:
        """These columns of the runs at these places, a few at a time, in their order."""
        for i in range(0, len(places), TOGETHER):
            yield [row for place in places[i : i + TOGETHER] if (row := self._row(place, damaged, columns))]

    def _row(self, place: int, damaged: OnDamage | None, columns: str) -> Any:
        """One of them; None where SQLite cannot read it, and `damaged` has been told."""
        try:
            with self._errors("cannot be read"):
                if row := self._db.execute(f"SELECT {columns} FROM runs WHERE rowid = ?", (place,)).fetchone():
                    return row
                raise sqlite3.DatabaseError("it is not where it must be")
        except (InvalidData, OutputError) as error:
            if not damaged:
                raise
            damaged(f"'{self.path}' is damaged at run {place}: {error.__cause__}; it is left out")

    def _decoded(self, rows: Sequence[PlacedRow], *, costs: bool, damaged: OnDamage | None) -> Iterator[StoredRun]:
        """The runs in these rows, together or, where one is damaged, one by one."""
        try:
            yield from runs_in(rows, costs=costs)
        except DAMAGE:
            for row in rows:
                try:
                    with self._reading(_named(row)):
                        (found,) = runs_in([row], costs=costs)
                except InvalidData as error:
                    if not damaged:
                        raise
                    damaged(str(error).rstrip(".") + "; it is left out")
                    continue
                yield found

    @contextmanager
    def _reading(self, what: str) -> Iterator[None]:
        """A part of the store that cannot be understood, in one line."""
        try:
            yield
        except DAMAGE as error:
            raise InvalidData(f"'{self.path}' is damaged at {what}: {described(error)}.") from error

    def note(self, key: str, value: str) -> None:
        """Remember a line about the store, such as the command that filled it; a line that is there stays once."""
        lines = self.notes(key)
        if value not in lines:
            row = (f"note.{key}", json.dumps([*lines, value]))
            with self._errors("could not be written"):
                self._db.execute("INSERT OR REPLACE INTO meta VALUES (?, ?)", row)

    def notes(self, key: str) -> list[str]:
        """The lines remembered under `key`."""
        with self._errors("cannot be read"), self._reading("its notes"):
            found = self._db.execute("SELECT value FROM meta WHERE key = ?", (f"note.{key}",)).fetchone()
            return [str(line) for line in json.loads(found[0])] if found else []

    def noted(self) -> bool:
        """Whether a line is remembered, but for the command, which is there before anything has run."""
        others = "SELECT 1 FROM meta WHERE key LIKE 'note.%' AND key != 'note.command'"
        with self._errors("cannot be read"), self._reading("its notes"):
            return self._db.execute(others).fetchone() is not None

    def close(self) -> None:
        """Close the file."""
        self._db.close()
        if self._copy:
            self._copy.cleanup()


def _named(row: PlacedRow) -> str:
    """Which run that is, as far as it can be read."""
    key = str(row[0])[:20]
    try:
        said = json.loads(row[1])
        return f"run {key} ({said['agent']:.80} in {said['env']:.80}, seed {said['seed']})"
    except DAMAGE:
        return f"run {key}"


def _kind(said: Any) -> tuple[Any, ...]:
    """Environment, K and agent, of a record or as SQL found them."""
    return tuple(said[name] for name in ("env", "episodes", "agent")) if isinstance(said, dict) else tuple(said)


@cache
def machine() -> dict[str, Any]:
    """What a run ran on."""
    from linmdp import __version__

    return {
        "linmdp": __version__,
        "commit": _commit(),
        "python": platform.python_version(),
        "numpy": np.__version__,
        "platform": platform.platform(),
        "processor": _processor(),
        "cores": os.cpu_count(),
        "blas_threads": 1,
    }


def _commit() -> str | None:
    """The commit of the sources, if they lie in a Git checkout of their own; "+" marks uncommitted changes."""
    here = Path(__file__).parent

    def git(*arguments: str) -> str:
        command = ["git", "-C", str(here), *arguments]
        return subprocess.run(command, capture_output=True, text=True, check=True, timeout=10).stdout.strip()

    try:
        if Path(git("rev-parse", "--show-toplevel")) not in here.parents or git("ls-files", "store.py") == "":
            return None
        return git("rev-parse", "HEAD") + "+" * bool(git("status", "--porcelain", "--untracked-files=no"))
    except (OSError, subprocess.SubprocessError):
        return None


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        return next(line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    except (OSError, StopIteration):
        return platform.processor() or platform.machine()
