"""`linmdp benchmark`: agents on a suite, with their scores."""

from __future__ import annotations

import json
import shlex
import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from linmdp.cli import options as opt
from linmdp.cli.start import say, stop
from linmdp.errors import check_int, invalid


def benchmark(
    agents: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[SUITE] [AGENT...]",
            help="suite: 1 (the default) or general; agent: name or name:key=value,..., default: lsvi-ucb",
        ),
    ] = None,
    scale: Annotated[str, typer.Option(help="quick (minutes, few seeds) or full (hours, more seeds)")] = "quick",
    out: Annotated[
        Path, typer.Option("--out", "-o", help="folder of the store; what is in it is not run again")
    ] = Path("benchmark"),
    jobs: opt.Jobs = None,
    perturb: Annotated[
        str | None, typer.Option(metavar="NAME,...", help="general: what these changes of the tasks cost, or all")
    ] = None,
    leave_out: Annotated[
        bool, typer.Option("--leave-out", help="general: what variants of the first agent score more than it")
    ] = False,
    warm_up: Annotated[
        str | None,
        typer.Option("--warm-up", help="general: random play before the first episode is counted (default) or given"),
    ] = None,
    shard: Annotated[
        str | None, typer.Option(metavar="I/N", help="general: run one part of N, into a folder of its own under --out")
    ] = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="one JSON object per agent on standard output, nothing else")
    ] = False,
    settings: opt.Settings = None,
    max_memory: opt.MaxMemory = None,
    modules: opt.Import = None,
) -> None:
    """Scores from 0 (random policy) to 1 (best known) on a suite. Run it again to resume."""
    from linmdp.experiments.suite import GENERAL, SUITES

    if jobs is not None:
        check_int("benchmark", "jobs", jobs, low=1)
    name, *given = [SUITES[0], *(agents or [])] if not agents or agents[0] not in SUITES else agents
    options: dict[str, Any] = {"scale": scale, "processes": jobs, "progress": True, "say": say}
    chosen = opt.with_settings(given or ["lsvi-ucb"], settings)
    if name in GENERAL:
        _general(
            chosen,
            out,
            as_json,
            shard,
            options | {"perturb": _names(perturb), "leave_out": leave_out, "warm_up": warm_up or "counted"},
        )
        return
    for key, value in (("perturb", perturb), ("leave_out", leave_out or None), ("warm_up", warm_up), ("shard", shard)):
        if value is not None:
            invalid("benchmark", key, "left out but for the suite 'general'", value)
    from linmdp.experiments.benchmark import run_benchmark

    _show(_stored(run_benchmark, chosen, out, options), out, "benchmark", as_json)


def _names(perturb: str | None) -> list[str]:
    return [] if perturb is None else [name.strip() for name in perturb.split(",")]


def _general(agents: list[str], out: Path, as_json: bool, shard: str | None, options: dict[str, Any]) -> None:
    """The general suite, or a part of its runs."""
    from linmdp.experiments.general_runs import parsed_shard, run_general, shard_folder

    if shard is not None:
        part = parsed_shard(shard)
        _stored(run_general, agents, shard_folder(out, part), options | {"shard": part})
        return
    _show(_stored(run_general, agents, out, options), out, "general", as_json)


def _stored(run: Any, agents: list[str], out: Path, options: dict[str, Any]) -> Any:
    """What `run` finds, with its runs in the store of a folder."""
    from linmdp.results.store import opened_store

    with opened_store(out) as store:
        store.note("command", shlex.join(["linmdp", *sys.argv[1:]]))
        try:
            return run(agents, store, **options)
        except KeyboardInterrupt:
            stop(f"stopped: {len(store.keys())} runs are stored in {store.path}. The same command goes on.", 1)


def _show(found: Any, out: Path, name: str, as_json: bool) -> None:
    """On standard output, and as NAME.md and figures in the folder."""
    from linmdp.io.files import write_atomic
    from linmdp.report.style import NoFigures

    print("\n".join(map(json.dumps, found.records())) if as_json else found)
    written = [out / f"{name}.md"]
    write_atomic(written[0], f"{found}\n".encode())
    try:
        written += found.write_figure(out)
    except NoFigures as missing:
        say(str(missing))
    say("written: " + ", ".join(map(str, written)))
