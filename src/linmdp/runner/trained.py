"""The agent of a stored run: made again by running it again, which gives the same one to the last bit."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any, NamedTuple

from linmdp.agents.base import Agent
from linmdp.errors import InvalidParameter, LinMDPWarning, check_int
from linmdp.results.stored import read_folder
from linmdp.runner.loop import run
from linmdp.runner.registry import make_agent, make_env
from linmdp.types import RunResult


class Trained(NamedTuple):
    """An agent at the end of a run, its environment, and what it was, in words."""

    agent: Agent
    env: Any
    words: str


def trained(path: Path, number: int | None, progress: bool = False) -> Trained:
    """The agent of run `number` (from 1 on) of a folder that 'linmdp run --out' or 'linmdp sweep' wrote."""
    chosen = _chosen(path, number)
    env = make_env(chosen.env)
    agent = make_agent(chosen.agent, env, chosen.episodes)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", LinMDPWarning)  # they were said when it ran for the first time
        run(env, agent, episodes=chosen.episodes, seed=chosen.seed, eval_every=chosen.episodes, progress=progress)
    words = f"{chosen.agent} on {chosen.env}, seed {chosen.seed}, after {chosen.episodes:,} episodes"
    return Trained(agent, env, words)


def _chosen(path: Path, number: int | None) -> RunResult:
    results = read_folder(path).results
    if number is None and len(results) > 1:
        raise InvalidParameter(f"The 'number' of the run in '{path}' must be given: it has {len(results)} runs.")
    return results[check_int("export", "number", number or 1, low=1, high=len(results)) - 1]
