"""`linmdp benchmark`: agents on the fixed suite, with their scores."""

from __future__ import annotations

import json
import shlex
import sys
from pathlib import Path
from typing import Annotated

import typer

from linmdp.cli import options as opt
from linmdp.cli.start import say, stop
from linmdp.errors import check_int


def benchmark(
    agents: Annotated[
        list[str] | None, typer.Argument(metavar="[AGENT...]", help="name or name:key=value,...; default: lsvi-ucb")
    ] = None,
    scale: Annotated[str, typer.Option(help="quick (minutes, 3 seeds) or full (hours, 10 seeds)")] = "quick",
    out: Annotated[
        Path, typer.Option("--out", "-o", help="folder of the store; what is in it is not run again")
    ] = Path("benchmark"),
    jobs: opt.Jobs = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="one JSON object per agent on standard output, nothing else")
    ] = False,
    settings: opt.Settings = None,
    modules: opt.Import = None,
) -> None:
    """Scores from 0 (random policy) to 1 (best known) on a fixed suite. Run it again to resume."""
    from linmdp.experiments.benchmark import run_benchmark
    from linmdp.io.files import write_atomic
    from linmdp.report.style import NoFigures
    from linmdp.results.store import opened_store

    if jobs is not None:
        check_int("benchmark", "jobs", jobs, low=1)
    chosen = opt.with_settings(list(agents or ["lsvi-ucb"]), settings)
    with opened_store(out) as store:
        store.note("command", shlex.join(["linmdp", *sys.argv[1:]]))
        try:
            found = run_benchmark(chosen, store, scale=scale, processes=jobs, progress=True, say=say)
        except KeyboardInterrupt:
            stop(f"stopped: {len(store.keys())} runs are stored in {store.path}. The same command goes on.", 1)
    print("\n".join(map(json.dumps, found.records())) if as_json else found)
    write_atomic(out / "benchmark.md", f"{found}\n".encode())
    written = [out / "benchmark.md"]
    try:
        written += found.write_figure(out)
    except NoFigures as missing:
        say(str(missing))
    say("written: " + ", ".join(map(str, written)))
