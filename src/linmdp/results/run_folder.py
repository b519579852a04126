"""What a folder holds: the runs of its store and of `results.jsonl`, thinned to what can be drawn, and saved agents."""

from __future__ import annotations

import gc
import json
import re
import warnings
from collections.abc import Iterable, Iterator
from contextlib import closing, contextmanager
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from linmdp.errors import InvalidData, LinMDPError, LinMDPWarning, check_int, check_number, one_line
from linmdp.io.files import write_atomic
from linmdp.results.curves import SHOWN, curve_at, is_long, spaced, thinned, whole
from linmdp.results.rows import check_record
from linmdp.results.store import Damaged, Store, existing_store
from linmdp.types import NUMBER, RunResult

LINES = "results.jsonl"
OLDER = "older lines"
"""A note in a store: its folder had `results.jsonl` before, of a version that wrote nothing else."""

NEEDED = {"env", "agent", "seed", "episodes", "regret", "reward", "agent_bytes"}
"""What a line must have. Any other field that it lacks gets one of these values, or the default of the field."""
UNSAID: dict[str, Any] = {
    "params": {},
    "eval_every": 1,
    "feature_bytes": 0,
    **dict.fromkeys(("cpu_seconds", "wall_seconds", "saturated"), 0.0),
    **dict.fromkeys(("updates", "resets"), 0),
    "tied": float("nan"),
    "drift": None,
}


class RunFolder(NamedTuple):
    """All runs of a folder, each once, and what is known of how they were made; `keys` are theirs in the store."""

    source: Path
    results: list[RunResult]
    machines: list[dict[str, Any]]
    commands: list[str]
    keys: list[str]


def read_folder(folder: Path, damaged: Damaged | None = None) -> RunFolder:
    """The runs in `folder`, from its store or else its `results.jsonl`, in the order in which they were planned.

    Curves are taken at `curve_at`. A damaged run of a store is told to `damaged` and left out, or raises.
    """
    if not folder.is_dir():
        raise InvalidData(f"The folder '{folder}' must be one with results. There is no such folder.")
    if (folder / "runs.sqlite").exists():
        found = _from_store(folder, damaged)
    elif (folder / LINES).exists():
        found = _from_lines(folder / LINES)
    else:
        raise InvalidData(
            f"The folder '{folder}' must hold runs.sqlite (of 'linmdp sweep', or of 'run' or 'compare' with --out) or "
            f"the {LINES} of an older version. It holds neither."
        )
    if not found.results:
        raise InvalidData(f"'{found.source}' must hold at least one finished run. It is empty.")
    return found


def by_name(found: RunFolder) -> RunFolder:
    """The same runs in the order of their names and numbers: rho=0.5 before rho=0.75, and K=500 before K=1000."""
    names = {(r.env, r.agent): (_natural(r.env), *map(_natural, r.agent.partition(":"))) for r in found.results}
    places = {name: i for i, name in enumerate(sorted(set(names.values())))}  # numbers are compared faster
    place = {run: places[name] for run, name in names.items()}

    def key(run: tuple[RunResult, str]) -> tuple[int, ...]:
        r, _ = run
        return place[r.env, r.agent], r.episodes, r.seed

    runs = sorted(zip(found.results, found.keys, strict=True), key=key)
    return found._replace(results=[r for r, _ in runs], keys=[key for _, key in runs])


def agent_file(folder: Path, key: str) -> Path | None:
    """Where the agent of the run with that key is saved; None for a key that is none (a store is not to be trusted)."""
    return folder / "agents" / f"{key}.safetensors" if re.fullmatch("[0-9a-f]{64}", key) else None


def note_older_lines(folder: Path, store: Store) -> None:
    """Call it before the first run is stored: lines of an older version are then read beside the store."""
    if (folder / LINES).exists() and not store.keys():
        store.note(OLDER, LINES)


def write_lines(
    folder: Path,
    store: Store,
    fresh: Iterable[RunResult] = (),
    path: Path | None = None,
    damaged: Damaged | None = None,
) -> None:
    """`results.jsonl`, or another file: every run of the folder as one JSON object per line, as `--json` prints them.

    The `fresh` runs are written in full precision. So are lines that are there already; those of runs that the store
    does not have come first. All others have the precision and the points of the store, and all its order.
    """
    lines = {run: line for line in _lines(folder / LINES) if (run := _run_of(line))}
    lines |= {_identity(r): _line(r) for r in fresh}
    for r in (run.result for run in store.stored(damaged=damaged)):
        run = _identity(r)
        lines[run] = lines.pop(run, b"") or _line(whole(r))  # popped: it takes its place in the order of the store
    write_atomic(path or folder / LINES, b"".join(lines.values()))


def _line(result: RunResult) -> bytes:
    return json.dumps(result.to_json()).encode() + b"\n"


def _lines(path: Path) -> list[bytes]:
    """The whole lines of a file; a torn last one is left out."""
    found = path.read_bytes().splitlines(keepends=True) if path.exists() else []
    return [line for line in found if line.endswith(b"\n")]


def _identity(r: RunResult) -> tuple[Any, ...]:
    return r.env, r.agent, r.episodes, r.seed


def _run_of(line: bytes) -> tuple[Any, ...]:
    try:
        return _identity(_result(json.loads(line)))
    except (LinMDPError, ValueError, TypeError, KeyError, OverflowError, RecursionError):
        return ()


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
        older = _from_lines(folder / LINES).results if store.notes(OLDER) and (folder / LINES).exists() else []
    there = {_identity(r)[:3] for _, r in runs}  # a curve of sums alone does not go with whole ones of the same agent
    runs += [("", r) for r in older if _identity(r)[:3] not in there]
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


def _from_lines(path: Path) -> RunFolder:
    try:
        with path.open("rb") as file:
            results = [r for _, r in _once(("", r) for r in _results_of(path, file))]
    except OSError as error:
        raise InvalidData(f"'{path}' cannot be read. {error.strerror}.") from error
    results.sort(key=lambda r: r.seed)  # stable: agents stay in the order in which they were given
    order = {agent: i for i, agent in enumerate(dict.fromkeys(r.agent for r in results))}
    results.sort(key=lambda r: order[r.agent])
    return RunFolder(path, results, [], [], [""] * len(results))


def _results_of(path: Path, lines: Iterable[bytes]) -> Iterator[RunResult]:
    for number, line in enumerate(lines, start=1):
        try:
            yield _drawn(_result(json.loads(line)))
        except (LinMDPError, ValueError, TypeError, KeyError, OverflowError, RecursionError) as error:
            if not line.endswith(b"\n"):
                warnings.warn(f"The last line of '{path}' is torn: it is left out.", LinMDPWarning)
                return
            raise InvalidData(f"Line {number} of '{path}' is damaged: {_reason(error)}") from error


def _result(record: Any) -> RunResult:
    """A line as `RunResult.to_json` writes it; of the rewards it has the sum alone."""
    if not isinstance(record, dict):
        raise InvalidData("it must be a JSON object.")
    if missing := NEEDED - set(record):
        raise InvalidData(f"it must have {', '.join(sorted(missing))}.")
    said = dict(UNSAID)
    for name, column in RunResult.columns().items():
        shown = column.json[0] if column.json else name
        if shown in record and column.kind in (str, int, NUMBER, dict):
            said[name] = _value(shown, column.kind, record[shown])
    check_record(said)
    regret = None if record["regret"] is None else np.array(record["regret"], dtype=np.float64)
    K = said["episodes"]
    points = len(thinned(K)) if is_long(K) else K
    if regret is not None and (regret.shape != (points,) or not np.isfinite(regret).all()):
        raise InvalidData(f"regret of a run must be {points} finite numbers.")
    return RunResult(**said, regret=regret, rewards=np.array([_value("reward", NUMBER, record["reward"])]))


def _value(name: str, kind: Any, value: Any) -> Any:
    """A field of a line, if it is of its kind."""
    if kind is int:
        return check_int("a run", name, value, low=int(name in ("episodes", "eval_every")), high=2**62)
    if kind is NUMBER:
        return check_number("a run", name, value)
    return str(value) if kind is str else dict(value or {})


def _drawn(r: RunResult) -> RunResult:
    """`r`, changed: its curves at `curve_at` alone, rewards summed up in between; names without control characters.

    The curves of a store have the points of `thinned`; a line has regret in every episode, and one sum of rewards.
    """
    at = spaced(len(thinned(r.episodes)), SHOWN)
    rewards = r.rewards if len(r.rewards) <= len(at) else np.diff(np.cumsum(r.rewards)[at], prepend=0.0)
    regret = r.regret
    if regret is not None:
        regret = regret[curve_at(r.episodes) if len(regret) == r.episodes else at]
    r.env, r.agent, r.regret, r.rewards = _printable(r.env), _printable(r.agent), regret, rewards
    return r


def _once(runs: Iterable[tuple[str, RunResult]]) -> list[tuple[str, RunResult]]:
    """A run that is there with several `eval_every` counts once, with its regret in most episodes."""
    kept: dict[tuple[Any, ...], tuple[str, RunResult]] = {}
    for key, r in runs:
        run = _identity(r)
        if run not in kept or r.eval_every <= kept[run][1].eval_every:
            kept[run] = key, r
    return list(kept.values())


@lru_cache(maxsize=4096)
def _natural(text: str) -> tuple[tuple[float, str], ...]:
    parts = re.split(r"(\d+\.?\d*)", text)
    return tuple((float(p), "") if i % 2 else (-1.0, p) for i, p in enumerate(parts))


def _printable(text: str) -> str:
    return text if text.isprintable() else "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in text)


def _reason(error: Exception) -> str:
    missing = isinstance(error, KeyError) and not isinstance(error, LinMDPError)
    return one_line(f"it has no {error}" if missing else str(error), 200)
