"""The options and arguments that several commands share."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from linmdp.errors import check_int
from linmdp.plugins import import_modules
from linmdp.runner.spec import parse_value


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
        from linmdp.agents.budget import parse_bytes

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
