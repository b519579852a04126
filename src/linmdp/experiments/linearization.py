"""From a Gymnasium environment to a model file: transitions collected or read, phi and mu trained on them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from linmdp.errors import InvalidData, InvalidParameter, needed
from linmdp.experiments.stored_runs import Say
from linmdp.runner.progress import progress_bar
from linmdp.runner.spec import parse_spec

if TYPE_CHECKING:
    from linmdp.features.learned import LearnedModel
    from linmdp.linearize.data import Dataset
    from linmdp.linearize.train import Settings


def training_settings(*, device: str, **values: Any) -> Settings:
    """The settings of a training, checked; device "auto" is a GPU where there is one."""
    torch = needed("torch", "linearize needs {name}, which is not installed: pip install 'linmdp[linearize]'.")
    from linmdp.linearize.train import Settings

    if device == "auto":
        device = "cuda" if torch.cuda.is_available() else "cpu"
    return Settings(device=device, **values)


def dataset_of(
    env_id: str,
    path: Path | None,
    seed: int,
    *,
    transitions: int,
    H: int = 50,
    say: Say = lambda _: None,
) -> Dataset:
    """Transitions of an environment, `ID,key=value,...`: those in the file if it exists, else of random play, written.

    Of an Atari game its RAM is seen, unless `obs_type` says otherwise.
    """
    from linmdp.envs.games import Game
    from linmdp.linearize.collect import random_data
    from linmdp.linearize.data import read_dataset

    kwargs = parse_spec(f"gym:{env_id}")[1]
    name = str(kwargs.pop("id", ""))
    if not name:
        raise InvalidParameter("The environment to linearize must be named by its Gymnasium id. Got ''.")
    if name.startswith("ALE/") and "-ram-" not in name:
        kwargs.setdefault("obs_type", "ram")
    if path is not None and path.exists():
        dataset = read_dataset(path, name)
        found = dataset.meta.get("kwargs", {})
        if found != kwargs:
            raise InvalidData(f"The dataset '{path}' must be of '{name}' with {kwargs}. Got one with {found}.")
        say(f"read {len(dataset):,} transitions of {name} from {path}")
        return dataset
    with progress_bar("transitions", transitions, True) as advance:
        dataset = random_data(Game(name, **kwargs), transitions=transitions, H=H, seed=seed, advance=advance)
    if path is not None:
        dataset.save(path)
        say(f"written: {path}, {len(dataset):,} transitions of {name}")
    return dataset


def train_model(dataset: Dataset, settings: Settings, out: Path) -> LearnedModel:
    """The model, also written to `out`; an interrupted training continues from its checkpoint."""
    from linmdp.linearize.model import write_model
    from linmdp.linearize.train import train

    with progress_bar("iterations", settings.steps, True) as advance:
        model = train(dataset, settings, checkpoint=checkpoint_of(out), advance=advance)
    write_model(out, model)
    return model


def checkpoint_of(out: Path) -> Path:
    """Where the training of a model file keeps its state."""
    return out.with_name(out.name + ".checkpoint")
