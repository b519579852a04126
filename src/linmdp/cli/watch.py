"""`linmdp watch`: what a trained agent does."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from linmdp.cli import options as opt
from linmdp.cli.start import say


def watch(
    run: opt.RunOrAgent,
    out: Annotated[Path | None, typer.Option("--out", "-o", help="FILE.html or FILE.gif; default: watch.html")] = None,
    number: opt.Number = None,
    seed: Annotated[int, typer.Option(help="seed of the episode")] = 0,
    modules: opt.Import = None,
) -> None:
    """Film an episode of a learned policy, with the value of each action."""
    from linmdp.experiments.watch import check_watchable
    from linmdp.experiments.watch import watch as film

    check_watchable(run)
    say(f"written: {film(run, out, say, number=number, seed=seed)}")
