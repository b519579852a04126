"""A run as a row of the store, and a row as a run: whole, finite and under a checksum, or not at all.

Whoever reads a row may be reading what someone else wrote. What is here says what a row must be; all else trusts it.
"""

from __future__ import annotations

import hashlib
import json
import re
import time
from collections.abc import Sequence
from functools import lru_cache
from itertools import groupby
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from linmdp.errors import InvalidData, check_int, check_number
from linmdp.results.curves import POINTS, is_long, thinned
from linmdp.types import Array, IntArray, RunResult

RECORD = 3000
"""Bytes of a run without its curves, about: parameters, machine, costs on the way, warnings."""

COLUMNS = "key, record, at, regret, rewards, machine, finished, rowid"
Row: TypeAlias = tuple[str, str, bytes, bytes | None, bytes, str, float]
PlacedRow: TypeAlias = tuple[str, str, bytes, bytes | None, bytes, str, float, int]
"""A row as it is read, with its place."""

KINDS = {name: column.kind for name, column in RunResult.columns().items() if column.kind is not None}
"""What the record of a run holds, and of which type."""

DAMAGE = (ValueError, TypeError, KeyError, OverflowError, RecursionError)
"""What is raised where a part of the store is not what it must be."""

COSTS = re.compile(r', "costs": [][0-9eE+., -]*}\Z')
"""The costs on the way at the end of a record, which are half of it and in no table."""

SIGNED = re.compile(r'\{"checksum": "([0-9a-f]{64})", ')
"""How a record begins, but for those of older versions, which have no checksum."""

LARGEST = 2**63
"""Whole numbers are below this in size: what comes after them counts in 64 bits."""

LAST_DAY = 253402300800.0
"""Seconds from 1970 to the year 10000, after which there is no date."""

DEEP = 8
"""Lists and objects within one another, at most."""


class StoredRun(NamedTuple):
    """A run in the store.

    Its curves hold the episodes `at`, counted from 0; `finished` is in seconds since 1970, `place` a row of the store.
    """

    key: str
    result: RunResult
    at: IntArray
    machine: dict[str, Any]
    finished: float
    place: int


def row_of(key: str, result: RunResult, ran_on: str) -> Row:
    """The run as a row; one with a number that is not finite is refused, since nobody could read it again."""
    at = thinned(result.episodes)
    if is_long(result.episodes):
        at = np.arange(len(at))  # such a run has no other points
    regret = None if result.regret is None else _single(result, "regret", result.regret[at])
    rewards, points = _single(result, "rewards", np.cumsum(result.rewards)[at]), _points(result.episodes)[1]
    record = {name: getattr(result, name) for name in KINDS}
    try:
        check_record(record)
    except DAMAGE as error:
        raise InvalidData(f"{_who(result)} cannot be stored: {error}") from error
    row = (key, json.dumps(record), points, regret, rewards, ran_on, time.time())
    return key, f'{{"checksum": "{checksum(row)}", {row[1][1:]}', *row[2:]


def _single(result: RunResult, name: str, curve: Array) -> bytes:
    """A curve in single precision."""
    with np.errstate(over="ignore"):
        found = curve.astype(np.float32)
    if not np.isfinite(found).all():
        got = float(curve[~np.isfinite(found)][0])
        rule = "sums that are finite in single precision, below 3.4e38 in size, to be stored"
        raise InvalidData(f"The {name} of {_who(result)} must have {rule}. Got {got:g}.")
    return found.tobytes()


def _who(result: RunResult) -> str:
    return f"{result.agent} in {result.env}, seed {result.seed},"


def checksum(row: Row) -> str:
    """SHA-256 over all parts of a row, its record without a checksum of its own."""
    key, record, at, regret, rewards, machine, finished = row
    lengths = [len(at), None if regret is None else len(regret), len(rewards)]
    whole = hashlib.sha256(json.dumps([key, record, machine, finished, lengths]).encode())
    for part in (at, regret or b"", rewards):
        whole.update(part)
    return whole.hexdigest()


def runs_in(rows: Sequence[PlacedRow], *, costs: bool) -> list[StoredRun]:
    """The runs in these rows, if their parts are what they must be; curves of the same length are read together."""
    said, found = [_record(row, costs=costs) for row in rows], list[StoredRun]()
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
            check_number("a run", "finished", row[6], low=0, high=LAST_DAY - 1)
            result = RunResult(**record, regret=lost, rewards=rewards)
            found.append(StoredRun(row[0], result, points, dict(_machine(row[5])), *row[6:]))
    return found


def _record(row: PlacedRow, *, costs: bool) -> dict[str, Any]:
    """The record of a run, if it is as it was written and its fields are what they must be."""
    text = row[1]
    if signed := SIGNED.match(text):
        text = "{" + text[signed.end() :]
        if signed[1] != checksum((row[0], text, *row[2:7])):
            raise ValueError("its checksum is not that of its contents")
    return check_record(as_object(text if costs else COSTS.sub("}", text)))


def check_record(said: dict[str, Any]) -> dict[str, Any]:
    """A record, if its fields are what the rest of the program relies on."""
    if wrong := _wrong(tuple(said), tuple(map(type, said.values()))):
        raise ValueError(f"its record must have known fields, each of its type, not {', '.join(wrong)}")
    for name, value in said.items():
        if KINDS[name] in (int, (int, type(None))) and value is not None:
            check_int("a run", name, value, low=int(name in ("episodes", "eval_every")))
        elif KINDS[name] is not dict and name != "tied" and isinstance(value, float):
            check_number("a run", name, value)
        check_value(name, value)
    for name in ("random_returns", "certificates", "certified_interval"):
        for value in said.get(name) or ():
            check_number("a run", name, value)
    if not all(isinstance(words, str) for words in said.get("warnings", ())):
        raise ValueError("warnings must be text")
    if not all(isinstance(cost, list) and len(cost) == 4 for cost in said.get("costs", ())):
        raise ValueError("costs must be four numbers each")
    check_int("a run", "episodes", said["episodes"], low=1, high=10**9)
    return said


def check_value(name: str, value: Any, deep: int = DEEP) -> None:
    """Whether a value from a file can be counted with, drawn and printed."""
    if isinstance(value, str):
        value.encode()  # half of a pair of UTF-16 is no text
    elif isinstance(value, int):
        if not -LARGEST <= value < LARGEST:
            raise ValueError(f"a whole number in {name} is over 64 bits")
    elif isinstance(value, dict | list) and value:
        if not deep:
            raise ValueError(f"{name} must have at most {DEEP} levels")
        for part in (*value, *value.values()) if isinstance(value, dict) else value:
            check_value(name, part, deep - 1)


@lru_cache(maxsize=256)
def _wrong(names: tuple[str, ...], types: tuple[type, ...]) -> list[str]:
    """The fields of a record that are not of their type; thousands of runs have the same ones."""
    return [name for name, kind in zip(names, types, strict=True) if not issubclass(kind, KINDS.get(name, ()))]


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


def as_object(text: str) -> dict[str, Any]:
    """The JSON object that a text is."""
    found = json.loads(text)
    if not isinstance(found, dict):
        raise ValueError("it must be a JSON object")
    return found


@lru_cache(maxsize=64)
def _machine(text: str) -> dict[str, Any]:
    """The same for thousands of runs."""
    found = as_object(text)
    check_value("machine", found)
    if wrong := [name for name, value in found.items() if isinstance(value, dict | list)]:
        raise ValueError(f"its machine must have one value for each of {', '.join(wrong)}")
    return found


def row_bytes(episodes: int) -> int:
    """Bytes that a run of that many episodes takes in the file: three arrays of 4 bytes a point, and its record."""
    return 3 * 4 * min(episodes, POINTS) + RECORD
