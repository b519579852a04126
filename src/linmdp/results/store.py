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
import sqlite3
import subprocess
import time
from collections.abc import Container, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import cache, lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from linmdp.errors import InvalidData, OutputError, check_int, check_number, described
from linmdp.io.files import output_folder
from linmdp.results.curves import POINTS, thinned
from linmdp.types import IntArray, RunResult

VERSION = 1
RECORD = 3000
"""Bytes of a run without its curves, about: parameters, machine, costs on the way, warnings."""

LARGEST_VALUE = 1 << 24
"""Bytes of one value in the file; far more than any that is written."""

KINDS = {name: column.kind for name, column in RunResult.columns().items() if column.kind is not None}
"""What the record of a run holds, and of which type."""

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


class StoredRun(NamedTuple):
    """A run in the store.

    Its curves hold the episodes `at`, counted from 0; `finished` is in seconds since 1970.
    """

    key: str
    result: RunResult
    at: IntArray
    machine: dict[str, Any]
    finished: float


def existing_store(folder: Path) -> Store:
    """The store in a folder, which must be there."""
    if not (folder / "runs.sqlite").is_file():
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
        empty = new and not store.keys()
        store.close()
        if empty:
            store.path.unlink(missing_ok=True)
            with suppress(OSError):  # something else is in it
                folder.rmdir()


class Store:
    """`runs.sqlite` in a folder; made if it is missing."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / "runs.sqlite"
        with self._errors("cannot be opened"):
            self._db = sqlite3.connect(self.path, isolation_level=None)
        try:
            with self._errors("cannot be opened"):
                self._open()
        except BaseException:
            self._db.close()
            raise

    @contextmanager
    def _errors(self, what: str) -> Iterator[None]:
        """Whatever SQLite raises, in one line."""
        try:
            yield
        except sqlite3.OperationalError as error:
            raise OutputError(f"The store '{self.path}' {what}: {error}.") from error
        except (sqlite3.Error, UnicodeDecodeError, OverflowError) as error:
            raise InvalidData(
                f"'{self.path}' is damaged or no store of linmdp: {error}. It is left as it is."
            ) from error

    def _open(self) -> None:
        """Nothing is written before it is known that the file is ours; nothing in it may run as SQL."""
        self._db.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, LARGEST_VALUE)
        self._db.execute("PRAGMA trusted_schema = OFF")
        if not self._db.execute("SELECT name FROM sqlite_master").fetchall():
            self._db.executescript(f"BEGIN; {SCHEMA} INSERT INTO meta VALUES ('version', '{VERSION}'); COMMIT;")
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
        ran_on, ends = json.dumps(where or machine()), [None] * len(runs)
        with self._errors("could not be written"):
            try:
                self._db.execute("BEGIN IMMEDIATE")
                for place, (key, result) in zip(places or ends, runs, strict=True):
                    self._db.execute(INSERT, (place, place, *_row(key, result, ran_on)))
                self._db.execute("COMMIT")
            except sqlite3.Error:
                with suppress(sqlite3.Error):  # what went wrong first is what counts
                    self._db.execute("ROLLBACK")
                raise

    def results(self, keys: Container[str] | None = None) -> Iterator[RunResult]:
        """Every stored run, or those of `keys`; curves are as stored: `rewards` are sums between stored episodes."""
        return (run.result for run in self.stored() if keys is None or run.key in keys)

    def stored(self) -> Iterator[StoredRun]:
        """Every stored run with what is stored beside it."""
        columns = "key, record, at, regret, rewards, machine, finished"
        with self._errors("cannot be read"):
            for row in self._db.execute(f"SELECT {columns} FROM runs ORDER BY rowid"):
                with self._reading(f"run {row[0]!r:.20}"):
                    stored = _stored(row)
                yield stored

    @contextmanager
    def _reading(self, what: str) -> Iterator[None]:
        """A part of the store that cannot be understood, in one line."""
        try:
            yield
        except (ValueError, TypeError, KeyError, OverflowError, RecursionError) as error:
            raise InvalidData(f"'{self.path}' is damaged at {what}: {described(error)}.") from error

    def machines(self) -> list[dict[str, Any]]:
        """The machines (and versions) that the stored runs ran on, each once, with the number of its runs."""
        with self._errors("cannot be read"), self._reading("a machine"):
            rows = self._db.execute("SELECT machine, count(*) FROM runs GROUP BY machine ORDER BY min(rowid)")
            return [_object(text) | {"runs": count} for text, count in rows]

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

    def close(self) -> None:
        """Close the file."""
        self._db.close()


def _stored(row: tuple[Any, ...]) -> StoredRun:
    """A row of the store, if its parts are what they must be."""
    key, record, at, regret, rewards, where, finished = row
    said = _object(record)
    if wrong := [name for name, value in said.items() if not isinstance(value, KINDS.get(name, ()))]:
        raise ValueError(f"its record must have known fields, each of its type, not {', '.join(wrong)}")
    for value in said.get("random_returns", ()):
        check_number("a run", "random_returns", value)
    episodes = check_int("a run", "episodes", said["episodes"], low=1, high=10**9)
    places, points = np.frombuffer(at, dtype=np.int32), thinned(episodes)
    curves = [np.frombuffer(c, dtype=np.float32).astype(np.float64) for c in (rewards, regret) if c is not None]
    if not (np.array_equal(places, points) and all(c.shape == points.shape and np.isfinite(c).all() for c in curves)):
        raise ValueError(f"its curves must be {len(points)} finite numbers each, in their places")
    each = curves[0].copy()
    each[1:] -= curves[0][:-1]
    result = RunResult(**said, regret=None if regret is None else curves[1], rewards=each)
    return StoredRun(key, result, places, dict(_machine(where)), finished)


def _object(text: str) -> dict[str, Any]:
    found = json.loads(text)
    if not isinstance(found, dict):
        raise ValueError("it must be a JSON object")
    return found


@lru_cache(maxsize=64)
def _machine(text: str) -> dict[str, Any]:
    """The same for thousands of runs."""
    return _object(text)


def row_bytes(episodes: int) -> int:
    """Bytes that a run of that many episodes takes in the file: three arrays of 4 bytes a point, and its record."""
    return 3 * 4 * min(episodes, POINTS) + RECORD


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


def _row(key: str, result: RunResult, ran_on: str) -> tuple[Any, ...]:
    at = thinned(result.episodes)
    record = {name: getattr(result, name) for name in KINDS}
    regret = None if result.regret is None else result.regret[at].astype(np.float32).tobytes()
    rewards = np.cumsum(result.rewards)[at].astype(np.float32).tobytes()
    return key, json.dumps(record), at.astype(np.int32).tobytes(), regret, rewards, ran_on, time.time()
