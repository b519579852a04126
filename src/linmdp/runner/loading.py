"""Agents and policies from files and from folders of runs.

`agent.save(path)` and `linmdp run --out` write them, `linmdp.load_agent(path, env)` reads them. A run that was stored
without its agent is run again, which gives the same agent to the last bit.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Mapping
from itertools import groupby
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from linmdp.agents.base import Agent, under
from linmdp.agents.held import check_range
from linmdp.envs.guard import task_of
from linmdp.errors import (
    InvalidData,
    InvalidParameter,
    LinMDPError,
    LinMDPWarning,
    check_int,
    unknown,
    without_warnings,
)
from linmdp.io.tensorfile import TensorFile, read_tensors
from linmdp.results.run_folder import Ran, agent_file, read_folder
from linmdp.runner.policy import Policy
from linmdp.runner.registry import AGENTS, agent_parameters, make_agent, make_env, q_star
from linmdp.runner.spec import check_names, check_no_import
from linmdp.types import Task

LARGEST = 1e150
"""Numbers of a saved agent are below this in size: their products are finite."""

FEW = 6
"""Agents of a folder that a message names."""


class Trained(NamedTuple):
    """An agent at the end of a run, its environment and what that was made from, and what it was, in words."""

    agent: Agent
    env: Any
    spec: str | None
    words: str


def load_agent(path: str | Path, env: Any = None, number: int | None = None) -> Agent:
    """The agent in a file (of `agent.save`, or a checkpoint), or of run `number` (from 1 on) of a folder with runs.

    `env` is the environment of the agent, or its `Task`; it may be left out where the file names it.
    """
    return trained(Path(path), number, env).agent


def load_policy(path: str | Path, env: Any = None, number: int | None = None) -> Policy:
    """The greedy policy of a saved agent: it acts, and learns nothing."""
    return Policy(load_agent(path, env, number))


def trained(path: Path, number: int | None = None, env: Any = None, progress: bool = False) -> Trained:
    """The agent in a file, or of a run of a folder. `env` is an environment, its spec, or its task."""
    if path.is_dir():
        return _of_folder(path, number, env, progress)
    if number is not None and path.exists():
        raise InvalidParameter("The 'number' of a run must be left out for a file: it holds one agent.")
    return _of_file(path, env)


def _of_file(path: Path, env: Any) -> Trained:
    file = read_tensors(path, "agent", "checkpoint", "learner", signed=True)
    saved = file.meta.get("run")
    spec = saved.get("env") if isinstance(saved, dict) else None
    if env is None and not isinstance(spec, str):
        raise InvalidParameter(f"The 'env' of the agent in '{path}' must be given (--env): the file does not name it.")
    if env is None:
        env = _env_named(str(spec))
    elif isinstance(env, str):
        env, spec = make_env(env), env
    arrays = under("agent", file.arrays) if file.meta["kind"] != "agent" else file.arrays
    try:
        check_sizes(arrays)
        agent = _made(file, env)
        agent.load_state_dict(arrays)
    except LinMDPError as error:
        raise InvalidData(f"The agent in '{path}' cannot be used here. {error}") from error
    return Trained(agent, env, spec, f"{agent.name} on {spec or 'its environment'}, from {path.name}")


def check_sizes(arrays: Mapping[str, np.ndarray]) -> None:
    """Refuse numbers of a saved agent that are too large to go on with."""
    for key, array in arrays.items():
        if array.dtype.kind == "f":
            check_range(key, array, -LARGEST, LARGEST)


def _env_named(spec: str) -> Any:
    """The environment that a file names."""
    check_no_import(spec)
    return make_env(spec)


def _made(file: TensorFile, env: Any) -> Agent:
    """A new agent with the parameters in the file; what they make it allocate, the file must hold."""
    saved = file.meta.get("agent")
    if not isinstance(saved, dict) or not isinstance(saved.get("agent"), str):
        raise InvalidData("Its metadata must name the agent. They do not.")
    name = saved["agent"]
    if name not in AGENTS:
        unknown("agent", name, AGENTS)
    parameters = {key: value for key, value in saved.items() if key not in ("agent", "S", "A", "d", "H")}
    check_names(name, parameters, agent_parameters(name))
    task = env if isinstance(env, Task) else task_of(env)
    held = sum(array.nbytes for array in file.arrays.values())
    for key in ("M", "m"):  # samples of each step but the last that the agent has space for from the start
        if task.H > 1 and isinstance(parameters.get(key), int | float) and not parameters[key] <= held:
            raise InvalidData(f"The file must hold {key}={parameters[key]} samples per step. It has {held} bytes.")
    if name == "optimal":
        parameters["Q"] = q_star(env.unwrapped)
    make: Any = AGENTS[name]
    try:
        agent: Agent = make(task, **parameters)
    except (TypeError, OverflowError, AttributeError) as error:
        raise InvalidData(f"Its parameters cannot be used: {error}.") from error
    mine = agent._identity()
    for size in ("S", "A", "d", "H"):
        if saved.get(size) != mine[size] or isinstance(saved.get(size), bool):
            raise InvalidData(f"Its metadata must say {size}={mine[size]}, as its task. Got {saved.get(size)!r:.80}.")
    return agent


def _numbered(agents: list[str]) -> str:
    """Which numbers are whose: "1 to 3 lsvi-ucb, 4 random"; of many the first few."""
    places, parts = enumerate(agents, start=1), list[str]()
    for agent, group in groupby(places, key=lambda place: place[1]):
        first, *more = (number for number, _ in group)
        parts.append(f"{first}{f' to {more[-1]}' if more else ''} {agent}")
    return ", ".join(parts[:FEW]) + ", ..." * (len(parts) > FEW)


def _of_folder(folder: Path, number: int | None, env: Any, progress: bool) -> Trained:
    """The agent of a stored run: saved beside it, or else trained again."""
    if isinstance(env, str):
        raise InvalidParameter("The 'env' of a run in a folder must be left out: it is stored with the run.")
    found = read_folder(folder)
    if number is None and len(found.results) > 1:
        words = f"it has {len(found.results)} runs, {_numbered([result.agent for result in found.results])}"
        raise InvalidParameter(f"The 'number' of the run in '{folder}' must be given: {words}.")
    place = check_int("export", "number", 1 if number is None else number, low=1, high=len(found.results)) - 1
    chosen = found.results[place]
    saved = agent_file(folder, chosen.key)
    words = f"{chosen.agent} on {chosen.env}, seed {chosen.seed}, after {chosen.episodes:,} episodes"
    if saved is not None and saved.is_file():
        return _of_file(saved, _env_named(chosen.env) if env is None else env)._replace(spec=chosen.env, words=words)
    warnings.warn(f"no saved agent in {folder}: training it again ({words})", LinMDPWarning, stacklevel=4)
    return _trained_again(folder, chosen, progress)._replace(words=words)


def _trained_again(folder: Path, chosen: Ran, progress: bool) -> Trained:
    from linmdp.runner.loop import run

    env = _env_named(chosen.env)
    agent = make_agent(chosen.agent, env, chosen.episodes)
    with without_warnings():  # they were said when it ran for the first time
        again = run(
            env, agent, episodes=chosen.episodes, seed=chosen.seed, eval_every=chosen.episodes, progress=progress
        )
    if not math.isclose(again.reward, chosen.reward, rel_tol=1e-5, abs_tol=1e-5):  # stores have single precision
        raise InvalidParameter(
            f"The run in '{folder}' must give the same rewards when it is run again: it was made with checkpoints, by "
            f"another version, or its environment is not the same every time. Export its checkpoint file instead. "
            f"Got {again.reward:g} in all, not {chosen.reward:g}."
        )
    return Trained(agent, env, chosen.env, "")
