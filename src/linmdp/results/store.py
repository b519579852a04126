"""All runs of a sweep in one SQLite file: a run is there whole or not at all.

One process writes (the coordinator). Curves are float32: regret and rewards of every episode up to `POINTS` episodes,
of that many evenly spaced ones beyond (the first and the last among them), both summed up to there, so that thinning
loses no total.
"""

from __future__ import annotations

import hashlib
import json
import os
import platform
import sqlite3
import time
from collections.abc import Iterator, Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np

from linmdp.errors import InvalidData, OutputError
from linmdp.types import Array, RunResult

VERSION = 1
POINTS = 2000
CURVES = ("regret", "rewards")

SCHEMA = """
CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL) STRICT;
CREATE TABLE runs (
    key TEXT PRIMARY KEY, record TEXT NOT NULL, at BLOB NOT NULL, regret BLOB, rewards BLOB NOT NULL,
    machine TEXT NOT NULL, finished REAL NOT NULL
) STRICT;
"""


class Store:
    """The store of a sweep, `runs.sqlite` in a folder; made if it is missing."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / "runs.sqlite"
        try:
            self._db = sqlite3.connect(self.path, isolation_level=None)
            self._db.execute("PRAGMA journal_mode = WAL")
            self._db.execute("PRAGMA synchronous = FULL")
            self._open()
        except sqlite3.OperationalError as error:
            raise OutputError(f"The store '{self.path}' can not be opened: {error}.") from error
        except sqlite3.DatabaseError as error:
            raise InvalidData(
                f"'{self.path}' is damaged or no store of linmdp: {error}. It is left as it is."
            ) from error

    def _open(self) -> None:
        if not self._db.execute("SELECT name FROM sqlite_master").fetchall():
            self._db.executescript(f"BEGIN; {SCHEMA} INSERT INTO meta VALUES ('version', '{VERSION}'); COMMIT;")
        tables = {name for (name,) in self._db.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
        if not {"meta", "runs"} <= tables:
            raise InvalidData(f"'{self.path}' is no store of linmdp. It is left as it is.")
        (found,) = self._db.execute("SELECT value FROM meta WHERE key = 'version'").fetchone() or ("none",)
        if found != str(VERSION):
            raise InvalidData(
                f"The store '{self.path}' must be of version {VERSION}. Got {found}. It is left as it is."
            )

    @staticmethod
    def key(configuration: dict[str, Any]) -> str:
        """The hash of a run's configuration."""
        return hashlib.sha256(json.dumps([VERSION, configuration], sort_keys=True).encode()).hexdigest()

    def keys(self) -> set[str]:
        """What is stored."""
        return {key for (key,) in self._db.execute("SELECT key FROM runs")}

    def add(self, runs: Sequence[tuple[str, RunResult]]) -> None:
        """Store finished runs in one transaction; a run that is there already stays as it is."""
        try:
            self._db.execute("BEGIN IMMEDIATE")
            self._db.executemany(
                "INSERT OR IGNORE INTO runs VALUES (?, ?, ?, ?, ?, ?, ?)", map(_row, *zip(*runs, strict=True))
            )
            self._db.execute("COMMIT")
        except sqlite3.OperationalError as error:
            if self._db.in_transaction:
                self._db.execute("ROLLBACK")
            raise OutputError(f"The store '{self.path}' could not be written: {error}.") from error

    def results(self) -> Iterator[RunResult]:
        """Every stored run; curves are as stored, so `rewards` are sums between the stored episodes."""
        for record, regret, rewards in self._db.execute("SELECT record, regret, rewards FROM runs ORDER BY rowid"):
            totals = np.frombuffer(rewards, dtype=np.float32).astype(np.float64)
            yield RunResult(
                **json.loads(record),
                regret=None if regret is None else np.frombuffer(regret, dtype=np.float32).astype(np.float64),
                rewards=np.diff(totals, prepend=0.0),
            )

    def close(self) -> None:
        """Close the file."""
        self._db.close()


def thinned(episodes: int) -> Array:
    """The episodes whose curve points are kept."""
    return np.unique(np.linspace(0, episodes - 1, min(episodes, POINTS)).round().astype(np.int64))


def machine() -> dict[str, Any]:
    """What a run ran on."""
    from linmdp import __version__

    return {
        "linmdp": __version__,
        "python": platform.python_version(),
        "numpy": np.__version__,
        "platform": platform.platform(),
        "processor": platform.processor() or platform.machine(),
        "cores": os.cpu_count(),
        "blas_threads": 1,
    }


def _row(key: str, result: RunResult) -> tuple[Any, ...]:
    at = thinned(result.episodes)
    record = {f.name: getattr(result, f.name) for f in fields(result) if f.name not in CURVES}
    regret = None if result.regret is None else result.regret[at].astype(np.float32).tobytes()
    rewards = np.cumsum(result.rewards)[at].astype(np.float32).tobytes()
    return key, json.dumps(record), at.astype(np.int32).tobytes(), regret, rewards, json.dumps(machine()), time.time()
