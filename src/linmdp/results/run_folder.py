"""What a folder holds: the runs of its store, thinned to what can be drawn, and saved agents."""

from __future__ import annotations

import gc
import json
import re
from collections.abc import Iterable, Iterator, Mapping
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


class RunFolder(NamedTuple):
    """All runs of a folder, each once, and what is known of how they were made; `keys` are theirs in the store."""

    source: Path
    results: list[RunResult]
    machines: list[dict[str, Any]]
    commands: list[str]
    keys: list[str]


def read_folder(folder: Path, damaged: Damaged | None = None) -> RunFolder:
    """The runs in `folder`, from its store, in the order in which they were planned.

    Curves are taken at `curve_at`. A damaged run is told to `damaged` and left out, or raises.
    """
    if not folder.is_dir():
        raise InvalidData(f"The folder '{folder}' must be one with results. There is no such folder.")
    if not (folder / "runs.sqlite").exists():
        raise InvalidData(
            f"The folder '{folder}' must hold runs.sqlite (of 'linmdp sweep', or of 'run' or 'compare' with --out). "
            f"It does not."
        )
    found = _from_store(folder, damaged)
    if not found.results:
        raise InvalidData(f"'{found.source}' must hold at least one finished run. It is empty.")
    return found


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


def _identity(r: RunResult) -> tuple[Any, ...]:
    return r.env, r.agent, r.episodes, r.seed


def _from_store(folder: Path, damaged: Damaged | None) -> RunFolder:
    machines = dict[str, dict[str, Any]]()

    def read(store: Store) -> Iterator[tuple[str, RunResult]]:
        for run in store.stored(costs=False, damaged=damaged):
            where = machines.setdefault(json.dumps(run.machine), run.machine | {"runs": 0})
            where["runs"] += 1
            yield run.key, _drawn(run.result)

    with closing(existing_store(folder)) as store:
        with _no_collection():
            runs = _once(read(store))
        commands = store.notes("command")
    return RunFolder(store.path, [r for _, r in runs], list(machines.values()), commands, [key for key, _ in runs])


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


def _once(runs: Iterable[tuple[str, RunResult]]) -> list[tuple[str, RunResult]]:
    """A run that is there with several `eval_every` counts once, with its regret in most episodes."""
    kept: dict[tuple[Any, ...], tuple[str, RunResult]] = {}
    for key, r in runs:
        run = _identity(r)
        if run not in kept or r.eval_every <= kept[run][1].eval_every:
            kept[run] = key, r
    return list(kept.values())


def _printable(text: str) -> str:
    return text if text.isprintable() else "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in text)
