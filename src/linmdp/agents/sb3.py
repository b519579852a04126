"""Stable-Baselines3's DQN and PPO as agents: what a user would pick, on raw observations, for as many episodes.

The library drives the environment itself, so these agents bring their own loop (`SB3Agent.learn`); `linmdp.run` calls
it with an environment of raw observations that takes the measurements. Everything of the library is imported when an
agent is made, never before.
"""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Mapping
from contextlib import AbstractContextManager
from typing import Any, ClassVar

import numpy as np

from linmdp.agents.base import Agent, StateDict
from linmdp.errors import InvalidParameter, check_int, check_number, invalid, one_line
from linmdp.types import Array, IntArray, State, Task

RESERVED = ("self", "policy", "env", "seed", "device", "verbose", "tensorboard_log", "stats_window_size")
"""What we say ourselves; a user's parameters are the others that can be written in a spec."""

LARGEST_BUFFER = 1_000_000
"""The library's default. A run that is shorter gets space for its own steps: more would never be filled."""


class SB3Agent(Agent):
    """An agent of Stable-Baselines3, with the library's own parameters and defaults (policy "MlpPolicy").

    It learns on the raw observations of the environment, not on features. Each run starts anew.
    `raw` is the environment as Gymnasium has it, with a `scaler` from states to its observations.
    """

    needs_features = False
    algorithm: ClassVar[str]
    settings: ClassVar[Mapping[str, Any]] = {}
    """Defaults in place of the library's."""

    def __init__(self, task: Task, *, raw: Any, episodes: int | None = None, **parameters: Any) -> None:
        super().__init__(task)
        self._given, known = parameters, self.parameters()
        for name, value in parameters.items():
            _check_value(self.name, known[name], value)
        self._scaler = raw.scaler
        self._steps = None if episodes is None else episodes * task.H
        self._model = self._made(raw, seed=0)

    @classmethod
    def library(cls) -> Any:
        """The class in stable_baselines3."""
        try:
            import stable_baselines3
        except ModuleNotFoundError as error:
            raise InvalidParameter(
                f"{cls.name} needs {error.name}, which is not installed: pip install 'linmdp[baselines]'."
            ) from error
        return getattr(stable_baselines3, cls.algorithm)

    @classmethod
    def parameters(cls) -> dict[str, inspect.Parameter]:
        """The parameters of the library's constructor that a spec can give."""
        found = inspect.signature(cls.library().__init__).parameters
        own = {n: p for n, p in found.items() if n not in RESERVED and not n.endswith(("_class", "_kwargs", "_model"))}
        return own | {name: own[name].replace(default=value) for name, value in cls.settings.items()}

    def get_params(self) -> dict[str, Any]:
        """Every parameter: as given, or the library's default."""
        defaults = {name: p.default for name, p in self.parameters().items()}
        return defaults | self._filled()

    def _filled(self) -> dict[str, Any]:
        """What is passed to the library."""
        return {**self.settings, **self._given}

    def _made(self, env: Any, seed: int) -> Any:
        from stable_baselines3.common.vec_env import DummyVecEnv

        given = self._filled()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # its advice: sizes of batches, memory of buffers
            try:
                return self.library()("MlpPolicy", DummyVecEnv([lambda: env]), seed=seed, device="cpu", **given)
            except (AssertionError, TypeError, ValueError) as error:
                words = one_line(str(error).strip() or type(error).__name__, 200)
                raise InvalidParameter(f"stable-baselines3 cannot make {self.name} with {given}: {words}") from error

    def act(self, h: int, state: State) -> int:
        """The greedy action."""
        return int(self._model.predict(self._scaler(state), deterministic=True)[0])

    def policy(self, h: int) -> Array | IntArray:
        """The greedy action of each state, (S,)."""
        assert self.task.S is not None
        actions: IntArray = self._model.predict(np.arange(self.task.S), deterministic=True)[0]
        return actions

    def q_values(self, h: int, state: State) -> Array:
        """One for the greedy action, zero for the others: the library's agents do not all estimate Q."""
        return np.where(np.arange(self.task.A) == self.act(h, state), 1.0, 0.0)

    @property
    def nbytes(self) -> int:
        """Bytes of the networks, their gradients, the optimizer's state, and the replay or rollout buffer."""
        return model_bytes(self._model)

    def bytes_after(self, episodes: int) -> int:
        """With the gradients and Adam's two moments, each of the networks' size, that come with the first update."""
        return _lasting_bytes(self._model) + 3 * sum(int(p.nbytes) for p in self._model.policy.parameters()) + 4096

    def state_dict(self) -> StateDict:
        raise InvalidParameter(f"{self.name} cannot be saved here: stable-baselines3 keeps its state in its own files.")

    def load_state_dict(self, state: Mapping[str, np.ndarray]) -> None:
        self.state_dict()

    def learn(self, raw: Any, *, episodes: int, clock: AbstractContextManager[None]) -> None:
        """A new model in the library's own loop, on one thread, until `raw.finished` episodes are that many.

        `clock` is entered while it learns.
        """
        import torch

        self._steps, threads = episodes * self.task.H, torch.get_num_threads()
        torch.set_num_threads(1)
        try:
            self._model = self._made(raw, seed=int(self.rng.bit_generator.seed_seq.generate_state(1)[0]))
            with clock:
                self._model.learn(self._steps, callback=lambda *_: raw.finished < episodes, log_interval=None)
        finally:
            torch.set_num_threads(threads)
        self.updates = int(self._model._n_updates)


class SB3DQN(SB3Agent):
    """DQN of Stable-Baselines3 on raw observations; `buffer_size` is at most the steps of the run unless given."""

    name = "sb3-dqn"
    algorithm = "DQN"

    def _filled(self) -> dict[str, Any]:
        size = LARGEST_BUFFER if self._steps is None else min(LARGEST_BUFFER, self._steps)
        return {"buffer_size": size} | super()._filled()


class SB3PPO(SB3Agent):
    """PPO of Stable-Baselines3 on raw observations; fewer than `n_steps` (2,048) steps are no update."""

    name = "sb3-ppo"
    algorithm = "PPO"


class SB3DQNFew(SB3DQN):
    """DQN of Stable-Baselines3 with settings for few steps: the library's own are for a million."""

    name = "sb3-dqn-few"
    settings: ClassVar = {
        "learning_rate": 0.002,
        "learning_starts": 500,
        "target_update_interval": 500,
        "exploration_fraction": 0.3,
    }


class SB3PPOFew(SB3PPO):
    """PPO of Stable-Baselines3 with settings for few steps: the library's own are for a million."""

    name = "sb3-ppo-few"
    settings: ClassVar = {"learning_rate": 0.001, "n_steps": 512, "ent_coef": 0.01}


def model_bytes(model: Any) -> int:
    """Bytes of the networks, their gradients, the optimizer's state, and the replay or rollout buffer."""
    policy = model.policy
    tensors = [p.grad for p in policy.parameters() if p.grad is not None]
    tensors += [v for state in policy.optimizer.state.values() for v in state.values() if hasattr(v, "nbytes")]
    return _lasting_bytes(model) + int(sum(t.nbytes for t in tensors))


def _lasting_bytes(model: Any) -> int:
    """Bytes of the networks and the buffer, which are there from the start."""
    tensors = [*model.policy.parameters(), *model.policy.buffers()]
    buffers = (getattr(model, name, None) for name in ("replay_buffer", "rollout_buffer"))
    arrays = [a for buffer in buffers if buffer is not None for a in vars(buffer).values() if isinstance(a, np.ndarray)]
    return int(sum(t.nbytes for t in tensors) + sum(a.nbytes for a in arrays))


def _check_value(owner: str, parameter: inspect.Parameter, value: Any) -> None:
    """A value of the kind that the library's default is of."""
    name, default = parameter.name, parameter.default
    if isinstance(default, bool):
        if not isinstance(value, bool):
            invalid(owner, name, "true or false", value)
    elif isinstance(default, int) and parameter.annotation is not float:
        low = -1 if default < 0 or name == "gradient_steps" else 0 if name == "learning_starts" else 1
        check_int(owner, name, value, low=low)
    elif not (default is None and value is None):
        check_number(owner, name, value, low=0.0)
