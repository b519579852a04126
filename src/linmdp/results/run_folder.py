"""What a folder holds: the runs of its store, without curves or with what can be drawn of them, and saved agents."""

from __future__ import annotations

import gc
import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from linmdp.errors import InvalidData
from linmdp.io.files import write_atomic
from linmdp.results.curves import SHOWN, spaced, thinned, whole
from linmdp.results.store import Damaged, Store, existing_store
from linmdp.types import RunResult

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


def read_folder(folder: Path, damaged: Damaged | None = None) -> RunFolder:
    """The runs in `folder`, which is closed again."""
    with opened_folder(folder, damaged) as found:
        return found


@contextmanager
def opened_folder(folder: Path, damaged: Damaged | None = None) -> Iterator[RunFolder]:
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
    return folder / "agents" / f"{key}.safetensors" if re.fullmatch("[0-9a-f]{64}", key) else None


def write_lines(
    path: Path, store: Store, fresh: Mapping[str, RunResult] | None = None, damaged: Damaged | None = None
) -> None:
    """Every run of the store as one JSON object per line, as `--json` prints them.

    The `fresh` runs, by their keys, are written in full precision; all others have the precision and the points of the
    store.
    """
    runs = ((fresh or {}).get(run.key) or whole(run.result) for run in store.stored(damaged=damaged))
    write_atomic(path, b"".join(json.dumps(r.to_json()).encode() + b"\n" for r in runs))


def _from_store(store: Store, damaged: Damaged | None) -> RunFolder:
    machines, same = dict[str, dict[str, Any]](), dict[str, Any]()

    def runs() -> Iterator[Ran]:
        for run in store.stored(costs=False, damaged=damaged):
            where = machines.setdefault(json.dumps(run.machine), run.machine | {"runs": 0})
            where["runs"] += 1
            r = ran(_drawn(run.result), run.key, run.place)
            yield r._replace(**{name: same.setdefault(repr(value := getattr(r, name)), value) for name in SHARED})

    with _no_collection():
        results = _once(runs())
    return RunFolder(
        store.path,
        results,
        list(machines.values()),
        store.notes("command"),
        lambda some: [_drawn(r) for r in store.at([r.place for r in some])],
    )


def ran(r: RunResult, key: str, place: int) -> Ran:
    """What is kept of a run."""
    return Ran(key, place, *(getattr(r, name) for name in Ran._fields[2:]))


@contextmanager
def _no_collection() -> Iterator[None]:
    """Without the garbage collector, which would go through all runs read so far again and again, and find nothing."""
    before = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if before:
            gc.enable()


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


def _once(runs: Iterable[Ran]) -> list[Ran]:
    """A run that is there with several `eval_every` counts once, with its regret in most episodes."""
    kept: dict[tuple[Any, ...], Ran] = {}
    for r in runs:
        run = r.env, r.agent, r.episodes, r.seed
        if run not in kept or r.eval_every <= kept[run].eval_every:
            kept[run] = r
    return list(kept.values())


def _printable(text: str) -> str:
    return text if text.isprintable() else "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in text)
