"""What several commands share: options and arguments, and what a user hears before a run starts."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NoReturn

import typer

from linmdp.errors import check_int
from linmdp.io.units import human_bytes, parse_bytes
from linmdp.plugins import import_modules
from linmdp.runner.spec import parse_value

if TYPE_CHECKING:
    from linmdp.runner.batch import Job


def _env_names(incomplete: str) -> list[str]:
    """For the completion of a shell."""
    from linmdp.runner.registry import ENVS

    return [name for name in ENVS if name.startswith(incomplete)]


def _agent_names(incomplete: str) -> list[str]:
    from linmdp.runner.registry import AGENTS

    return [name for name in AGENTS if name.startswith(incomplete)]


def _processes(context: typer.Context, jobs: int | None) -> int | None:
    from linmdp.runner.batch import MOST_PROCESSES

    return None if jobs is None else check_int(str(context.info_name), "jobs", jobs, low=1, high=MOST_PROCESSES)


EnvSpec = Annotated[
    str, typer.Argument(metavar="ENV", help="NAME or NAME:key=value,... ('linmdp envs')", autocompletion=_env_names)
]
AgentSpec = Annotated[
    str,
    typer.Argument(metavar="AGENT", help="NAME or NAME:key=value,... ('linmdp agents')", autocompletion=_agent_names),
]
AgentSpecs = Annotated[
    list[str], typer.Argument(metavar="AGENT...", help="two or more agents", autocompletion=_agent_names)
]
Episodes = Annotated[int, typer.Option("--episodes", "-k", help="K, the number of episodes")]
Seeds = Annotated[int, typer.Option(help="how many seeds")]
SeedsOrAuto = Annotated[
    Any,
    typer.Option(parser=parse_value, metavar="N|auto", help="how many seeds; auto: until it is decided who differs"),
]
FirstSeed = Annotated[int, typer.Option("--seed", help="the first seed")]
Jobs = Annotated[int | None, typer.Option("--jobs", "-j", callback=_processes, help="processes; default: all cores")]
EvalEvery = Annotated[int, typer.Option("--eval-every", help="regret in every n-th episode only")]
Device = Annotated[str, typer.Option(help="cpu or cuda")]
AsJson = Annotated[bool, typer.Option("--json", help="print one JSON object per run, and nothing else")]
Track = Annotated[str | None, typer.Option(metavar="TRACKER", help="tensorboard, wandb or mlflow, under --out")]
Checkpoint = Annotated[Path | None, typer.Option(metavar="DIR", help="save runs on the way; the same command resumes")]
Every = Annotated[int | None, typer.Option(metavar="N", help="episodes between checkpoints; default: K / 20")]
Save = Annotated[bool, typer.Option("--save/--no-save", help="save the agents under --out")]
Verdict = Annotated[bool, typer.Option("--verdict/--no-verdict", help="compare with random play")]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="start even if it takes more than an hour")]
StoreFolder = Annotated[Path, typer.Option("--out", "-o", help="folder of the store, which resumes")]
RunOrAgent = Annotated[Path, typer.Argument(metavar="RUN", help="folder of run, compare or sweep, or a saved agent")]
Number = Annotated[int | None, typer.Option(help="which run of the folder, from 1 on")]
Out = Annotated[Path | None, typer.Option("--out", "-o", help="folder for results, table and figures")]


def _imported(modules: list[str] | None) -> list[str] | None:
    import_modules(modules or [])
    return modules


def _limited(most: str | None) -> str | None:
    from linmdp.io.memory import limit_memory

    size = None
    if most is not None:
        size = parse_bytes("the command", most, parameter="max_memory")
    limit_memory(size, enforced="cuda" not in sys.argv)  # a GPU's library reserves more than it ever takes
    return most


MaxMemory = Annotated[
    str | None,
    typer.Option(
        "--max-memory",
        metavar="SIZE",
        callback=_limited,
        is_eager=True,
        help="memory limit, as in 8GiB; default: a quarter",
    ),
]
Import = Annotated[
    list[str] | None,
    typer.Option(
        "--import",
        metavar="MODULE",
        callback=_imported,
        is_eager=True,
        help="import a module that registers agents or tasks",
    ),
]


WORTH_SAYING = 60.0
"""Seconds from which on a forecast is worth a line."""


def say(words: str) -> None:
    """A line on standard error."""
    if sys.stderr is not None:  # print(file=None) would write to standard output
        print(words, file=sys.stderr, flush=True)


def stop(words: str, status: int) -> NoReturn:
    """End the program with a line."""
    say(f"linmdp: {words}")
    raise SystemExit(status)


def stop_if_damaged(words: Sequence[str]) -> None:
    """Name what is damaged, after the rest was shown: status 1, since not all was."""
    for line in dict.fromkeys(words):
        say(f"linmdp: {line}.")
    if words:
        raise SystemExit(1)


def checked_start(
    env: str, agents: Sequence[str], *, jobs: int | None, out: Path | None, yes: bool, **sizes: Any
) -> list[Job]:
    """The jobs of `run` and `compare`, if memory is enough for them and so much time is wanted; it says what it found.

    `jobs` are processes; what is stored in the folder `out` already takes no time.
    """
    from linmdp.runner.start import prepared

    start = prepared(env, agents, **sizes)
    words = start.chosen()  # as it is before a trial run
    if left := _left(start.jobs, out):
        start.check_memory(left, jobs)
        size = max(start.agents[job.agent].bytes_after(job.episodes) for job in left)
        confirm(start.seconds(left, jobs), size, yes, "fewer --episodes or --seeds, more --jobs, or linmdp check")
    if words:
        say(words)
    return start.jobs


def confirm(seconds: float, size: int, yes: bool, less: str) -> None:
    """Say what it will take: time, and bytes of an agent.

    More than an hour must be wanted: by an answer on a terminal, elsewhere by --yes.
    """
    from linmdp.runner.start import LONG, in_words

    terminal = sys.stdin is not None and sys.stdin.isatty() and sys.stderr is not None and sys.stderr.isatty()
    if seconds > LONG and not (yes or terminal):
        stop(f"this will take {in_words(seconds)}: use --yes to start it all the same, or {less}.", 2)
    if seconds > WORTH_SAYING:
        say(f"forecast: {in_words(seconds)}, at most {human_bytes(size)} an agent")
    if seconds > LONG and not yes and not typer.confirm("Start?", err=True):
        stop("not started.", 1)


def _left(planned: list[Job], out: Path | None) -> list[Job]:
    """The jobs that the folder does not have; a folder that cannot be written to is refused here."""
    if out is None:
        return planned
    from linmdp.results.store import opened_store
    from linmdp.runner.sweep import run_key

    with opened_store(out) as store:
        done = store.keys()
    return [job for job in planned if run_key(job) not in done]
