"""An environment with one fault, drawn from a seed: what it raises, shows, pays or says instead."""

from __future__ import annotations

import decimal
import random
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces

import linmdp

H, EPISODES = 5, 6


class Mute(Exception):
    """An error that cannot say what it is."""

    def __str__(self) -> str:
        raise RuntimeError("no words")

    __repr__ = __str__


class Stubborn:
    """A value that answers every question with an error."""

    def __float__(self) -> float:
        raise Mute

    def __bool__(self) -> bool:
        raise Mute

    def __repr__(self) -> str:
        raise Mute

    def __array__(self, *rest: Any, **more: Any) -> Any:
        raise Mute


VALUES: list[Callable[[], Any]] = [
    lambda: None,
    lambda: "False",
    lambda: "0.5",
    lambda: b"1",
    lambda: float("nan"),
    lambda: -float("inf"),
    lambda: 1e308,
    lambda: -(10**400),
    lambda: 2**70,
    lambda: -1,
    lambda: 2.5,
    lambda: 0.5 + 1j,
    lambda: np.complex64(1j),
    lambda: np.array(1 + 2j),
    lambda: np.array([0.5]),
    lambda: np.array([[0.1, 0.2]]),
    lambda: np.zeros(2),
    lambda: np.zeros(3, dtype=np.float32),
    lambda: np.array([np.nan, 0], dtype=np.float32),
    lambda: np.array([0, np.inf], dtype=np.float32),
    lambda: np.array([70, 0], dtype=np.float32),
    lambda: np.array([1, 2]),
    lambda: np.array(["a", "b"]),
    lambda: np.array([None, 1], dtype=object),
    lambda: np.ma.masked_array([0.1, 0.2], mask=[True, False], dtype=np.float32),
    lambda: np.ma.masked,
    lambda: np.datetime64("2020-01-01"),
    lambda: np.timedelta64(3, "s"),
    lambda: [0.1, [0.2]],
    list,
    dict,
    lambda: {"x": 1},
    lambda: (1, 2, 3),
    lambda: object(),
    lambda: Stubborn(),
    lambda: Fraction(1, 3),
    lambda: decimal.Decimal("NaN"),
    lambda: True,
    lambda: np.float16(0.25),
    lambda: type,
]
RAISED: list[Callable[[], BaseException]] = [
    lambda: SystemExit(),
    lambda: SystemExit(0),
    lambda: SystemExit("bye"),
    lambda: RuntimeError("the motor is stuck\nand hot"),
    lambda: Mute(),
    lambda: StopIteration(),
    lambda: KeyError("x"),
    lambda: OSError(5, "Input/output error"),
    lambda: EOFError(),
    lambda: MemoryError(),
    lambda: RecursionError("deep"),
    lambda: AssertionError(),
    lambda: linmdp.InvalidParameter("The 'x' parameter must be 1. Got 2."),
    lambda: linmdp.InvalidData("bad data"),
    lambda: ZeroDivisionError(),
    lambda: UnicodeDecodeError("utf-8", b"\xff", 0, 1, "bad"),
    lambda: BrokenPipeError(32, "Broken pipe"),
    lambda: TimeoutError("no answer"),
]
PARTS = ("state", "reward", "terminated", "truncated", "info", "mask")
SPACES: dict[str, Any] = {
    "box": spaces.Box(-1, 1, (2,), np.float32),
    "open": spaces.Box(-np.inf, np.inf, (2,), np.float32),
    "discrete": spaces.Discrete(4),
    "multi": spaces.MultiDiscrete([3, 4]),
    "binary": spaces.MultiBinary(3),
    "dict": spaces.Dict({"a": spaces.Discrete(3), "b": spaces.Box(-1, 1, (2,), np.float32)}),
    "tuple": spaces.Tuple((spaces.Discrete(3, start=1), spaces.MultiBinary(2))),
    "bytes": spaces.Box(0, 255, (6,), np.uint8),
}


class Faulty(gymnasium.Env[Any, Any]):
    """Episodes of five steps that pay 0.5; one fault, drawn from `seed`, in step `at` of all or a reset after it."""

    action_space = spaces.Discrete(2)

    def __init__(self, shows: str = "box", fault: int = 0, at: int = 13, **options: Any) -> None:
        self.observation_space = SPACES[shows]
        self.fault, self.at, self.steps, self.h, self.whole = fault, at, 0, 0, 0
        self._space = spaces.Dict({"x": SPACES[shows]})["x"]
        self.kind = random.Random(fault).choice(["part"] * 6 + ["raise", "reset raises", "reset state", "form"])

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> Any:
        super().reset(seed=seed)
        self.h, rng = 0, random.Random(self.fault + 1)
        state: Any = self._state()
        if self.steps >= self.at and self.kind == "reset raises":
            raise rng.choice(RAISED)()
        if self.steps >= self.at and self.kind == "reset state":
            state = rng.choice(VALUES)()
        return (state, {})[: 1 if self.steps >= self.at and self.kind == "form" else 2]

    def _state(self) -> Any:
        if isinstance(self._space, spaces.Box) and self._space.dtype == np.float32:
            return np.array([0.1, self.h / 10], dtype=np.float32)
        self._space.seed(self.h)
        return self._space.sample()

    def step(self, action: int) -> Any:
        self.h, self.steps = self.h + 1, self.steps + 1
        said: dict[str, Any] = {"state": self._state(), "reward": 0.5, "terminated": False, "truncated": self.h == H}
        said["info"] = {}
        if self.steps > self.at:
            rng = random.Random(self.fault + 1)
            if self.kind == "raise":
                raise rng.choice(RAISED)()
            if self.kind == "part":
                part, value = rng.choice(PARTS), rng.choice(VALUES)()
                said |= {"info": {"action_mask": value}} if part == "mask" else {part: value}
            if self.kind == "form":
                return rng.choice([(), None, 5, (*said.values(),)[:4], (*said.values(), {})])
        self.whole += self.h == H and self.steps <= self.at
        return (*said.values(),)


def make_faulty(**options: Any) -> Any:
    return Faulty(**options)


if "Faulty-v0" not in gymnasium.registry:
    gymnasium.register("Faulty-v0", entry_point=make_faulty, max_episode_steps=H, disable_env_checker=True)
