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
import re
import sqlite3
import subprocess
import time
from collections.abc import Container, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import cache, lru_cache
from itertools import groupby
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from linmdp.errors import InvalidData, OutputError, check_int, check_number, described
from linmdp.io.files import output_folder
from linmdp.results.curves import POINTS, is_long, thinned
from linmdp.types import Array, IntArray, RunResult

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


COLUMNS = "key, record, at, regret, rewards, machine, finished"
Row: TypeAlias = tuple[str, str, bytes, bytes | None, bytes, str, float]
TOGETHER = 256
"""Rows that are read together."""

DAMAGE = (ValueError, TypeError, KeyError, OverflowError, RecursionError)
"""What is raised where a part of the store is not what it must be."""

KINDS_OF_RUNS = """
SELECT rowid, CASE WHEN json_valid(record) THEN json_extract(record, '$.env', '$.episodes', '$.agent') ELSE record END
FROM runs ORDER BY rowid
"""
"""Of every run its environment, K and agent, from its record alone: curves lie on other pages, which are not read."""

COSTS = re.compile(r', "costs": [][0-9eE+., -]*}\Z')
"""The costs on the way at the end of a record, which are half of it and in no table."""


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

    def stored(self, *, costs: bool = True) -> Iterator[StoredRun]:
        """Every stored run with what is stored beside it; without `costs` on the way it is read in half the time."""
        with self._errors("cannot be read"):
            cursor = self._db.execute(f"SELECT {COLUMNS} FROM runs ORDER BY rowid")
            while rows := cursor.fetchmany(TOGETHER):
                yield from self._decoded(rows, costs=costs)

    def settings(self) -> Iterator[list[RunResult]]:
        """The runs of one environment, K and agent after the other, as they first appear, each in order of its seeds.

        Only those of one setting are in memory, without their costs on the way.
        """
        texts, kinds = dict[str, list[int]](), dict[tuple[Any, ...], list[int]]()
        one = f"SELECT {COLUMNS} FROM runs WHERE rowid = ?"
        with self._errors("cannot be read"):
            for place, text in self._db.execute(KINDS_OF_RUNS):
                texts.setdefault(text, []).append(place)
            for text, places in texts.items():
                with self._reading(f"run {places[0]}"):
                    kinds.setdefault(_kind(json.loads(text)), []).extend(places)
            for places in kinds.values():
                rows = [self._db.execute(one, (place,)).fetchone() for place in places]
                yield sorted((run.result for run in self._decoded(rows, costs=False)), key=lambda r: r.seed)

    def _decoded(self, rows: Sequence[Row], *, costs: bool) -> Iterator[StoredRun]:
        """The runs in these rows, together or, where one is damaged, up to that one, which is named."""
        try:
            yield from _runs(rows, costs=costs)
        except DAMAGE:
            for row in rows:
                with self._reading(f"run {row[0]!r:.20}"):
                    (found,) = _runs([row], costs=costs)
                yield found

    @contextmanager
    def _reading(self, what: str) -> Iterator[None]:
        """A part of the store that cannot be understood, in one line."""
        try:
            yield
        except DAMAGE as error:
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

    def noted(self) -> bool:
        """Whether a line is remembered, but for the command, which is there before anything has run."""
        others = "SELECT 1 FROM meta WHERE key LIKE 'note.%' AND key != 'note.command'"
        with self._errors("cannot be read"), self._reading("its notes"):
            return self._db.execute(others).fetchone() is not None

    def close(self) -> None:
        """Close the file."""
        self._db.close()


def _record(text: str, *, costs: bool) -> dict[str, Any]:
    """The record of a run, if its fields are what they must be."""
    said = _object(text if costs else COSTS.sub("}", text))
    if wrong := _wrong(tuple(said), tuple(map(type, said.values()))):
        raise ValueError(f"its record must have known fields, each of its type, not {', '.join(wrong)}")
    for value in said.get("random_returns", ()):
        check_number("a run", "random_returns", value)
    check_int("a run", "episodes", said["episodes"], low=1, high=10**9)
    return said


@lru_cache(maxsize=256)
def _wrong(names: tuple[str, ...], types: tuple[type, ...]) -> list[str]:
    """The fields of a record that are not of their type; thousands of runs have the same ones."""
    return [name for name, kind in zip(names, types, strict=True) if not issubclass(kind, KINDS.get(name, ()))]


def _kind(said: Any) -> tuple[Any, ...]:
    """Environment, K and agent, of a record or as SQL found them."""
    return tuple(said[name] for name in ("env", "episodes", "agent")) if isinstance(said, dict) else tuple(said)


def _runs(rows: Sequence[Row], *, costs: bool) -> list[StoredRun]:
    """The runs in these rows, if their parts are what they must be; curves of the same length are read together."""
    said, found = [_record(row[1], costs=costs) for row in rows], list[StoredRun]()
    for (K, unknown), group in groupby(
        zip(rows, said, strict=True), lambda each: (each[1]["episodes"], each[0][3] is None)
    ):
        some = list(group)
        points, where = _points(K)
        if any(row[2] != where for row, _ in some):
            raise ValueError(f"its curves must have {len(points)} points, in their places")
        sums = _numbers([row[4] for row, _ in some], len(points))
        each = sums.copy()
        each[:, 1:] -= sums[:, :-1]
        regret = [None] * len(some) if unknown else list(_numbers([row[3] or b"" for row, _ in some], len(points)))
        for (row, record), lost, rewards in zip(some, regret, each, strict=True):
            result = RunResult(**record, regret=lost, rewards=rewards)
            found.append(StoredRun(row[0], result, points, dict(_machine(row[5])), row[6]))
    return found


def _numbers(blobs: Sequence[bytes], points: int) -> Array:
    if all(len(blob) == 4 * points for blob in blobs):
        found = np.frombuffer(b"".join(blobs), dtype=np.float32).astype(np.float64).reshape(-1, points)
        if np.isfinite(found).all():
            return found
    raise ValueError(f"its curves must be {points} finite numbers each")


@lru_cache(maxsize=256)
def _points(episodes: int) -> tuple[IntArray, bytes]:
    """The episodes of stored points, and as they stand in the file."""
    points = thinned(episodes).astype(np.int32)
    points.flags.writeable = False
    return points, points.tobytes()


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
    if is_long(result.episodes):
        at = np.arange(len(at))  # such a run has no other points
    record = {name: getattr(result, name) for name in KINDS}
    regret = None if result.regret is None else result.regret[at].astype(np.float32).tobytes()
    rewards = np.cumsum(result.rewards)[at].astype(np.float32).tobytes()
    return key, json.dumps(record), _points(result.episodes)[1], regret, rewards, ran_on, time.time()
