"""`linmdp`: the commands. Results go to standard output, progress and messages to standard error."""

from __future__ import annotations

import errno
import json
import os
import shlex
import signal
import sys
import warnings
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NoReturn

import typer
from typer.core import TyperGroup

from linmdp import __version__
from linmdp.cli import options as opt
from linmdp.cli.listing import agents, envs
from linmdp.cli.options import checked_start, say, stop, stop_if_damaged
from linmdp.cli.stored import export, merge, note_shard, record, table, watch
from linmdp.cli.studies import benchmark, linearize, tune
from linmdp.errors import LinMDPError, LinMDPWarning, invalid, ruled
from linmdp.io.memory import memory_kept

if TYPE_CHECKING:
    from linmdp.runner.batch import Job
    from linmdp.types import RunResult

FIRST = """\
linmdp demo                                          # see it learn, in a minute
linmdp check gym:CartPole-v1 --agent auto            # what will a learner need?
linmdp run gym:CartPole-v1 --episodes 60 --out pole  # learn, and keep it all
linmdp watch pole                                    # see what it has learned

'linmdp --help' lists all commands, 'linmdp COMMAND --help' its options."""
"""What `linmdp` alone prints: the four commands that matter."""

GROUPS = {
    "Start": ("demo", "check", "envs", "agents"),
    "Learn": ("run", "compare", "tune", "sweep", "merge"),
    "Look at runs": ("watch", "table", "report"),
    "Deploy": ("export", "record"),
    "Research": ("benchmark", "reproduce", "linearize"),
}


class Grouped(TyperGroup):
    """Lists its commands by what they are for, one line each."""

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """Write the groups."""
        for title, names in GROUPS.items():
            formatter.write(f"\n{title}:\n")
            for name in names:
                words = str(self.commands[name].help).partition(". Run it again")[0].rstrip(".")
                formatter.write(f"  {name:<9}  {words}\n")


app = typer.Typer(
    cls=Grouped,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)


@app.command()
def run(
    env: opt.EnvSpec,
    agent: opt.AgentSpec = "auto",
    episodes: opt.Episodes = 1000,
    seeds: opt.Seeds = 1,
    seed: opt.FirstSeed = 0,
    jobs: opt.Jobs = None,
    eval_every: opt.EvalEvery = 1,
    device: opt.Device = "cpu",
    as_json: opt.AsJson = False,
    out: opt.Out = None,
    track: opt.Track = None,
    checkpoint: opt.Checkpoint = None,
    every: opt.Every = None,
    save: opt.Save = True,
    verdict: opt.Verdict = True,
    yes: opt.Yes = False,
    max_memory: opt.MaxMemory = None,
    modules: opt.Import = None,
) -> None:
    """Learn: one agent (default: auto) in one environment."""
    saved = {"checkpoint": None if checkpoint is None else str(checkpoint), "every": every}
    sizes = {"episodes": episodes, "seeds": seeds, "seed": seed, "eval_every": eval_every, "device": device}
    plan = checked_start(env, [agent], jobs=jobs, out=out, yes=yes, **sizes, **saved)
    _show(_results(plan, jobs, as_json, out, track, save, verdict), env, as_json, out)


@app.command()
def compare(
    env: opt.EnvSpec,
    agents: opt.AgentSpecs,
    episodes: opt.Episodes = 1000,
    seeds: opt.SeedsOrAuto = "3",
    seed: opt.FirstSeed = 0,
    jobs: opt.Jobs = None,
    eval_every: opt.EvalEvery = 1,
    device: opt.Device = "cpu",
    as_json: opt.AsJson = False,
    out: opt.Out = None,
    track: opt.Track = None,
    save: opt.Save = True,
    verdict: opt.Verdict = True,
    yes: opt.Yes = False,
    max_memory: opt.MaxMemory = None,
    modules: opt.Import = None,
) -> None:
    """Compare agents on the same seeds, beside random and optimal play."""
    from linmdp.report.narrative import decisions
    from linmdp.runner.execute import AUTO, checked_seeds, run_until_decided
    from linmdp.runner.registry import with_baselines

    everyone, planned = with_baselines(env, agents), checked_seeds(seeds, agents)
    sizes = {"episodes": episodes, "seeds": planned, "seed": seed, "eval_every": eval_every, "device": device}
    plan = checked_start(env, everyone, jobs=jobs, out=out, yes=yes, **sizes)

    def run(some: list[Job]) -> list[RunResult]:
        return _results(some, jobs, as_json, out, track, save, verdict)

    if seeds != AUTO:
        _show(run(plan), env, as_json, out)
        return
    results, test = run_until_decided(plan, agents, run)
    _show(results, env, as_json, out, decisions(test, results[0].regret is not None))


@app.command()
def sweep(
    spec: Annotated[Path, typer.Argument(metavar="SPEC.toml", help="which environments, agents, grids, K and seeds")],
    out: opt.StoreFolder,
    jobs: opt.Jobs = None,
    dask: Annotated[str | None, typer.Option(metavar="ADDRESS", help="run on the workers of this scheduler")] = None,
    shard: Annotated[str | None, typer.Option(metavar="I/N", help="run part I of N; 'linmdp merge' joins them")] = None,
    device: opt.Device = "cpu",
    track: opt.Track = None,
    save: opt.Save = False,
    verdict: opt.Verdict = True,
    max_memory: opt.MaxMemory = None,
    modules: opt.Import = None,
) -> None:
    """Run many settings from a file. Run it again to resume."""
    from linmdp.io.files import output_folder
    from linmdp.results.store import Store
    from linmdp.results.tracking import make_tracker
    from linmdp.runner.batch import units
    from linmdp.runner.execute import keep_stopped, saving, where_it_stopped
    from linmdp.runner.measured import RunStopped
    from linmdp.runner.pool import Dask
    from linmdp.runner.sweep import parsed_shard, plan, read_sweep, run_key, run_sweep, shard_of

    if dask is not None and jobs is not None:
        invalid("sweep", "jobs", "left out where 'dask' is given", jobs)
    if dask is not None and device != "cpu":
        invalid("sweep", "device", "'cpu' where 'dask' is given", device)
    if dask is not None and save:
        invalid("sweep", "save", "left out where 'dask' is given: agents would be saved on the workers", save)
    part = (1, 1) if shard is None else parsed_shard("sweep", shard)
    pool, tracker = None if dask is None else Dask(dask), make_tracker(track, out)
    planned = plan(read_sweep(spec), spec, device, progress=True)
    if save:
        planned = [saving(out, job) for job in planned]
    with closing(Store(output_folder(out))) as store:
        mine = [job for unit in shard_of(units(planned), part) for job in unit]
        if shard is not None:
            note_shard(store, shard, len(mine))
        store.note("command", f"linmdp sweep {spec} --out {out}" + f" --shard {shard}" * (shard is not None))
        left = len({run_key(job) for job in mine} - store.keys())
        say(f"{len(mine)} runs, {left} to do; the store is {store.path}")
        how: dict[str, Any] = {"processes": jobs, "pool": pool, "progress": True, "verdict": verdict}
        try:
            run_sweep(planned, store, shard=part, on_run=tracker, **how)
        except KeyboardInterrupt:
            stop(where_it_stopped(mine, 0, out), 1)
        except RunStopped as error:
            stop(f"{error}{keep_stopped(error.result, out)}", 2)


@app.command()
def reproduce(
    items: Annotated[
        list[str] | None,
        typer.Argument(metavar="[ITEM...|all]", help="fig-..., bounds, table-...; default: all figures"),
    ] = None,
    scale: Annotated[str, typer.Option(help="quick (minutes) or paper (hours)")] = "quick",
    out: Annotated[Path, typer.Option("--out", "-o", help="folder of runs and figures")] = Path("reproduced"),
    jobs: opt.Jobs = None,
    device: Annotated[str, typer.Option(help="cpu or cuda")] = "cpu",
    seeds: Annotated[int | None, typer.Option(help="how many seeds; default: 3 (quick) or 20 (paper)")] = None,
    max_memory: opt.MaxMemory = None,
) -> None:
    """Make the paper's figures and tables. Run it again to resume."""
    from linmdp.experiments.reproduce import reproduce as reproduced

    try:
        print(reproduced(items or [], scale, out, jobs, say, device, seeds))
    except KeyboardInterrupt:
        stop(f"stopped: finished runs are stored in {out}. The same command goes on.", 1)
    say(f"written: figures, tables, reproduce.md and runs.sqlite in {out}")


@app.command()
def demo(
    out: Annotated[Path, typer.Option("--out", "-o", help="folder of the page and the runs")] = Path("demo"),
    jobs: opt.Jobs = None,
) -> None:
    """See it learn, in a minute, and get a page of the results."""
    from linmdp.experiments.demo import demo as shown

    try:
        page = shown(out, jobs, print)
    except KeyboardInterrupt:
        stop(f"stopped: finished runs are stored in {out}. The same command goes on.", 1)
    print(f"\nLook at {page.resolve()}")


@app.command()
def check(
    env: opt.EnvSpec,
    agent: Annotated[str | None, typer.Option("--agent", help="will this agent learn here, in how many bytes?")] = None,
    episodes: opt.Episodes = 1000,
    max_memory: opt.MaxMemory = None,
    modules: opt.Import = None,
) -> None:
    """Check an environment: does it behave, what will an agent need?"""
    from linmdp.cli.check import print_check

    if not print_check(env, agent, episodes):
        raise typer.Exit(1)


@app.command()
def report(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="folder of run, compare or sweep")],
    out: Annotated[Path | None, typer.Option("--out", "-o", help="the page; default: DIR/report.html")] = None,
) -> None:
    """Write one HTML page about everything in a folder."""
    from linmdp.io.units import human_bytes
    from linmdp.report.html import write_report

    written = write_report(folder, out)
    size = human_bytes(written.page.stat().st_size)
    more = f"; {written.left_out} further pairs of environment and K are not in it" if written.left_out else ""
    say(f"written: {written.page} ({size}){more}")
    stop_if_damaged(written.damaged)


for _command in (envs, agents, merge, record, linearize, export, table, tune, benchmark, watch):
    app.command()(_command)


@app.callback(invoke_without_command=True)
def version(
    context: typer.Context, show: Annotated[bool, typer.Option("--version", help="print the version")] = False
) -> None:
    """Reinforcement learning for tasks with few episodes and little memory."""
    if show or context.invoked_subcommand is None:
        print(__version__ if show else FIRST)
        raise typer.Exit


def _results(
    plan: list[Job], jobs: int | None, as_json: bool, out: Path | None, track: str | None, save: bool, verdict: bool
) -> list[RunResult]:
    """All results in order; what is finished is stored (and printed) at once."""
    from linmdp.results.tracking import make_tracker
    from linmdp.runner.batch import run_jobs
    from linmdp.runner.execute import keep_stopped, run_into, where_it_stopped
    from linmdp.runner.measured import RunStopped

    tracker = make_tracker(track, out)
    results: list[RunResult] = []
    try:
        how: dict[str, Any] = {"processes": jobs, "progress": True, "verdict": verdict}
        command = shlex.join(["linmdp", *sys.argv[1:]])
        kept = out and run_into(out, plan, command=command, save=save, on_run=tracker, **how)
        with closing(kept or run_jobs(plan, **how)) as found:
            for result in found:
                results.append(result)
                if as_json:
                    print(json.dumps(result.to_json()), flush=True)
    except KeyboardInterrupt:
        stop(where_it_stopped(plan, len(results), out), 1)
    except RunStopped as error:
        nothing = "" if plan[0].checkpoint else " Nothing is kept: use --out or --checkpoint."
        stop(f"{error}{keep_stopped(error.result, out) if out else nothing}", 2)
    return results


def _show(results: list[RunResult], env: str, as_json: bool, out: Path | None, decided: Sequence[str] = ()) -> None:
    from linmdp.io.files import write_atomic
    from linmdp.report.comparison import comparison_figure
    from linmdp.report.narrative import distributions, paired_comparisons
    from linmdp.report.plots import NoFigures
    from linmdp.report.tables import comparison_table
    from linmdp.results.summary import by_agent
    from linmdp.results.verdict import verdicts

    summaries = by_agent(results)
    said = [*paired_comparisons(summaries), *distributions(summaries), *decided]
    table = "\n\n".join([comparison_table(summaries), *said])
    if not as_json:
        print(table)
        if results[0].eval_every > 1:
            print(f"(regret evaluated in every {results[0].eval_every}th episode, held in between)")
    for words in dict.fromkeys(words for result in results for words in result.warnings):
        say(f"warning: {words}")
    if out:
        title = f"{env}: {results[0].episodes:,} episodes"
        write_atomic(out / "table.md", f"{title}\n\n{table}\n".encode())
        paths = [out / "runs.sqlite", out / "results.jsonl", out / "table.md"]
        paths += [out / "agents"] * (out / "agents").is_dir()
        if any(s.curve is not None for s in summaries):
            try:
                paths += comparison_figure(summaries, title, out)
            except NoFigures as missing:
                say(str(missing))
        say("written: " + ", ".join(map(str, paths)))
    found = verdicts(results)
    for agent, words in found.items():
        (say if as_json else print)(f"{agent}: {words}" if len(found) > 1 else words)


def _terminate(*_: object) -> NoReturn:
    raise KeyboardInterrupt


def main() -> None:
    """The console script: bad input is one line and status 2; SIGTERM stops as Ctrl-C does."""
    signal.signal(signal.SIGTERM, _terminate)
    with warnings.catch_warnings(), memory_kept():
        warnings.simplefilter("always", LinMDPWarning)
        warnings.showwarning = lambda message, *rest, **more: say(f"warning: {message}")
        raise SystemExit(_guarded())


def _guarded() -> int:
    try:
        status = app(standalone_mode=False)
        sys.stdout.flush()
        return status if isinstance(status, int) else 0
    except LinMDPError as error:
        stop(str(error), error.status)
    except SystemExit as ended:
        if not ended.code:  # not from here: an agent or a feature map that leaves as if all were done
            stop("a part of this program, or a module of --import, has called sys.exit().", 1)
        raise
    except MemoryError as error:
        more = f": {error}" if str(error) else ". Give more, as in --max-memory 1GiB, or a smaller task."
        stop(f"this does not fit into memory, or into what --max-memory allows{more}", 2)
    except (KeyboardInterrupt, typer.Abort):
        stop("stopped.", 1)
    except OSError as error:
        # the reader of standard output went away, or the disk under it is full: what is buffered cannot be saved
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        if error.errno in (errno.EMFILE, errno.ENFILE):
            say("linmdp: too many files are open: use fewer --jobs, or allow more with 'ulimit -n 1024'.")
        elif not isinstance(error, BrokenPipeError):
            say(f"linmdp: the output could not be written: {error.strerror}.")
        return 1
    except Exception as error:
        words = getattr(error, "format_message", None)  # wrong usage, found by typer
        if words is None:
            raise
        wrong, param = (getattr(*pair, None) for pair in ((error.__cause__, "errors"), (error, "param")))
        stop(f"The '{param.opts[0]}' option {ruled(wrong()[0])}" if wrong and param else str(words()), 2)
