"""Instances whose state is a few real numbers that follow a law of motion."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np
from gymnasium import spaces

from linmdp.envs.general.base import Instance
from linmdp.types import Array


class Floats:
    """What laws of motion need, for Python's floats: in a single state that is ten times as fast as NumPy."""

    sin, cos = math.sin, math.cos

    @staticmethod
    def clip(x: float, low: float, high: float) -> float:
        """x, brought into [low, high]."""
        return min(max(x, low), high)

    @staticmethod
    def where(condition: bool, x: float, y: float) -> float:
        """x if the condition holds, else y."""
        return x if condition else y


def turned(angle: Any) -> Any:
    """An angle as one in [-pi, pi)."""
    return (angle + math.pi) % (2 * math.pi) - math.pi


Numbers: TypeAlias = Sequence[Any] | Array
"""The k numbers of a state, or of n states at once as k arrays (n,)."""


class Physics(Instance):
    """States are k numbers; a subclass defines `begin`, `law` and `observed`.

    Parameters
    ----------
    low, high : bounds of an observation
    noise : standard deviation of the Gaussian noise on each number of the state after a step, (k,) or 0
    """

    state: Numbers

    def __init__(self, *, H: int, A: int, low: Any, high: Any, noise: Array | float = 0.0, ends: bool = False) -> None:
        space = spaces.Box(np.asarray(low, dtype=np.float32), np.asarray(high, dtype=np.float32), dtype=np.float32)
        super().__init__(H=H, A=A, space=space, ends=ends)
        self.noise = np.asarray(noise, dtype=np.float64)
        self._low, self._high, self._noisy = space.low, space.high, bool(self.noise.any())

    @abstractmethod
    def law(self, x: Numbers, action: int, m: Any) -> tuple[Numbers, Any, Any]:
        """The next state, the reward, and whether the episode is over; `m` is `Floats`, or NumPy for many states."""

    def observed(self, x: Numbers) -> Numbers:
        """What is seen of a state: the state."""
        return x

    def move(self, action: int) -> tuple[float, bool]:
        x, reward, over = self.law(self.state, action, Floats)
        if self._noisy:
            x = (np.asarray(x) + self.noise * self.np_random.standard_normal(len(x))).tolist()
        self.state = x
        return float(reward), bool(over)

    def show(self) -> Array:
        seen = np.array(self.observed(self.state), dtype=np.float32)
        return seen.clip(self._low, self._high)
