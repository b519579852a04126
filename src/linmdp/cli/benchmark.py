"""`linmdp benchmark`: agents on a suite, with their scores."""

from __future__ import annotations

import json
import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from linmdp.cli import options as opt
from linmdp.cli.start import say, stop

if TYPE_CHECKING:
    from linmdp.report.benchmark import Benchmark


def benchmark(
    agents: Annotated[
        list[str] | None, typer.Argument(metavar="[SUITE] [AGENT...]", help="1 (default) or general; default: lsvi-ucb")
    ] = None,
    scale: Annotated[str, typer.Option(help="quick (minutes) or full (hours)")] = "quick",
    out: opt.StoreFolder = Path("benchmark"),
    jobs: opt.Jobs = None,
    perturb: Annotated[
        str | None, typer.Option(metavar="NAME,...", help="general suite: score these changed tasks, or all")
    ] = None,
    leave_out: Annotated[
        bool, typer.Option("--leave-out", help="look for variants of the first agent that do better")
    ] = False,
    warm_up: Annotated[
        str | None, typer.Option("--warm-up", help="random play first: counted (general) or given (1)")
    ] = None,
    shard: Annotated[
        str | None, typer.Option(metavar="I/N", help="run one part of N, in its own folder under --out")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="print one JSON object per agent, and nothing else")] = False,
    max_memory: opt.MaxMemory = None,
    modules: opt.Import = None,
) -> None:
    """Score agents on a suite, from 0 (random) to 1 (best known). Run it again to resume."""
    from linmdp.experiments.benchmark import shard_folder
    from linmdp.experiments.suite import LATEST, SUITES
    from linmdp.runner.sweep import parsed_shard

    name, *given = [LATEST, *(agents or [])] if not agents or agents[0] not in SUITES else agents
    part = None if shard is None else parsed_shard("benchmark", shard)
    folder = out if part is None else shard_folder(out, part)
    found = _stored(
        given or ["lsvi-ucb"],
        folder,
        version=name,
        scale=scale,
        perturb=[] if perturb is None else [each.strip() for each in perturb.split(",")],
        leave_out=leave_out,
        warm_up=warm_up,
        shard=part,
        processes=jobs,
    )
    if found is not None:
        _show(found, out, "benchmark" if name == LATEST else "general", as_json)


def _stored(agents: list[str], out: Path, **options: Any) -> Benchmark | None:
    """The scores, with the runs in the store of a folder."""
    from linmdp.experiments.benchmark import run_benchmark
    from linmdp.results.store import opened_store

    with opened_store(out) as store:
        store.note("command", shlex.join(["linmdp", *sys.argv[1:]]))
        try:
            return run_benchmark(agents, store, progress=True, say=say, **options)
        except KeyboardInterrupt:
            stop(f"stopped: {len(store.keys())} runs are stored in {store.path}. The same command goes on.", 1)


def _show(found: Benchmark, out: Path, name: str, as_json: bool) -> None:
    """On standard output, and as NAME.md and figures in the folder."""
    from linmdp.io.files import write_atomic
    from linmdp.report.plots import NoFigures

    print("\n".join(map(json.dumps, found.records())) if as_json else found)
    written = [out / f"{name}.md"]
    write_atomic(written[0], f"{found}\n".encode())
    try:
        written += found.write_figure(out, name)
    except NoFigures as missing:
        say(str(missing))
    say("written: " + ", ".join(map(str, written)))
