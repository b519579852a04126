"""`linmdp linearize`: collect transitions, train, write a model file, and report how linear the environment is."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from linmdp.errors import check_choice, check_int, invalid

if TYPE_CHECKING:
    from linmdp.linearize.data import Dataset
    from linmdp.linearize.train import Settings


def linearize(
    env_id: Annotated[str, typer.Argument(metavar="ENV_ID", help="a Gymnasium id, or ID,key=value,...")],
    out: Annotated[Path | None, typer.Option("--out", "-o", help="the model file to write")] = None,
    dim: Annotated[int, typer.Option(help="d, the dimension of phi")] = 512,
    steps: Annotated[int, typer.Option(help="most training iterations")] = 50_000,
    device: Annotated[str, typer.Option(help="cpu or cuda")] = "cpu",
    data: Annotated[Path | None, typer.Option(help="dataset file: read it, or collect and write it")] = None,
    only_data: Annotated[bool, typer.Option("--only-data", help="collect the dataset and stop")] = False,
    transitions: Annotated[int, typer.Option(help="transitions to collect")] = 50_000,
    horizon: Annotated[int, typer.Option(help="steps per episode while collecting")] = 50,
    form: Annotated[str, typer.Option(help="linear, or energy (as published)")] = "linear",
    seed: Annotated[int, typer.Option(help="seed of the data and the training")] = 0,
    batch: Annotated[int, typer.Option(help="transitions per iteration")] = 256,
    hidden: Annotated[int, typer.Option(help="width of the networks")] = 256,
    lr: Annotated[float, typer.Option(help="initial learning rate")] = 3e-3,
    balance: Annotated[float, typer.Option(help="weight of using all dimensions")] = 1.0,
    reward_weight: Annotated[float, typer.Option(help="weight of the reward error")] = 1.0,
    held_out: Annotated[float, typer.Option(help="fraction of episodes to evaluate on")] = 0.1,
    patience: Annotated[int, typer.Option(help="stop after so many without progress")] = 10,
    eval_every: Annotated[int, typer.Option(help="iterations between evaluations")] = 500,
) -> None:
    """Learn features that make a Gymnasium environment a linear MDP."""
    from linmdp.experiments.linearization import dataset_of, training_settings
    from linmdp.features.learned import FORMS
    from linmdp.io.files import output_folder

    check_choice("linearize", "form", form, FORMS)
    check_int("linearize", "transitions", transitions, low=2)
    settings = training_settings(
        d=dim, steps=steps, batch=batch, hidden=hidden, lr=lr, form=form, balance=balance, held_out=held_out,
        reward_weight=reward_weight, patience=patience, eval_every=eval_every, seed=seed, device=device,
    )  # fmt: skip
    for path, needed, name in ((data, only_data, "data"), (out, not only_data, "out")):
        if path is None and needed:
            invalid("linearize", name, "given: a file to write", None)
        if path is not None:
            output_folder(path.parent)
    dataset = dataset_of(env_id, data, seed, transitions=transitions, H=horizon, say=_say)
    if not only_data and out is not None:
        _train(dataset, settings, out)


def _say(message: str) -> None:
    typer.echo(message, err=True)


def _train(dataset: Dataset, settings: Settings, out: Path) -> None:
    from linmdp.experiments.linearization import checkpoint_of, train_model
    from linmdp.linearize.measure import Linearity, sentences

    try:
        model = train_model(dataset, settings, out)
    except KeyboardInterrupt:
        checkpoint = checkpoint_of(out)
        kept = f" {checkpoint} is kept; run the same command to continue." if checkpoint.exists() else ""
        _say(f"linmdp: stopped.{kept}")
        raise typer.Exit(1) from None
    print(f"{out}: '{model.env_id}', d={model.d}, {model.meta['settings']['stopped']:,} iterations")
    for line in sentences(Linearity(**model.meta["metrics"])):
        print(f"  {line}")
