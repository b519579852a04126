"""What is done with runs that are stored, and with saved agents: tables, films, firmware, and stores joined in one."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from linmdp.cli import options as opt
from linmdp.cli.options import say, stop_if_damaged
from linmdp.errors import InvalidParameter, check_choice, check_int, invalid

if TYPE_CHECKING:
    from linmdp.results.store import Store


def note_shard(store: Store, shard: str, runs: int) -> None:
    """Note which part of a sweep a store is for, and of how many runs; it may be for one part alone."""
    if there := [each for each in store.notes("shard") if each != shard]:
        rule = f"a folder of its own for each shard: '{store.path.parent}' is that of {there[0]}"
        invalid("sweep", "out", rule, shard)
    store.note("shard", shard)
    store.note("size", f"{runs} runs")


def merge(
    folders: Annotated[
        list[Path],
        typer.Argument(metavar="DIR...", help="folders of the parts; without --out the first takes the rest"),
    ],
    out: Annotated[Path | None, typer.Option("--out", "-o", help="folder of the joined store; it may be there")] = None,
) -> None:
    """Join the parts of a sweep, or other stores, in one. Run it again after a part has gone on."""
    from linmdp.io.files import output_folder, own, write_atomic
    from linmdp.results.store import existing_store, opened_store
    from linmdp.runner.sweep import parsed_shard

    into, *rest = folders if out is None else [out, *folders]
    parts = [part for part in dict.fromkeys(rest) if part.resolve() != into.resolve()]
    if not parts:
        invalid("merge", "DIR", "one folder or more beside that of --out", " ".join(map(str, folders)))
    for part in parts:  # all of them, before anything is written
        existing_store(part).close()
    damaged, shards = list[str](), dict[int, set[int]]()
    with opened_store(into) as store:
        if store.notes("shard"):
            invalid("merge", "out", "a folder that is not itself one part of a sweep", into)
        for part in parts:
            with closing(existing_store(part)) as other:
                store.take(other, damaged.append)
                for command in other.notes("command"):
                    store.note("command", command)
                for i, n in (parsed_shard("merge", said) for said in other.notes("shard")):
                    shards.setdefault(n, set()).add(i)
                size = f"{len(other.keys())} runs"
                if (planned := other.notes("size")) and size not in planned:
                    say(f"warning: '{part}' is not finished: {size} of {planned[-1]}; run its shard again, then this")
            for agent in own(part / "agents").glob("*.safetensors"):
                write_atomic(output_folder(own(into / "agents")) / agent.name, own(agent).read_bytes())
        for n, there in shards.items():
            if missing := [f"{i}/{n}" for i in range(1, n + 1) if i not in there]:
                say(f"warning: not among these folders: shard {', '.join(missing)}")
        say(f"{len(store.keys())} runs of {len(parts)} folder{'s' * (len(parts) > 1)} are in {store.path}")
    stop_if_damaged(damaged)


def table(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="folder of run, compare or sweep")],
    csv: Annotated[Path | None, typer.Option(metavar="FILE", help="write the runs as CSV")] = None,
    parquet: Annotated[Path | None, typer.Option(metavar="FILE", help="write the runs as Parquet")] = None,
    jsonl: Annotated[Path | None, typer.Option(metavar="FILE", help="write the runs as --json prints them")] = None,
    curves: Annotated[bool, typer.Option("--curves", help="one row per point of a curve, not per run")] = False,
) -> None:
    """Print the results in a folder, or write them as CSV or Parquet."""
    from linmdp.report.comparison import comparison_text
    from linmdp.results import run_folder
    from linmdp.results.run_folder import write_lines
    from linmdp.results.store import existing_store

    if curves and csv is None and parquet is None:
        invalid("table", "curves", "given with --csv or --parquet", curves)
    written = [path for path in (csv, parquet, jsonl) if path is not None]
    damaged: list[str] = []
    with closing(existing_store(folder)) as store:
        if not written:
            print(comparison_text(store.settings(damaged.append)))
        rows = list(run_folder.run_rows(store, damaged.append)) if written and not curves else []
        columns = run_folder.CURVES if curves else run_folder.run_columns(rows)
        for path, write in ((csv, run_folder.write_csv), (parquet, run_folder.write_parquet)):
            if path is not None:
                write(path, columns, run_folder.curve_rows(store, damaged.append) if curves else rows)
        if jsonl is not None:
            write_lines(jsonl, store, damaged=damaged.append)
    if written:
        typer.echo("written: " + ", ".join(map(str, written)), err=True)
    stop_if_damaged(damaged)


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
    from linmdp.export.wasm import export_wasm, find_clang
    from linmdp.export.write import REALS, export_c
    from linmdp.io.units import human_bytes
    from linmdp.runner.saved import trained

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
    done = []
    if c is not None:
        only = only or ("all" if wasm else None)
        done = [export_c(agent, environment, c, only=only, real=real, steps=steps, run=words)]
    if wasm is not None:
        done += [export_wasm(agent, environment, wasm, real=real, steps=steps, run=words)]
    for wrote in done:
        typer.echo(f"written: {len(wrote.files)} files in {wrote.files[0].parent}: {words}", err=True)
    typer.echo(f"RAM {human_bytes(done[0].ram)}, tables in flash {human_bytes(done[0].flash)}", err=True)


def record(
    env: opt.EnvSpec,
    agent: opt.AgentSpec = "auto",
    out: Annotated[Path, typer.Option("--out", "-o", help="folder of the dataset")] = Path("recorded"),
    episodes: opt.Episodes = 100,
    seed: opt.FirstSeed = 0,
    max_memory: opt.MaxMemory = None,
    modules: opt.Import = None,
) -> None:
    """Record what an agent does as it learns, as a Minari dataset."""
    from linmdp.runner.logged import record as recorded

    found = recorded(env, agent, out, episodes=episodes, seed=seed, progress=True)
    say(f"written: {found.episodes} episodes, {found.steps:,} steps in {found.folder}")
