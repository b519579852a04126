"""`linmdp tune`, `benchmark` and `linearize`: many runs, or a training, for one answer."""

from __future__ import annotations

import json
import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from linmdp.cli import options as opt
from linmdp.cli.options import confirm, say, stop
from linmdp.errors import check_choice, check_int, invalid
from linmdp.io.units import human_bytes
from linmdp.plugins import imports

if TYPE_CHECKING:
    from linmdp.linearize.data import Dataset
    from linmdp.linearize.train import Settings
    from linmdp.report.benchmark import Benchmark
    from linmdp.runner.tune import Search, Setting, Tuned


def tune(
    env: opt.EnvSpec,
    agent: opt.AgentSpec,
    episodes: opt.Episodes = 1000,
    seeds: Annotated[int, typer.Option(help="new seeds that judge the best setting")] = 5,
    budget: Annotated[
        int | None, typer.Option(metavar="N", help="episodes of the search in all; default: 15 K")
    ] = None,
    out: opt.StoreFolder = Path("tuned"),
    jobs: opt.Jobs = None,
    yes: opt.Yes = False,
    max_memory: opt.MaxMemory = None,
    modules: opt.Import = None,
) -> None:
    """Search for better parameters than the defaults. Run it again to resume."""
    from linmdp.results.store import opened_store
    from linmdp.runner.start import prepared
    from linmdp.runner.tune import Search

    search = Search(env, agent, episodes=episodes, seeds=seeds, budget=budget, processes=jobs)
    if search.left_out:
        most = human_bytes(int(search.available))
        say(f"{search.left_out} settings are left out: a run would take more than {most} (--max-memory, fewer --jobs)")
    command = f"linmdp tune {env} {agent} --episodes {episodes} --out {out}"
    with opened_store(out) as store:
        if command not in store.notes("command"):
            runs = -(-search.total_episodes // episodes)
            start = prepared(env, [agent], episodes=episodes, seeds=runs)
            size = start.agents[agent].bytes_after(episodes)
            confirm(start.seconds(start.jobs, jobs), size, yes, "fewer --episodes or a smaller --budget")
        store.note("command", command)
        say(f"{len(search.settings)} settings, about {search.total_episodes:,} episodes; the store is {store.path}")
        try:
            found = search.run(store, processes=jobs, progress=True)
        except KeyboardInterrupt:
            stop(f"stopped: {len(store.keys())} runs are stored in {store.path}. The same command goes on.", 1)
    _show_tuned(search, found)


def _show_tuned(search: Search, found: Tuned) -> None:
    from linmdp.report.tables import markdown

    same, random = found.best == found.default, found.runs[found.default][0].random_return
    rows = [] if same else [_tuned_row("best", found.best, found)]
    rows.append(_tuned_row("default", found.default, found))
    rows.append(("random", "", "", "-" if random is None else f"{random:.4g}", "-"))
    print(markdown(("", "env", "agent", "return at the end [95% interval]", "regret per episode"), rows))
    seeds = f"{search.seeds} seeds that the search has not seen"
    if same:
        print("The default is the best that was found.")
    elif found.gain.low > 0:
        print(f"The best is better than the default by {found.gain} an episode ({seeds}).")
    else:
        print(f"The best is NOT clearly better than the default: by {found.gain} an episode ({seeds}).")
    print(f"try: linmdp run {' '.join(found.best)} --episodes {search.episodes}{imports()}")


def _tuned_row(name: str, setting: Setting, found: Tuned) -> tuple[str, ...]:
    from linmdp.results.stats import Interval
    from linmdp.results.summary import summarize

    s = summarize(found.runs[setting])
    regret = "-" if s.regret is None else str(Interval(*(value / s.episodes for value in s.regret)))
    return (name, *setting, str(s.end), regret)


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
        _show_scores(found, out, "benchmark" if name == LATEST else "general", as_json)


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


def _show_scores(found: Benchmark, out: Path, name: str, as_json: bool) -> None:
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
