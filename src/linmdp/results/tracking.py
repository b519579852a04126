"""Runs in TensorBoard, Weights & Biases or MLflow: finished ones, or one on its way, episode by episode."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from linmdp.errors import InvalidParameter, LinMDPError, described, invalid, needed, unknown
from linmdp.io.files import output_folder, own
from linmdp.results.curves import SHOWN, spaced, spans
from linmdp.types import EpisodeRecord, RunResult


class TensorBoard:
    """One event file in a folder of its own, `FOLDER/NAME/...`; a run that is done again replaces it."""

    package, words = "tensorboardX.writer", "TensorBoard events need tensorboardX: pip install 'linmdp[tracking]'."

    def __init__(self, folder: Path, names: list[str], about: Mapping[str, Any]) -> None:
        self._summary = needed("tensorboardX.proto.summary_pb2", self.words)
        place = output_folder(own(folder / "tensorboard").joinpath(*names))
        for earlier in place.glob("events.out.tfevents.*"):
            earlier.unlink()
        self._writer = needed(self.package, self.words).FileWriter(str(place))

    def log(self, step: int, values: Mapping[str, float]) -> None:
        numbers = [self._summary.Summary.Value(tag=tag, simple_value=value) for tag, value in values.items()]
        self._writer.add_summary(self._summary.Summary(value=numbers), step)

    def close(self) -> None:
        self._writer.close()


class WandB:
    """A run of the project "linmdp"; its own settings (WANDB_MODE=offline) say whether anything leaves the machine."""

    package, words = "wandb", "Weights & Biases needs wandb: pip install 'linmdp[wandb]'."

    def __init__(self, folder: Path, names: list[str], about: Mapping[str, Any]) -> None:
        how: dict[str, Any] = {"name": "/".join(names), "dir": str(output_folder(folder)), "config": dict(about)}
        self._run = needed(self.package, self.words).init(project="linmdp", reinit="create_new", **how)

    def log(self, step: int, values: Mapping[str, float]) -> None:
        self._run.log(dict(values), step=step)

    def close(self) -> None:
        self._run.finish()


class MLflow:
    """A run of the experiment "linmdp": in MLFLOW_TRACKING_URI or, where that is not set, `FOLDER/mlflow.db`."""

    package, words = "mlflow", "MLflow needs mlflow: pip install 'linmdp[mlflow]'."

    def __init__(self, folder: Path, names: list[str], about: Mapping[str, Any]) -> None:
        self._mlflow = needed(self.package, self.words)
        uri = os.environ.get("MLFLOW_TRACKING_URI") or f"sqlite:///{output_folder(folder).resolve()}/mlflow.db"
        self._client = self._mlflow.MlflowClient(tracking_uri=uri)
        known = self._client.get_experiment_by_name("linmdp")
        experiment = self._client.create_experiment("linmdp") if known is None else known.experiment_id
        self._id = self._client.create_run(experiment, run_name="/".join(names)).info.run_id
        for name, value in about.items():
            self._client.log_param(self._id, name, value)

    def log(self, step: int, values: Mapping[str, float]) -> None:
        metric, now = self._mlflow.entities.Metric, int(1000 * time.time())
        self._client.log_batch(self._id, [metric(name, value, now, step) for name, value in values.items()])

    def close(self) -> None:
        self._client.set_terminated(self._id)


SINKS: dict[str, Any] = {"tensorboard": TensorBoard, "wandb": WandB, "mlflow": MLflow}


class Tracker(AbstractContextManager["Tracker"]):
    """A callback: of `Learner.learn` and of `linmdp.run` (`on_episode`), or of whoever has finished runs.

    Parameters
    ----------
    to : "tensorboard", "wandb" or "mlflow"
    out : the folder for what is written here
    name : of the run that is tracked episode by episode, until `close`; "a/b" is a folder in another
    about : its parameters
    """

    def __init__(
        self, to: str = "tensorboard", out: str | Path = ".", name: str = "run", about: Mapping[str, Any] | None = None
    ) -> None:
        if to not in SINKS:
            unknown("tracker", to, SINKS)
        needed(SINKS[to].package, SINKS[to].words)
        self._make, self._out, self._names, self._about = SINKS[to], Path(out), name.split("/"), about or {}
        self._sink: Any = None

    def __call__(self, what: EpisodeRecord | RunResult) -> None:
        """An episode, or a whole run, which has a name of its own: ENV/AGENT/K-EPISODES/seed-N."""
        if isinstance(what, RunResult):
            names = [what.env, what.agent, f"K-{what.episodes}", f"seed-{what.seed}"]
            sink = self._opened(names, {"env": what.env, "agent": what.agent, "seed": what.seed, **what.params})
            for step, values in scalars(what):
                sink.log(step, values)
            sink.close()
            return
        self._sink = self._sink or self._opened(self._names, self._about)
        numbers: dict[str, float | None] = {"reward per episode": what.reward, "regret of the episode": what.regret}
        numbers["agent bytes"] = what.agent_bytes
        self._sink.log(what.episode + 1, {name: float(value) for name, value in numbers.items() if value is not None})

    def _opened(self, names: list[str], about: Mapping[str, Any]) -> Any:
        names = [re.sub(r"[^\w=,.+-]", "_", name)[:200] or "_" for name in names]  # of folders on any system
        try:
            return self._make(self._out, names, about)
        except Exception as error:  # of another library's settings, anything
            if isinstance(error, LinMDPError):
                raise
            raise InvalidParameter(f"{self._make.__name__} could not begin a run: {described(error)}.") from error

    def close(self) -> None:
        """The run that was tracked episode by episode is over; the next episode begins another."""
        if self._sink is not None:
            self._sink.close()
        self._sink = None

    def __exit__(self, *_: object) -> None:
        self.close()


def make_tracker(name: str | None, out: Path | None) -> Tracker | None:
    """The tracker of `--track NAME`, which writes under the folder `out`."""
    if name is None:
        return None
    tracker = Tracker(name, out or ".")
    if out is None:
        invalid("linmdp", "track", "given together with --out, where the events go", name)
    return tracker


def scalars(result: RunResult) -> Iterator[tuple[int, dict[str, float]]]:
    """Numbers to draw after so many episodes: both curves, and at the end what there is once."""
    K = len(result.rewards)
    earned, played = (np.append(0.0, np.cumsum(each)) for each in (result.rewards, spans(K, result.episodes)))
    for last, k in pairwise([0, *(spaced(K, SHOWN) + 1).tolist()]):
        values = {"reward per episode": float((earned[k] - earned[last]) / (played[k] - played[last]))}
        if result.regret is not None:
            values["regret"] = float(result.regret[k - 1])
        if k == K:
            values |= {"agent bytes": result.peak_bytes, "saturated": result.saturated, "resets": result.resets}
            if result.planning_bytes is not None:
                values["planning bytes"] = result.planning_bytes
        yield int(played[k]), values
