"""Any discrete-action Gymnasium environment with flat observations: what linearization learns from and plays in."""

from __future__ import annotations

import re
import warnings
from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces

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
from linmdp.features.learned import Layout, width_of

LARGEST_WIDTH = 4096
"""Numbers in one observation: beyond it (pictures) a network of dense layers is the wrong tool."""

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


def layout_of(id: str, space: spaces.Space[Any]) -> Layout:
    """The parts of a flat observation of that space."""
    parts = tuple(_parts(id, space))
    width = width_of(parts)
    if not 0 < width <= LARGEST_WIDTH:
        hint = " (for Atari leave 'obs_type' out: the RAM)" if id.startswith("ALE/") else ""
        raise InvalidParameter(f"Observations of '{id}' must have 1 to {LARGEST_WIDTH} numbers{hint}. Got {width}.")
    return parts


def _parts(id: str, space: spaces.Space[Any]) -> list[tuple[str, int]]:
    if isinstance(space, spaces.Box | spaces.MultiBinary):
        return [("box", int(np.prod(space.shape)))]
    if isinstance(space, spaces.Discrete):
        return [("onehot", int(space.n))]
    if isinstance(space, spaces.MultiDiscrete):
        return [("onehot", int(n)) for n in space.nvec.ravel()]
    if isinstance(space, spaces.Dict | spaces.Tuple):
        return [part for one in inner_spaces(space).values() if not is_text(one) for part in _parts(id, one)]
    raise InvalidParameter(f"Observations of '{id}' must be Box, Discrete, or Dict or Tuple of those. Got {space}.")


def is_text(space: spaces.Space[Any]) -> bool:
    """Whether it is a space of words, which no map here can read: they are left out of a Dict or a Tuple."""
    return space.dtype is not None and space.dtype.kind == "U"


def inner_spaces(space: spaces.Space[Any]) -> dict[Any, spaces.Space[Any]]:
    """What a Dict or a Tuple is made of, by key or place; of any other space, nothing."""
    if isinstance(space, spaces.Dict):
        return dict(space.spaces)
    return dict(enumerate(space.spaces)) if isinstance(space, spaces.Tuple) else {}


def choices(space: spaces.Space[Any]) -> tuple[np.ndarray, np.ndarray] | None:
    """The first value and the number of values of each whole number, of a space that is made of them alone."""
    if isinstance(space, spaces.Discrete):
        return np.array(space.start), np.array(space.n)
    if isinstance(space, spaces.MultiDiscrete):
        return space.start, space.nvec
    if isinstance(space, spaces.MultiBinary):
        return np.zeros(space.shape, dtype=np.int64), np.full(space.shape, 2)
    return None


def leaves(space: spaces.Space[Any], name: str = "observation") -> dict[str, spaces.Space[Any]]:
    """The spaces that are no Dict and no Tuple, by name."""
    inner = inner_spaces(space)
    if not inner:
        return {name: space}
    return {path: leaf for key, one in inner.items() for path, leaf in leaves(one, str(key)).items()}


def text_notes(id: str, space: spaces.Space[Any]) -> list[str]:
    """What a user should hear of text in observations."""
    words = [name for name, part in leaves(space).items() if is_text(part)]
    return [f"Observations of '{id}' have text, which is left out: {', '.join(words)}."] if words else []


def flat(space: spaces.Space[Any], observation: Any) -> np.ndarray:
    """The numbers of an observation in one row; whole numbers count from 0, and words are left out."""
    if isinstance(space, spaces.Dict | spaces.Tuple):
        pieces = (flat(one, observation[key]) for key, one in inner_spaces(space).items() if not is_text(one))
        return np.concatenate([np.empty(0, np.bool_), *pieces])  # of one part, too, a new array
    numbers: np.ndarray = np.asarray(observation)
    if isinstance(space, spaces.Discrete | spaces.MultiDiscrete):
        numbers = np.asarray(numbers - space.start)
    return numbers.ravel()


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
