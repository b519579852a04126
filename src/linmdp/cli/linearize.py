"""`linmdp linearize`: collect, train, write a model file, and say how linear the environment is in it."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from linmdp.errors import InvalidData, InvalidParameter, check_choice, check_int, invalid

if TYPE_CHECKING:
    from linmdp.envs.games import Game
    from linmdp.linearize.data import Dataset
    from linmdp.linearize.train import Settings, Watch

BETA, LAM = 0.1, 0.001
"""Bonus and ridge of the learner that explores: with these it learns in a few hundred episodes of Alien."""


def linearize(
    env_id: Annotated[str, typer.Argument(metavar="ENV_ID", help="a Gymnasium id, or ID,key=value,...")],
    out: Annotated[Path | None, typer.Option("--out", "-o", help="the model file to write")] = None,
    dim: Annotated[int, typer.Option(help="d, the dimension of phi")] = 512,
    steps: Annotated[int, typer.Option(help="training iterations, at most")] = 50_000,
    device: Annotated[str, typer.Option(help="cpu or cuda")] = "cpu",
    data: Annotated[Path | None, typer.Option(help="dataset: read if it is there, else collected and written")] = None,
    only_data: Annotated[bool, typer.Option("--only-data", help="collect the dataset and stop")] = False,
    explore: Annotated[str, typer.Option(help="random, or ucb: LSVI-UCB on the features of the moment")] = "random",
    transitions: Annotated[int, typer.Option(help="transitions to collect")] = 50_000,
    horizon: Annotated[int, typer.Option(help="steps of an episode, while collecting")] = 50,
    rounds: Annotated[int, typer.Option(help="parts of the data, with --explore ucb; the first is random")] = 5,
    form: Annotated[str, typer.Option(help="linear, or energy (the published form)")] = "linear",
    seed: Annotated[int, typer.Option(help="of data and training")] = 0,
    batch: Annotated[int, typer.Option(help="transitions an iteration")] = 256,
    hidden: Annotated[int, typer.Option(help="width of the networks")] = 256,
    lr: Annotated[float, typer.Option(help="learning rate at the start")] = 3e-3,
    balance: Annotated[float, typer.Option(help="weight of the term that keeps all dimensions in use")] = 1.0,
    reward_weight: Annotated[float, typer.Option(help="weight of the reward's error")] = 1.0,
    held_out: Annotated[float, typer.Option(help="fraction of the episodes kept for evaluation")] = 0.1,
    patience: Annotated[int, typer.Option(help="evaluations without gain before it stops")] = 10,
    eval_every: Annotated[int, typer.Option(help="iterations between evaluations")] = 500,
    track: Annotated[str | None, typer.Option(help="tensorboard: write events beside the model")] = None,
) -> None:
    """Make a linear MDP of a Gymnasium environment, by contrastive representation learning."""
    from linmdp.io.files import output_folder

    check_choice("linearize", "explore", explore, ("random", "ucb"))
    if track is not None:
        check_choice("linearize", "track", track, ("tensorboard",))
    check_int("linearize", "transitions", transitions, low=2)
    settings = _settings(
        d=dim, steps=steps, batch=batch, hidden=hidden, lr=lr, form=form, balance=balance, held_out=held_out,
        reward_weight=reward_weight, patience=patience, eval_every=eval_every, seed=seed, device=device,
    )  # fmt: skip
    for path, needed, name in ((data, only_data, "data"), (out, not only_data, "out")):
        if path is None and needed:
            invalid("linearize", name, "given: a file to write", None)
        if path is not None:
            output_folder(path.parent)
    dataset = _dataset(env_id, data, explore, transitions, horizon, rounds, settings)
    if not only_data and out is not None:
        _train(dataset, settings, out, track)


def _settings(**values: Any) -> Settings:
    try:
        from linmdp.linearize.train import Settings
    except ModuleNotFoundError as error:
        raise InvalidParameter(
            f"linearize needs {error.name}, which is not installed: pip install 'linmdp[linearize]'."
        ) from error
    return Settings(**values)


def _dataset(
    env_id: str, path: Path | None, explore: str, transitions: int, H: int, rounds: int, settings: Settings
) -> Dataset:
    from linmdp.linearize.data import read_dataset
    from linmdp.runner.spec import parse_spec

    kwargs = parse_spec(f"gym:{env_id}")[1]
    name = str(kwargs.pop("id", ""))
    if path is not None and path.exists():
        dataset = read_dataset(path, name)
        if dataset.meta.get("kwargs", {}) != kwargs:
            found = dataset.meta.get("kwargs")
            raise InvalidData(f"The dataset '{path}' must be of '{name}' with {kwargs}. Got one with {found}.")
        _say(f"read {len(dataset):,} transitions of {name} from {path}")
        return dataset
    from linmdp.linearize.collect import open_game

    dataset = _collected(open_game(name, kwargs), explore, transitions, H, rounds, settings)
    if path is not None:
        dataset.save(path)
        _say(f"written: {path}, {len(dataset):,} transitions of {name}")
    return dataset


def _collected(game: Game, explore: str, transitions: int, H: int, rounds: int, settings: Settings) -> Dataset:
    from linmdp.linearize.collect import random_data
    from linmdp.linearize.explore import explored_data
    from linmdp.runner.progress import progress_bar

    with progress_bar("transitions", transitions, True) as advance:
        if explore == "random":
            return random_data(game, transitions=transitions, H=H, seed=settings.seed, advance=advance)
        learner = _learner(settings.seed)
        return explored_data(game, settings, learner, transitions=transitions, H=H, rounds=rounds, advance=advance)


def _learner(seed: int) -> Callable[[Any], Any]:
    """LSVI-UCB on whatever features there are, the same for the same seed."""
    import numpy as np

    from linmdp.agents.lsvi import LSVIUCB

    def make(task: Any) -> LSVIUCB:
        agent = LSVIUCB(task, beta=BETA, lam=LAM, storage="features", dtype="float32")
        agent.rng = np.random.default_rng([seed, 5])
        return agent

    return make


def _train(dataset: Dataset, settings: Settings, out: Path, track: str | None) -> None:
    from linmdp.linearize.measure import Linearity, words
    from linmdp.linearize.model import write_model
    from linmdp.linearize.train import train
    from linmdp.runner.progress import progress_bar

    checkpoint = out.with_name(out.name + ".checkpoint")
    with _tracked(out, track) as watch, progress_bar("iterations", settings.steps, True) as advance:
        try:
            model = train(dataset, settings, checkpoint=checkpoint, on_eval=watch, advance=advance)
        except KeyboardInterrupt:
            kept = f" {checkpoint} is kept; the same command goes on." if checkpoint.exists() else ""
            _say(f"linmdp: stopped.{kept}")
            raise typer.Exit(1) from None
    write_model(out, model)
    print(f"{out}: '{model.env_id}', d={model.d}, {model.meta['settings']['stopped']:,} iterations")
    for line in words(Linearity(**model.meta["metrics"])):
        print(f"  {line}")


@contextmanager
def _tracked(out: Path, track: str | None) -> Iterator[Watch | None]:
    """Evaluations as TensorBoard events in a folder beside the model, if that is asked for."""
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


def _say(words: str) -> None:
    if sys.stderr is not None:
        print(words, file=sys.stderr, flush=True)
