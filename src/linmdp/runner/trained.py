"""The agent of a stored run: read from a file, or made again by running it again, the same to the last bit."""

from __future__ import annotations

import math
import warnings
from pathlib import Path
from typing import Any, NamedTuple

from linmdp.agents.base import Agent
from linmdp.errors import InvalidParameter, LinMDPWarning, check_int
from linmdp.io.tensorfile import read_tensors
from linmdp.results.stored import read_folder
from linmdp.runner.loop import run
from linmdp.runner.registry import make_agent, make_env
from linmdp.runner.saved import load_agent
from linmdp.types import RunResult


class Trained(NamedTuple):
    """An agent at the end of a run, its environment, and what it was, in words."""

    agent: Agent
    env: Any
    words: str


def trained(path: Path, number: int | None = None, env: str | None = None, progress: bool = False) -> Trained:
    """The agent in a file, or of run `number` (from 1 on) of a folder of 'linmdp run --out' or 'linmdp sweep'.

    A checkpoint names its environment; for a file of `agent.save`, which does not, `env` does.
    """
    if path.is_file():
        if number is not None:
            raise InvalidParameter("The 'number' of a run must be left out for a file: it holds one agent.")
        return _read(path, env)
    if env is not None:
        raise InvalidParameter("The 'env' of a run in a folder must be left out: it is stored with the run.")
    return _run_again(path, number, progress)


def _read(path: Path, env_spec: str | None) -> Trained:
    saved = read_tensors(path, "agent", "checkpoint", signed=True).meta.get("run")
    spec = env_spec or (saved.get("env") if isinstance(saved, dict) else None)
    if not isinstance(spec, str):
        raise InvalidParameter(f"The 'env' of the agent in '{path}' must be given: the file does not name it.")
    env = make_env(spec)
    agent = load_agent(path, env)
    return Trained(agent, env, f"{agent.name} on {spec}, from {path.name}")


def _run_again(path: Path, number: int | None, progress: bool) -> Trained:
    chosen = _chosen(path, number)
    env = make_env(chosen.env)
    agent = make_agent(chosen.agent, env, chosen.episodes)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", LinMDPWarning)  # they were said when it ran for the first time
        again = run(
            env, agent, episodes=chosen.episodes, seed=chosen.seed, eval_every=chosen.episodes, progress=progress
        )
    if not math.isclose(again.reward, chosen.reward, rel_tol=1e-5, abs_tol=1e-5):  # curves are stored in half precision
        raise InvalidParameter(
            f"The run in '{path}' must give the same rewards when it is run again: it was made with checkpoints, by "
            f"another version, or its environment is not the same every time. Export its checkpoint file instead. "
            f"Got {again.reward:g} in all, not {chosen.reward:g}."
        )
    words = f"{chosen.agent} on {chosen.env}, seed {chosen.seed}, after {chosen.episodes:,} episodes"
    return Trained(agent, env, words)


def _chosen(path: Path, number: int | None) -> RunResult:
    results = read_folder(path).results
    if number is None and len(results) > 1:
        raise InvalidParameter(f"The 'number' of the run in '{path}' must be given: it has {len(results)} runs.")
    return results[check_int("export", "number", 1 if number is None else number, low=1, high=len(results)) - 1]
