"""The environment of a task as other libraries see it: raw observations, episode after episode."""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces

from linmdp.envs.games import Game
from linmdp.envs.guard import Guard
from linmdp.errors import InvalidParameter
from linmdp.features.learned import Layout
from linmdp.features.unit import HashedFeatures
from linmdp.types import Array, State


class Watch:
    """Who follows the episodes; this one pays no attention."""

    def options(self, k: int) -> dict[str, Any] | None:
        """Episode k is about to begin: the options of its reset."""
        return None

    def started(self, k: int, state: State) -> None:
        """Episode k begins in `state`."""

    def paid(self, reward: float) -> None:
        """A step has paid that."""


class Scaler:
    """Raw observations as networks like them: bytes scaled to [0, 1], codes one-hot, other numbers as they are.

    Finite states stay whole numbers, in a Discrete space, which libraries make one-hot themselves.
    """

    def __init__(self, env: Any) -> None:
        self.finite = env.unwrapped.task.S is not None
        self.space: spaces.Space[Any]
        if self.finite:
            self.space = spaces.Discrete(env.unwrapped.task.S)
            return
        inner = env.observation_space
        task = env.unwrapped.task
        if task.knows("features") and isinstance(task.features, HashedFeatures):
            raise InvalidParameter("Raw observations are not kept where states are hashed: give features=auto.")
        if not isinstance(inner, spaces.Box | spaces.MultiBinary):
            raise InvalidParameter(f"Raw observations must be Box, MultiBinary or Discrete. Got {inner}.")
        self.layout: Layout = _layout(env) or (("box", int(np.prod(inner.shape))),)
        of_bytes = inner.dtype == np.uint8
        self.scale = np.float32(1 / 255 if of_bytes else 1.0)
        low, high = (0.0, 1.0) if of_bytes else (-np.inf, np.inf)
        self.space = spaces.Box(low, high, (sum(n for _, n in self.layout),), np.float32)

    def __call__(self, state: State) -> Any:
        """One observation: a whole number, or (width,) float32."""
        if self.finite:
            return int(state)
        numbers, pieces, at = np.asarray(state).ravel(), [], 0
        for kind, n in self.layout:
            if kind == "box":
                pieces.append(numbers[at : at + n].astype(np.float32) * self.scale)
                at += n
            else:
                pieces.append((np.arange(n) == numbers[at]).astype(np.float32))
                at += 1
        joined: Array = np.concatenate(pieces)
        return joined


def _layout(env: Any) -> Layout | None:
    """The parts of the observations, if a `Game` is inside."""
    while isinstance(env, gymnasium.Wrapper):
        if isinstance(env, Game):
            return env.layout
        env = env.env
    return None


class RawEpisodes(gymnasium.Env[Any, Any]):
    """The environment of a task, seen raw. The first reset has the seed that is given; later ones go on from there."""

    metadata: dict[str, Any] = {"render_modes": []}  # noqa: RUF012 (Gymnasium declares it an instance attribute)

    def __init__(self, env: Any, first_seed: int = 0, watch: Watch | None = None) -> None:
        self._guard, self.scaler, self._watch = Guard(env), Scaler(env), watch or Watch()
        self._seed: int | None = first_seed
        self._k, self._h = -1, 0
        self.observation_space = self.scaler.space
        self.action_space = spaces.Discrete(env.unwrapped.task.A)

    @property
    def finished(self) -> int:
        """Episodes that have ended: the one after is begun at once."""
        return self._k

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        """Begin the next episode."""
        self._k, self._h = self._k + 1, 0
        options = self._watch.options(self._k)  # which finishes the episode before
        state = self._guard.reset(self._k, self._seed, options)
        self._seed = None
        self._watch.started(self._k, state)
        return self.scaler(state), {}

    def step(self, action: int) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        state, reward, terminated, truncated = self._guard.step(self._k, self._h, int(action))
        self._watch.paid(reward)
        self._h += 1
        return self.scaler(state), reward, terminated, truncated, {}
