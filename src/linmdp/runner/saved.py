"""Runs and agents in files: safetensors with a checksum, written whole or not at all.

A run is saved between two episodes: the agent, the curves, the counters and, of a linear MDP, its random streams. The
randomness inside any other environment cannot be saved, so it is seeded afresh after each checkpoint from the run's
seed and the episode, whether the run was interrupted or not.

`agent.save(path)` and `linmdp run --out` write agents, `linmdp.load_agent(path, env)` reads them. A run that was stored
without its agent is run again, which gives the same agent to the last bit."""

from __future__ import annotations

import hashlib
import math
import os
import warnings
from collections.abc import Mapping
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from linmdp.agents.base import Agent, load_array, prefixed, under
from linmdp.agents.held import check_range
from linmdp.agents.sb3 import SB3Agent
from linmdp.envs.base import LinearModel
from linmdp.envs.guard import task_of
from linmdp.envs.linear import LinearMDPEnv
from linmdp.errors import (
    InvalidData,
    InvalidParameter,
    LinMDPError,
    LinMDPWarning,
    check_int,
    invalid,
    unknown,
    without_warnings,
)
from linmdp.features.bilinear import BilinearFeatures
from linmdp.io.files import output_folder, write_atomic
from linmdp.io.tensorfile import Damaged, TensorFile, packed, read_tensors
from linmdp.results.run_folder import Ran, agent_file, read_folder
from linmdp.results.summary import most
from linmdp.runner.policy import Policy
from linmdp.runner.registry import AGENTS, agent_parameters, make_agent, make_env, q_star
from linmdp.runner.spec import check_names, check_no_import
from linmdp.types import Task

if TYPE_CHECKING:
    from linmdp.runner.loop import RunState

KEPT = 2
"""Checkpoints of a run that stay: the newest, and the one before it in case the newest is damaged."""


class Checkpoints:
    """The checkpoints of one run in a folder: `seed-S.episode-K.safetensors`, the two newest."""

    def __init__(self, folder: Path, every: int | None, state: RunState) -> None:
        if isinstance(state.agent, SB3Agent):
            rule = f"left out for {state.agent.name}, whose library keeps its own state"
            invalid("run", "checkpoint", rule, str(folder))
        every = max(1, state.episodes // 20) if every is None else every
        self.every = check_int("run", "every", every, low=1)
        self.folder, self.run = output_folder(folder), state
        self._stem = f"seed-{state.seed}"

    def resume(self) -> int:
        """Go on from the newest checkpoint that is good; how many episodes it has."""
        for leftover in self.folder.glob(f".{self._stem}.episode-*"):  # of a process that was killed while it wrote
            leftover.unlink(missing_ok=True)
        bad: list[tuple[Path, Damaged]] = []
        for path in self._paths():
            try:
                self._restore(path, read_tensors(path, "checkpoint", signed=True))
            except Damaged as error:
                bad.append((path, error))
                continue
            self._set_aside(bad)
            return self.run.k
        if bad:
            raise InvalidData(f"{bad[0][1]} No good one is in '{self.folder}': delete them to start anew.")
        return 0

    def _set_aside(self, bad: list[tuple[Path, Damaged]]) -> None:
        for path, error in bad:
            os.replace(path, path.with_suffix(".damaged"))
            words = f"{error} It is set aside, and the run goes on from episode {self.run.k}, the last good one."
            self.run.notes.append(words)
            warnings.warn(words, LinMDPWarning, stacklevel=4)

    def episode_done(self) -> None:
        """Save the run if it is time, and drop what is older than the last two."""
        run = self.run
        if run.k % self.every and run.k != run.episodes:
            return
        write_atomic(self.folder / f"{self._stem}.episode-{run.k:010d}.safetensors", self._packed())
        self._seed_afresh()
        for path in self._paths()[KEPT:]:
            path.unlink(missing_ok=True)

    def save_stopped(self) -> str:
        """Save the agent as it is in the middle of an episode that failed; where it is, in words."""
        path = self.folder / f"{self._stem}.stopped.safetensors"
        try:
            self.run.agent.save(path)
        except LinMDPError as error:
            return f"What was learned could not be saved: {error}"
        return f"What was learned until then is saved in '{path}' (linmdp.load_agent reads it)."

    def _paths(self) -> list[Path]:
        """The checkpoints of this run's seed, newest first."""
        found = self.folder.glob(f"{self._stem}.episode-*.safetensors")
        return sorted((path for path in found if path.stem.rpartition("-")[2].isdigit()), reverse=True)

    def _seed_afresh(self) -> None:
        """Where the randomness of the environment cannot be saved, the next episode has a seed of its own."""
        run = self.run
        if not isinstance(run.env.unwrapped, LinearMDPEnv):
            sequence = np.random.SeedSequence(run.seed, spawn_key=(2, run.k))  # 0 and 1 are the run's own
            run.next_seed = int(sequence.generate_state(1)[0])

    def _identity(self) -> dict[str, Any]:
        """What a checkpoint must agree with; its agent is checked by the agent itself."""
        from linmdp import __version__

        run = self.run
        own = {"env": run.name, "seed": run.seed, "episodes": run.episodes, "eval_every": run.eval_every}
        if not isinstance(run.env.unwrapped, LinearMDPEnv):
            own["every"] = self.every
        return own | {"linmdp": __version__, "numpy": np.__version__, "environment": _fingerprint(run.env)}

    def _packed(self) -> bytes:
        run = self.run
        state = {
            "k": run.k,
            "steps": run.steps,
            "peak": run.peak,
            "planning": run.planning,
            "before": list(run.before),
            "costs": run.costs,
            "certificates": [run.certified[0], *run.certificates],
            "seconds": [run.clock.cpu, run.clock.wall],
            "evaluated": run.meter.version,
            "probe": run.probe.state(),
        }
        if isinstance(run.env.unwrapped, LinearMDPEnv):
            state["random"] = run.env.unwrapped.random_state()
        log, n = run.log, run.log.points(run.k)
        curves = {"rewards": log.rewards[:n], "regret": log.gaps[:n], "gaps": run.meter.gaps}
        arrays = curves | prefixed("agent", run.agent.state_dict())
        words = {"run": self._identity(), "agent": run.agent._identity(), "state": state}
        return packed("checkpoint", words, arrays)

    def _restore(self, path: Path, file: TensorFile) -> None:
        """Become the run in a file, if it is this one's."""
        saved, mine = file.meta.get("run"), self._identity()
        for name in mine:
            found = saved.get(name) if isinstance(saved, dict) else None
            if found != mine[name]:
                raise InvalidData(
                    f"The checkpoint '{path}' must be of {name}={mine[name]!r}, as this run. Got {found!r:.80}."
                )
        try:
            self.run.agent.load_state_dict(under("agent", file.arrays))
        except InvalidData as error:
            raise InvalidData(f"The checkpoint '{path}' is of another agent. {error}") from error
        try:
            self._restore_state(file.meta["state"], file.arrays)
        except (LinMDPError, KeyError, TypeError, ValueError, OverflowError) as error:
            raise InvalidData(f"The checkpoint '{path}' lacks a part: {error}.") from error

    def _restore_state(self, state: dict[str, Any], arrays: dict[str, np.ndarray]) -> None:
        run = self.run
        k = check_int("a checkpoint", "k", state["k"], low=1, high=run.episodes)
        n = run.log.points(k)
        load_array(run.log.rewards[:n], arrays, "rewards")
        load_array(run.log.gaps[:n], arrays, "regret")
        load_array(run.meter.gaps, arrays, "gaps")
        run.meter.version = state["evaluated"]
        run.probe.restore(state["probe"])
        updates, resets, switches = map(int, state["before"])
        run.peak, run.before = int(state["peak"]), (updates, resets, switches)
        run.planning = most((state["planning"], run.agent.planning_bytes))
        cpu, wall = map(float, state["seconds"])
        run.clock.cpu, run.clock.wall = run.clock.cpu + cpu, run.clock.wall + wall
        run.costs[:] = [[float(x) for x in point] for point in state["costs"]]
        run.certified[0], *run.certificates[:] = map(float, state["certificates"])
        run.steps = check_int("a checkpoint", "steps", state["steps"], low=k, high=k * run.agent.task.H)
        run.k = run.log.k = k
        run.next_seed = None
        if "random" in state:
            run.env.unwrapped.restore_random_state(state["random"])
        self._seed_afresh()


def _fingerprint(env: Any) -> str:
    """The same for the same environment: of a linear MDP all that it is made of, of any other its task."""
    env = env.unwrapped
    task, model = env.task, getattr(env, "model", None)
    words = [getattr(task, name) for name in ("S", "A", "d", "H", "reward_range") if task.knows(name)]
    if not isinstance(model, LinearModel):
        return hashlib.sha256(repr(words).encode()).hexdigest()
    models, path = getattr(env, "models", (model,)), getattr(env, "path", None)
    words += [model.noise, model.start, *([path.kind, path.every, path.J, path.seed] if path else [])]
    whole = hashlib.sha256(repr(words).encode())
    features = model.features
    phi = (features.F, features.psi) if isinstance(features, BilinearFeatures) else (features.columns,)
    for array in (*phi, *(array for m in models for array in (m.theta, m.mu))):
        part = array if array.strides[0] else array[:1]  # steps that are all the same
        whole.update(np.ascontiguousarray(part).data)
    return whole.hexdigest()


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
