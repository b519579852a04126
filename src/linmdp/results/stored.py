"""What a folder holds: the runs of a store, or of `results.jsonl`, thinned to what can be drawn."""

from __future__ import annotations

import json
import re
import sqlite3
import warnings
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from linmdp.errors import InvalidData, LinMDPError, LinMDPWarning, check_int, check_number
from linmdp.results.store import Store, thinned
from linmdp.types import Array, IntArray, RunResult

SHOWN = 200
"""Points of a curve that are kept; more can not be told apart on a screen."""


class Stored(NamedTuple):
    """All runs of a folder, each once, and what is known of how they were made."""

    source: Path
    results: list[RunResult]
    machines: list[dict[str, Any]]
    commands: list[str]


def read_folder(folder: Path) -> Stored:
    """The runs in `folder`, from its store or else its `results.jsonl`; curves are taken at `curve_at`."""
    if not folder.is_dir():
        raise InvalidData(f"The folder '{folder}' must be one with results. There is no such folder.")
    if (folder / "runs.sqlite").exists():
        stored = _from_store(folder)
    elif (folder / "results.jsonl").exists():
        stored = _from_lines(folder / "results.jsonl")
    else:
        raise InvalidData(
            f"The folder '{folder}' must hold runs.sqlite (of 'linmdp sweep') or results.jsonl (of 'linmdp run' or "
            f"'compare' with --out). It holds neither."
        )
    if not stored.results:
        raise InvalidData(f"'{stored.source}' must hold at least one finished run. It is empty.")
    return stored


def curve_at(episodes: int) -> IntArray:
    """The episodes (from 0) of the points of a curve that `read_folder` keeps; K - 1 is the last."""
    stored = thinned(episodes)
    return np.asarray(stored[_picked(len(stored))], dtype=np.int64)


def _picked(points: int) -> IntArray:
    return np.unique(np.linspace(0, points - 1, min(points, SHOWN)).round().astype(np.int64))


def _from_store(folder: Path) -> Stored:
    store = Store(folder)
    try:
        results = _once(_thin(r, stored=True) for r in store.results())
        machines, commands = store.machines(), store.notes("command")
    except LinMDPError as error:
        raise InvalidData(f"'{store.path}' is damaged: {error}") from error
    except (sqlite3.Error, ValueError, TypeError, KeyError) as error:
        raise InvalidData(f"'{store.path}' is damaged: {_one_line(error)}.") from error
    finally:
        store.close()
    # runs are stored as they finish, which is no order that means anything
    results.sort(key=lambda r: (_natural(r.env), *map(_natural, r.agent.partition(":")), r.episodes, r.seed))
    return Stored(store.path, results, machines, commands)


def _from_lines(path: Path) -> Stored:
    try:
        with path.open("rb") as file:
            results = _once(_results_of(path, file))
    except OSError as error:
        raise InvalidData(f"'{path}' can not be read. {error.strerror}.") from error
    results.sort(key=lambda r: r.seed)  # stable: agents stay in the order in which they were given
    order = {agent: i for i, agent in enumerate(dict.fromkeys(r.agent for r in results))}
    results.sort(key=lambda r: order[r.agent])
    return Stored(path, results, [], [])


def _results_of(path: Path, lines: Iterable[bytes]) -> Iterator[RunResult]:
    for number, line in enumerate(lines, start=1):
        try:
            yield _result(json.loads(line))
        except (LinMDPError, ValueError, TypeError, KeyError, OverflowError, RecursionError) as error:
            if not line.endswith(b"\n"):
                warnings.warn(f"The last line of '{path}' is torn: it is left out.", LinMDPWarning)
                return
            raise InvalidData(f"Line {number} of '{path}' is damaged: {_one_line(error)}") from error


def _result(record: Any) -> RunResult:
    """A line as `RunResult.to_json` writes it; what it does not tell (ties, drift) is NaN or None."""
    if not isinstance(record, dict):
        raise InvalidData("it must be a JSON object.")
    missing = {"env", "agent", "seed", "episodes", "regret", "reward", "agent_bytes"} - set(record)
    if missing:
        raise InvalidData(f"it must have {', '.join(sorted(missing))}.")

    def count(name: str, low: int = 0, default: int = 0) -> int:
        return check_int("a run", name, record.get(name, default), low=low, high=2**62)

    def amount(name: str) -> float:
        return check_number("a run", name, record.get(name, 0.0))

    result = RunResult(
        env=str(record["env"]),
        agent=str(record["agent"]),
        params=dict(record.get("params") or {}),
        seed=count("seed"),
        episodes=count("episodes", low=1),
        eval_every=count("eval_every", low=1, default=1),
        regret=None if record["regret"] is None else np.array(record["regret"], dtype=np.float64),
        rewards=np.array([amount("reward")]),
        peak_bytes=count("agent_bytes"),
        feature_bytes=count("feature_bytes"),
        cpu_seconds=amount("cpu_seconds"),
        wall_seconds=amount("wall_seconds"),
        updates=count("updates"),
        resets=count("resets"),
        saturated=amount("saturated"),
        tied=float("nan"),
        drift=None,
    )
    return _thin(result, stored=False)


def _thin(r: RunResult, *, stored: bool) -> RunResult:
    """`r` with its curves at `curve_at` alone, rewards summed up in between; names without control characters."""
    whole = len(thinned(r.episodes)) if stored else r.episodes
    regret = None if r.regret is None else _checked("regret", r.regret, whole)
    if regret is not None:
        regret = regret[_picked(whole) if stored else curve_at(r.episodes)]
    rewards = r.rewards
    if stored:
        totals = np.cumsum(_checked("rewards", rewards, whole))[_picked(whole)]
        rewards = np.diff(totals, prepend=0.0)
    return replace(r, env=_printable(r.env), agent=_printable(r.agent), regret=regret, rewards=rewards)


def _checked(name: str, curve: Array, length: int) -> Array:
    if curve.shape != (length,) or not np.all(np.isfinite(curve)):
        raise InvalidData(f"{name} of a run must be {length} finite numbers.")
    return curve


def _once(results: Iterable[RunResult]) -> list[RunResult]:
    """A run that is there with several `eval_every` counts once, with its regret in most episodes."""
    kept: dict[tuple[str, str, int, int], RunResult] = {}
    for r in results:
        run = (r.env, r.agent, r.episodes, r.seed)
        if run not in kept or r.eval_every <= kept[run].eval_every:
            kept[run] = r
    return list(kept.values())


def _natural(text: str) -> list[tuple[float, str]]:
    """A key that sorts rho=0.5 before rho=0.75, and K=500 before K=1000."""
    parts = re.split(r"(\d+\.?\d*)", text)
    return [(float(p), "") if i % 2 else (-1.0, p) for i, p in enumerate(parts)]


def _printable(text: str) -> str:
    return "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in text)


def _one_line(error: Exception) -> str:
    words = f"it has no {error}" if isinstance(error, KeyError) and not isinstance(error, LinMDPError) else str(error)
    return " ".join(words.split())[:200]
