"""`linmdp record`: what an agent does in an environment, as a Minari dataset."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from linmdp.cli import options as opt
from linmdp.cli.start import say


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
