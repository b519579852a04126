"""From a Gymnasium environment to a model file: transitions collected or read, phi and mu trained on them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from linmdp.agents import LSVIUCB
from linmdp.errors import InvalidData, InvalidParameter
from linmdp.runner.progress import progress_bar
from linmdp.runner.spec import parse_spec
from linmdp.types import Task

if TYPE_CHECKING:
    from linmdp.features.learned import LearnedModel
    from linmdp.linearize.data import Dataset
    from linmdp.linearize.train import Settings, Watch

BETA, LAM = 0.1, 0.001
"""Bonus and ridge of the learner that explores: with these it learns in a few hundred episodes of Alien."""


def training_settings(**values: Any) -> Settings:
    """The settings of a training, checked; they need torch."""
    try:
        from linmdp.linearize.train import Settings
    except ModuleNotFoundError as error:
        raise InvalidParameter(
            f"linearize needs {error.name}, which is not installed: pip install 'linmdp[linearize]'."
        ) from error
    return Settings(**values)


def stored_dataset(env_id: str, path: Path) -> Dataset:
    """The transitions in a file, if they are of that environment with those arguments."""
    from linmdp.linearize.data import read_dataset

    name, kwargs = _gym_id(env_id)
    dataset = read_dataset(path, name)
    found = dataset.meta.get("kwargs", {})
    if found != kwargs:
        raise InvalidData(f"The dataset '{path}' must be of '{name}' with {kwargs}. Got one with {found}.")
    return dataset


def collected_dataset(
    env_id: str, settings: Settings, *, transitions: int, H: int = 50, explore: str = "random", rounds: int = 5
) -> Dataset:
    """New transitions: of a random policy, or in `rounds` of LSVI-UCB on the features of the round before."""
    from linmdp.linearize.collect import open_game, random_data
    from linmdp.linearize.explore import explored_data

    game = open_game(*_gym_id(env_id))
    sizes: dict[str, Any] = {"transitions": transitions, "H": H}
    with progress_bar("transitions", transitions, True) as advance:
        if explore == "random":
            return random_data(game, seed=settings.seed, advance=advance, **sizes)

        def make_player(task: Task) -> LSVIUCB:
            agent = LSVIUCB(task, beta=BETA, lam=LAM, storage="features", dtype="float32")
            agent.rng = np.random.default_rng([settings.seed, 5])
            return agent

        return explored_data(game, settings, make_player, rounds=rounds, advance=advance, **sizes)


def train_model(dataset: Dataset, settings: Settings, out: Path, track: str | None = None) -> LearnedModel:
    """The model, also written to `out`; a training that was interrupted goes on from its checkpoint."""
    from linmdp.linearize.model import write_model
    from linmdp.linearize.train import train

    with _tracked(out, track) as watch, progress_bar("iterations", settings.steps, True) as advance:
        model = train(dataset, settings, checkpoint=checkpoint_of(out), on_eval=watch, advance=advance)
    write_model(out, model)
    return model


def checkpoint_of(out: Path) -> Path:
    """Where the training of a model file keeps its state."""
    return out.with_name(out.name + ".checkpoint")


def _gym_id(env_id: str) -> tuple[str, dict[str, Any]]:
    """`ID,key=value,...` as an id and keyword arguments."""
    kwargs = parse_spec(f"gym:{env_id}")[1]
    return str(kwargs.pop("id", "")), kwargs


@contextmanager
def _tracked(out: Path, track: str | None) -> Iterator[Watch | None]:
    """Evaluations as TensorBoard events in a folder beside the model, if `track` is given."""
    if track is None:
        yield None
        return
    try:
        from tensorboardX import SummaryWriter
    except ModuleNotFoundError as error:
        raise InvalidParameter(
            "'--track tensorboard' needs tensorboardX, which is not installed: pip install 'linmdp[tracking]'."
        ) from error
    writer: Any = SummaryWriter(str(out.with_name(out.stem + "-events")))

    def watch(step: int, found: dict[str, float]) -> None:
        for name, value in found.items():
            writer.add_scalar(f"held-out/{name}", value, step)

    try:
        yield watch
    finally:
        writer.close()
