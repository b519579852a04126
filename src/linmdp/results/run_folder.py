"""What a folder holds, as runs in memory, and as a table for other programs."""

from __future__ import annotations

import csv
import io
import json
import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from linmdp.errors import InvalidData, needed
from linmdp.io.files import atomic_file, own, write_atomic
from linmdp.results.curves import SHOWN, spaced, thinned, whole
from linmdp.results.stats import regret_area
from linmdp.results.store import OnDamage, Store, existing_store
from linmdp.types import IntArray, RunResult

LINES = "results.jsonl"
SHARED = ("env", "agent", "params", "warnings")
"""What many runs have in common, which is kept once."""


class Ran(NamedTuple):
    """What is kept of a run, so that many are in memory at once; `key` and `place` are its own in the store."""

    key: str
    place: int
    env: str
    agent: str
    params: dict[str, Any]
    seed: int
    episodes: int
    eval_every: int
    final_regret: float | None
    reward: float
    peak_bytes: int
    planning_bytes: int | None
    feature_bytes: int
    cpu_seconds: float
    warnings: list[str]


Reader = Callable[[Sequence[Ran]], list[RunResult]]
"""Reads runs again, with their curves at `curve_at`."""


class RunFolder(NamedTuple):
    """All runs of a folder, each once, and what is known of how they were made; `read` is for while it is open."""

    source: Path
    results: list[Ran]
    machines: list[dict[str, Any]]
    commands: list[str]
    read: Reader


def read_folder(folder: Path, damaged: OnDamage | None = None) -> RunFolder:
    """The runs in `folder`, which is closed again."""
    with opened_folder(folder, damaged) as found:
        return found


@contextmanager
def opened_folder(folder: Path, damaged: OnDamage | None = None) -> Iterator[RunFolder]:
    """The runs in `folder`, from its store, in the order in which they were planned.

    A damaged run is told to `damaged` and left out, or raises.
    """
    if not folder.is_dir():
        raise InvalidData(f"The folder '{folder}' must be one with results. There is no such folder.")
    if not (folder / "runs.sqlite").exists():
        raise InvalidData(
            f"The folder '{folder}' must hold runs.sqlite (of 'linmdp sweep', or of 'run' or 'compare' with --out). "
            f"It does not."
        )
    with closing(existing_store(folder)) as store:
        found = _from_store(store, damaged)
        if not found.results:
            raise InvalidData(f"'{found.source}' must hold at least one finished run. It is empty.")
        yield found


def agent_file(folder: Path, key: str) -> Path | None:
    """Where the agent of the run with that key is saved; None for a key that is none (a store is not to be trusted)."""
    return own(own(folder / "agents") / f"{key}.safetensors") if re.fullmatch("[0-9a-f]{64}", key) else None


def write_lines(
    path: Path, store: Store, fresh: Mapping[str, RunResult] | None = None, damaged: OnDamage | None = None
) -> None:
    """Every run of the store as one JSON object per line, as `--json` prints them.

    The `fresh` runs, by their keys, are written in full precision; all others have the precision and the points of the
    store.
    """
    runs = ((fresh or {}).get(run.key) or whole(run.result) for run in store.stored(damaged=damaged))
    write_atomic(path, b"".join(json.dumps(r.to_json()).encode() + b"\n" for r in runs))


def _from_store(store: Store, damaged: OnDamage | None) -> RunFolder:
    machines, same = dict[str, dict[str, Any]](), dict[str, Any]()

    def runs() -> Iterator[Ran]:
        for run in store.stored(costs=False, damaged=damaged):
            where = machines.setdefault(json.dumps(run.machine), run.machine | {"runs": 0})
            where["runs"] += 1
            r = ran(_drawn(run.result), run.key, run.place)
            yield r._replace(**{name: same.setdefault(repr(value := getattr(r, name)), value) for name in SHARED})

    return RunFolder(
        store.path,
        _without_repeats(runs()),
        list(machines.values()),
        store.notes("command"),
        lambda some: [_drawn(r) for r in store.at([r.place for r in some])],
    )


def ran(r: RunResult, key: str, place: int) -> Ran:
    """What is kept of a run."""
    return Ran(key, place, *(getattr(r, name) for name in Ran._fields[2:]))


def _drawn(r: RunResult) -> RunResult:
    """`r`, changed: its curves at `curve_at` alone, rewards summed up in between; names without control characters.

    The curves of a store have the points of `thinned`.
    """
    at = spaced(len(thinned(r.episodes)), SHOWN)
    if len(r.rewards) > len(at):
        r.rewards = np.diff(np.cumsum(r.rewards)[at], prepend=0.0)
    if r.regret is not None:
        r.regret = r.regret[at]
    r.env, r.agent = _printable(r.env), _printable(r.agent)
    return r


def _without_repeats(runs: Iterable[Ran]) -> list[Ran]:
    """A run that is there with several `eval_every` counts once, with its regret in most episodes."""
    kept: dict[tuple[Any, ...], Ran] = {}
    for r in runs:
        run = r.env, r.agent, r.episodes, r.seed
        if run not in kept or r.eval_every <= kept[run].eval_every:
            kept[run] = r
    return list(kept.values())


def _printable(text: str) -> str:
    return text if text.isprintable() else "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in text)


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


def run_rows(store: Store, damaged: OnDamage | None = None) -> Iterator[Row]:
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


def curve_rows(store: Store, damaged: OnDamage | None = None) -> Iterator[Row]:
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
    words = "Parquet needs pyarrow: pip install 'linmdp[parquet]'."
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
