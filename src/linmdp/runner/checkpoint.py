"""Checkpoints of a run, and agents in files: safetensors with a checksum, written whole or not at all.

A run is saved between two episodes: the agent, the curves, the counters and, of a linear MDP, its random streams. The
randomness inside any other environment cannot be saved, so it is seeded afresh after each checkpoint from the run's
seed and the episode, whether the run was interrupted or not.
"""

from __future__ import annotations

import hashlib
import os
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from linmdp.agents.base import load_array, prefixed, under
from linmdp.agents.sb3 import SB3Agent
from linmdp.envs.base import LinearModel
from linmdp.envs.linear import LinearMDPEnv
from linmdp.errors import InvalidData, LinMDPError, LinMDPWarning, check_int, invalid
from linmdp.features.bilinear import BilinearFeatures
from linmdp.io.files import output_folder, write_atomic
from linmdp.io.tensorfile import Damaged, TensorFile, packed, read_tensors
from linmdp.results.summary import most

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
