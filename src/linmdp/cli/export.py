"""`linmdp export`: a stored run as a C99 library, or as WebAssembly."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from linmdp.cli import options as opt
from linmdp.cli.start import say
from linmdp.errors import InvalidParameter, check_choice, check_int, invalid


def export(
    run: opt.RunOrAgent,
    c: Annotated[Path | None, typer.Option("--c", metavar="DIR", help="folder for the C library")] = None,
    wasm: Annotated[
        Path | None, typer.Option("--wasm", metavar="DIR", help="folder for the WebAssembly module; needs clang")
    ] = None,
    number: opt.Number = None,
    env: Annotated[
        str | None, typer.Option(metavar="ENV", help="environment, if the saved agent does not name it")
    ] = None,
    real: Annotated[str, typer.Option(help="float or double on the device")] = "float",
    only: Annotated[str | None, typer.Option(help="policy, or all: policy and learner; default: what it has")] = None,
    steps: Annotated[int, typer.Option(help="steps of the self-test")] = 1000,
    modules: opt.Import = None,
) -> None:
    """Write a learner or its policy as C99 or WebAssembly."""
    from linmdp.export.learner import check_exportable
    from linmdp.export.wasm import export_wasm, find_clang
    from linmdp.export.write import REALS, export_learner, export_policy
    from linmdp.io.units import human_bytes
    from linmdp.runner.loading import trained

    if only is not None:
        check_choice("export", "only", only, ("all", "policy"))
    check_choice("export", "real", real, REALS)
    check_int("export", "steps", steps, low=1, high=1_000_000)
    if c is None and wasm is None:
        raise InvalidParameter("The '--c' or the '--wasm' of export must be given: the folder to write to.")
    if wasm is not None:
        find_clang()  # before a run that may have to be trained again
        if only == "policy":
            invalid("export", "only", "left out with '--wasm', which has the learner alone", only)
    agent, environment, _, words = trained(run, number, env, progress=True)
    if only is None and wasm is None:
        try:
            check_exportable(agent)
        except InvalidParameter as error:
            only = "policy"
            say(f"the policy alone, without the learner: {error}")
    done = []
    if c is not None and only == "policy":
        done = [export_policy(agent, c, real=real, run=words)]
    elif c is not None:
        done = [export_learner(agent, environment, c, real=real, steps=steps, run=words)]
    if wasm is not None:
        done += [export_wasm(agent, environment, wasm, real=real, steps=steps, run=words)]
    for wrote in done:
        typer.echo(f"written: {len(wrote.files)} files in {wrote.files[0].parent}: {words}", err=True)
    typer.echo(f"RAM {human_bytes(done[0].ram)}, tables in flash {human_bytes(done[0].flash)}", err=True)
