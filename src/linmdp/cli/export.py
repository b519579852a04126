"""`linmdp export`: a stored run as a C99 library."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from linmdp.errors import check_choice, check_int


def export(
    run: Annotated[Path, typer.Argument(metavar="RUN", help="folder of 'run', 'compare' or 'sweep', or a saved agent")],
    c: Annotated[Path, typer.Option("--c", metavar="DIR", help="folder for the C library")],
    number: Annotated[int | None, typer.Option(help="which run of the folder, from 1 on, where it has several")] = None,
    env: Annotated[str | None, typer.Option(metavar="ENV", help="of a saved agent that does not name it")] = None,
    real: Annotated[str, typer.Option(help="float or double, on the device")] = "float",
    only: Annotated[str, typer.Option(help="policy: the frozen policy alone, of any agent; or all")] = "all",
    steps: Annotated[int, typer.Option(help="steps that the self-test plays")] = 1000,
) -> None:
    """Write a C99 library with static memory: the policy that a run ended with, and its learner from the start."""
    from linmdp.export.write import REALS, export_learner, export_policy
    from linmdp.io.units import human_bytes
    from linmdp.runner.loading import trained

    check_choice("export", "only", only, ("all", "policy"))
    check_choice("export", "real", real, REALS)
    check_int("export", "steps", steps, low=1, high=1_000_000)
    agent, environment, words = trained(run, number, env, progress=True)
    if only == "policy":
        written = export_policy(agent, c, real=real, run=words)
    else:
        written = export_learner(agent, environment, c, real=real, steps=steps, run=words)
    typer.echo(f"written: {len(written.files)} files in {c}: {words}", err=True)
    typer.echo(f"RAM {human_bytes(written.ram)}, tables in flash {human_bytes(written.flash)}", err=True)
