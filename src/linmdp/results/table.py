"""A store as a table, for other programs: CSV or Parquet, one row per run or one row per point of its curves."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from linmdp.errors import needed
from linmdp.io.files import atomic_file
from linmdp.results.stats import regret_area
from linmdp.results.store import Damaged, Store
from linmdp.types import IntArray, RunResult

Row = dict[str, Any]
Columns = dict[str, type]
"""Names and types: bool, int, float or str."""

BESIDE = ("key", "commit", "finished")
"""What a table tells of a run beside its result."""
CURVES: Columns = {
    "key": str,
    "env": str,
    "agent": str,
    "seed": int,
    "episodes": int,
    "episode": int,
    "regret": float,
    "reward": float,
}
FORMULA = ("=", "+", "-", "@", "\t", "\r")
"""How a cell begins that a spreadsheet takes for a formula."""

GROUP = 100_000
"""Rows of a Parquet file that are written together."""


def run_rows(store: Store, damaged: Damaged | None = None) -> Iterator[Row]:
    """One row per run, and where it is from."""
    for key, r, at, machine, finished, _ in store.stored(damaged=damaged):
        when = datetime.fromtimestamp(finished, UTC).isoformat()
        yield run_row(r, at) | dict(zip(BESIDE, (key, machine.get("commit"), when), strict=True))


def run_row(r: RunResult, at: IntArray) -> Row:
    """A run, whose curves hold the episodes `at`; each parameter of its agent is a column, as `param.beta`."""
    row, area = dict[str, Any](), None if r.regret is None else regret_area(r.regret, at)
    for name in (name for column in RunResult.columns().values() for name in column.table):
        value = area if name == "regret_area" else getattr(r, name)
        row |= {f"{_prefix(name)}{k}": v for k, v in value.items()} if isinstance(value, dict) else {name: value}
    return row


def _prefix(name: str) -> str:
    """What stands before the keys of a dict."""
    return f"{'param' if name == 'params' else name}."


def run_columns(rows: Sequence[Row]) -> Columns:
    """The columns of these rows, in the order of `RunResult`; what is a dict there has one for each of its keys."""
    there, names = list(dict.fromkeys(name for row in rows for name in row)), list[str]()
    for column in RunResult.columns().values():
        if column.kind is dict:
            names += [name for name in there if name.startswith(tuple(map(_prefix, column.table)))]
        else:
            wanted = not column.optional or any(row.get(name) is not None for row in rows for name in column.table)
            names += column.table if wanted else ()
    return {name: _type_of([row.get(name) for row in rows]) for name in (*names, *BESIDE)}


def curve_rows(store: Store, damaged: Damaged | None = None) -> Iterator[Row]:
    """One row per stored point of every run."""
    for key, r, at, *_ in store.stored(damaged=damaged):
        yield from ({"key": key} | point for point in points(r, at))


def points(r: RunResult, at: IntArray) -> Iterator[Row]:
    """One row per point of the curves: `regret` and `reward` are sums up to that episode, counted from 0."""
    regret = [None] * len(at) if r.regret is None else r.regret.tolist()
    same = {"env": r.env, "agent": r.agent, "seed": r.seed, "episodes": r.episodes}
    for episode, lost, earned in zip(at.tolist(), regret, np.cumsum(r.rewards).tolist(), strict=True):
        yield same | {"episode": episode, "regret": lost, "reward": earned}


def write_csv(path: Path, columns: Columns, rows: Iterable[Row]) -> None:
    """Numbers in full precision; nothing where there is none; no text is a formula of a spreadsheet."""
    with atomic_file(path) as file:
        text = io.TextIOWrapper(file, encoding="utf-8", newline="", write_through=True)
        writer = csv.writer(text)
        writer.writerow(map(_cell, columns))
        writer.writerows([_cell(row.get(name)) for name in columns] for row in rows)
        text.detach()


def write_parquet(path: Path, columns: Columns, rows: Iterable[Row]) -> None:
    """Through pyarrow, a group of rows at a time."""
    words = "Parquet needs pyarrow: install linmdp with its extra 'parquet'."
    arrow, parquet = (needed(module, words) for module in ("pyarrow", "pyarrow.parquet"))
    types = {bool: arrow.bool_(), int: arrow.int64(), float: arrow.float64(), str: arrow.string()}
    schema, rows = arrow.schema([(name, types[kind]) for name, kind in columns.items()]), iter(rows)
    with atomic_file(path) as file, parquet.ParquetWriter(file, schema) as writer:
        while group := list(islice(rows, GROUP)):
            values = {
                name: [_text(v) if kind is str and v is not None else v for v in (row.get(name) for row in group)]
                for name, kind in columns.items()
            }
            writer.write_table(arrow.table(values, schema=schema))


def _type_of(values: Iterable[Any]) -> type:
    """The type that holds all values; text where they are of several kinds, or too large."""
    there = [value for value in values if value is not None]
    kinds = {type(value) for value in there}
    if kinds == {int, float}:
        return float
    small = kinds == {int} and all(-(2**63) <= value < 2**63 for value in there)
    return kinds.pop() if kinds in ({bool}, {float}) or small else str


def _cell(value: Any) -> str:
    """The text of a value; one that a spreadsheet would compute has an apostrophe before it, unless it is a number."""
    text = _text(value)
    if not isinstance(value, str) or not text.startswith(FORMULA):
        return text
    try:
        return text if math.isfinite(float(text)) else f"'{text}"
    except ValueError:
        return f"'{text}"


def _text(value: Any) -> str:
    if value is None or isinstance(value, str):
        return value or ""
    return repr(value).lower() if isinstance(value, bool) else repr(value)
