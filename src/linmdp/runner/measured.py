"""A result from what was measured: one place for single runs, lockstep, and agents of other libraries."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from linmdp.errors import InvalidData
from linmdp.results.stats import mean_interval
from linmdp.results.verdict import NOTHING, UNPROVED
from linmdp.runner.stopwatch import Stopwatch
from linmdp.types import Array, MorePossible, RunResult


class RunStopped(InvalidData):
    """A run that its environment (or a Q that is NaN) has stopped; `result` holds the episodes before that."""

    def __init__(self, words: str, result: RunResult | None = None) -> None:
        super().__init__(words)
        self.result = result


def build_result(
    *,
    gaps: Array | None,
    clock: Stopwatch,
    runs: int = 1,
    chosen: Mapping[str, Any],
    possible: MorePossible | None = None,
    **measured: Any,
) -> RunResult:
    """The result of one of `runs` runs that share the clock equally.

    `gaps` are V* - V^pi, summed up between the points of its curves, or None where V* is unknown; `possible` is what
    `Agent.more_possible` says; `measured` are the other fields of a `RunResult` by name.
    """
    return RunResult(
        **certified(possible),
        regret=None if gaps is None else np.cumsum(gaps),
        cpu_seconds=clock.cpu / runs,
        wall_seconds=clock.wall / runs,
        chosen={name: value.item() if isinstance(value, np.generic) else value for name, value in chosen.items()},
        **measured,
    )


def certified(possible: MorePossible | None) -> dict[str, Any]:
    """The fields of a `RunResult` that say how much more was possible."""
    if possible is None:
        return {}
    mean, low, high = mean_interval(possible.gaps)
    kind = f"certified ({possible.level:.0%}, if linear)" if possible.level else UNPROVED
    kind = NOTHING if possible.nothing else kind
    return {"certified": mean, "certified_interval": [low, high], "certified_kind": kind}
