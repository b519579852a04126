"""Finished runs as TensorBoard events; any other function of a `RunResult` can take this one's place."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np

from linmdp.errors import invalid, needed, unknown
from linmdp.io.files import output_folder
from linmdp.results.curves import spaced, spans
from linmdp.types import RunResult

Tracker = Callable[[RunResult], None]
"""Called with each run when it is finished."""

POINTS = 200
"""Points of a curve, evenly spaced: as many as a chart shows."""


def make_tracker(name: str | None, out: Path | None) -> Tracker | None:
    """The tracker of that name, which writes under the folder `out`."""
    if name is None:
        return None
    if name != TensorBoard.name:
        unknown("tracker", name, [TensorBoard.name])
    if out is None:
        invalid("linmdp", "track", "given together with --out, where the events go", name)
    return TensorBoard(out / TensorBoard.name)


class TensorBoard:
    """One event file per run, `ENV/AGENT/K-EPISODES/seed-N` in a folder; a run that is done again replaces its file."""

    name = "tensorboard"

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        words = "TensorBoard events need tensorboardX: install linmdp's extra 'tracking'."
        self._writer = needed("tensorboardX.writer", words).FileWriter
        self._summary = needed("tensorboardX.proto.summary_pb2", words).Summary

    def __call__(self, result: RunResult) -> None:
        parts = (result.env, result.agent, f"K-{result.episodes}", f"seed-{result.seed}")
        names = [re.sub(r"[^\w=,.+-]", "_", part)[:200] for part in parts]  # of folders on any system
        folder = output_folder(self.folder.joinpath(*names))
        for earlier in folder.glob("events.out.tfevents.*"):
            earlier.unlink()
        writer = self._writer(str(folder))
        for step, values in scalars(result):
            numbers = [self._summary.Value(tag=tag, simple_value=value) for tag, value in values.items()]
            writer.add_summary(self._summary(value=numbers), step)
        writer.close()


def scalars(result: RunResult) -> Iterator[tuple[int, dict[str, float]]]:
    """Numbers to draw after so many episodes: both curves, and at the end what there is once."""
    K = len(result.rewards)
    totals, last = np.cumsum(result.rewards), -1
    played = np.cumsum(spans(K, result.episodes))
    for k in spaced(K, POINTS).tolist():
        earned, before = totals[k], 0.0
        if last >= 0:
            earned, before = totals[k] - totals[last], played[last]
        values = {"reward per episode": float(earned / (played[k] - before))}
        if result.regret is not None:
            values["regret"] = float(result.regret[k])
        if k == K - 1:
            values |= {"agent bytes": result.peak_bytes, "saturated": result.saturated, "resets": result.resets}
        yield int(played[k]), values
        last = k
