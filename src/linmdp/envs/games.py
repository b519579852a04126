"""Gymnasium environments by their ids, and with flat observations: what linearization learns from and plays in."""

from __future__ import annotations

import re
import warnings
from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces

from linmdp.envs.spaces import flat, layout_of, text_notes
from linmdp.errors import (
    FAULTS,
    InvalidParameter,
    LinMDPWarning,
    UnknownName,
    check_flag,
    described,
    needed,
    one_number,
    unknown,
)
from linmdp.features.learned import width_of

TWINS = (("Taxi-v3", "Taxi-v4"), ("CliffWalking-v0", "CliffWalking-v1"))
"""Versions that are the same task with default parameters: a release of Gymnasium has one or the other."""


def make_gym(id: str, kwargs: dict[str, Any]) -> gymnasium.Env[Any, Any]:
    """gymnasium.make, and one trial reset: what an environment raises there is about its parameters.

    The `-ram-v5` ids of older ale-py versions, `ALE/Alien-ram-v5`, are taken as `ALE/Alien-v5` seen through its RAM.
    """
    name, extra = resolved(id)
    if name not in gymnasium.registry:
        name = next((twin for pair in TWINS if name in pair for twin in pair if twin in gymnasium.registry), name)
    if name.startswith("ALE/"):
        fix = "pip install 'linmdp[linearize]' (ale-py is GPL-2.0)"
        ale_py = needed("ale_py", f"'{id}' needs ale-py, which is not installed: {fix}.")
        ale_py.ALEInterface.setLoggerMode(ale_py.LoggerMode.Error)  # no banner
        gymnasium.register_envs(ale_py)
    elif name.startswith(("MiniGrid-", "BabyAI-")):
        needed("minigrid", f"'{id}' needs minigrid, which is not installed: pip install 'linmdp[minigrid]'.")
    try:
        with warnings.catch_warnings():
            # Box2D's import dies, and Python with it, where this warning of its C code is an error (python -W error).
            warnings.filterwarnings("ignore", message="builtin type .* has no __module__", category=DeprecationWarning)
            env = gymnasium.make(name, **{**extra, **kwargs})
        env.reset(seed=0)
    except gymnasium.error.UnregisteredEnv:
        package, slash, _ = name.partition("/")
        if slash and not any(known.startswith(f"{package}/") for known in gymnasium.registry):
            fix = f"The package that has it must be imported first: --import MODULE, such as {package.lower()}."
            raise UnknownName(f"There is no Gymnasium environment '{id}'. {fix}") from None
        unknown("Gymnasium environment", id, gymnasium.registry)
    except gymnasium.error.DependencyNotInstalled as error:
        fix = " Or pip install 'linmdp[box2d]'." if "box2d" in str(error).lower() else ""
        raise InvalidParameter(f"Gymnasium cannot make '{id}'. {described(error)}.{fix}") from error
    except FAULTS as error:
        raise InvalidParameter(f"Gymnasium cannot make '{id}'. {described(error)}.") from error
    return env


def resolved(id: str) -> tuple[str, dict[str, Any]]:
    """An id and its keyword arguments, with the alias of RAM games resolved."""
    game = re.fullmatch(r"(ALE/\w+)-ram-v5", id)
    return (f"{game[1]}-v5", {"obs_type": "ram"}) if game else (id, {})


class Game(gymnasium.Wrapper[Any, Any, Any, Any]):
    """An environment with flat observations, (width,) bytes or float32, where a lost life ends the episode.

    Parameters
    ----------
    id : a Gymnasium id with discrete actions
    kwargs : passed to `gymnasium.make`
    """

    def __init__(self, id: str, **kwargs: Any) -> None:
        super().__init__(make_gym(id, kwargs))
        self.id, self.kwargs, self._lives = id, kwargs, 0
        if not isinstance(self.env.action_space, spaces.Discrete):
            raise InvalidParameter(f"The action space of '{id}' must be Discrete. Got {self.env.action_space}.")
        self._space: spaces.Space[Any] = self.env.observation_space
        self.A, self._first_action = int(self.env.action_space.n), int(self.env.action_space.start)
        self.layout = layout_of(id, self._space)
        for words in text_notes(id, self._space):
            warnings.warn(words, LinMDPWarning, stacklevel=2)
        bytes_only = isinstance(self._space, spaces.Box) and self._space.dtype == np.uint8
        self.dtype: Any = np.dtype(np.uint8 if bytes_only else np.float32)
        low, high = (0, 255) if bytes_only else (-np.inf, np.inf)
        self.observation_space = spaces.Box(low, high, (width_of(self.layout),), self.dtype.type)
        self.action_space = spaces.Discrete(self.A)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        observation, info = self.env.reset(seed=seed, options=options)
        self._lives = int(info.get("lives", 0))
        return flat(self._space, observation).astype(self.dtype), info

    def step(self, action: int) -> tuple[Any, Any, bool, bool, dict[str, Any]]:
        """One step; terminated also where a life is lost."""
        observation, reward, terminated, truncated, info = self.env.step(int(action) + self._first_action)
        lives = int(info.get("lives", 0))
        lost, self._lives = lives < self._lives, lives
        ended = check_flag("terminated", terminated) or lost
        state = flat(self._space, observation).astype(self.dtype)  # a copy: some environments keep writing into theirs
        return state, one_number(reward), ended, check_flag("truncated", truncated), info
