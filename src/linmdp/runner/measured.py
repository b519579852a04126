"""A result from what was measured: one place for single runs, lockstep, and agents of other libraries."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from linmdp.runner.stopwatch import Stopwatch
from linmdp.types import Array, RunResult


def build_result(
    *, gaps: Array | None, clock: Stopwatch, runs: int = 1, chosen: Mapping[str, Any], **measured: Any
) -> RunResult:
    """The result of one of `runs` runs that share the clock equally.

    `gaps` are V* - V^pi, summed up between the points of its curves, or None where V* is unknown; `measured` are the
    other fields of a `RunResult` by name.
    """
    return RunResult(
        regret=None if gaps is None else np.cumsum(gaps),
        cpu_seconds=clock.cpu / runs,
        wall_seconds=clock.wall / runs,
        chosen={name: value.item() if isinstance(value, np.generic) else value for name, value in chosen.items()},
        **measured,
    )
