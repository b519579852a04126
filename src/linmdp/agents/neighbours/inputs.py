"""States as vectors of numbers, the moments by which such vectors are normalised, and the last transitions."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from linmdp.agents.base import Component
from linmdp.errors import InvalidData, InvalidParameter
from linmdp.features.unit import CODES, HashedFeatures
from linmdp.types import Array, State, Task

TINY = 1e-8
"""Added to a variance under a root."""


class Inputs:
    """States of a task as vectors: no features, and nothing that is fitted beforehand.

    An array is itself, flat. A finite state is its number, or one-hot. A hashed state is the bits of its code, as -1
    and 1: all that a code tells is which state it is.

    Attributes
    ----------
    size : length of a vector
    finite : whether a vector is the number of a state, and says no more than which one it is
    """

    def __init__(self, owner: str, task: Task, *, one_hot: bool = False, clock: bool | None = None) -> None:
        """`clock`: whether the step, from -0.5 to 0.5, is a last coordinate; default: where dynamics depend on it."""
        self.finite, self._one_hot = task.S is not None and not one_hot, task.S is not None and one_hot
        self._H = task.H
        self._clock = not task.stationary if clock is None else clock
        self._hashed = task.S is None and isinstance(task.features, HashedFeatures)
        self._bits = np.arange((CODES - 1).bit_length())
        if task.S is not None:
            self._k = task.S if one_hot else 1
        elif self._hashed:
            self._k = len(self._bits)
        elif task.state_bytes is None:
            raise InvalidParameter(f"{owner} must know how long states are: give the task its 'state_bytes'.")
        else:
            self._k = task.state_bytes // 8
        self.size = self._k + self._clock

    def __call__(self, h: int, states: Sequence[State]) -> Array:
        """n states as vectors, (n, size)."""
        X = np.empty((len(states), self.size))
        X[:, self._k :] = h / self._H - 0.5
        for x, state in zip(X, states, strict=True):
            if self._one_hot:
                x[: self._k] = 0.0
                x[state] = 1.0
            elif self._hashed:
                x[: self._k] = 2.0 * (int(state) >> self._bits & 1) - 1.0
            else:
                numbers = np.asarray(state, dtype=np.float64).reshape(-1)
                if len(numbers) != self._k:
                    raise InvalidData(f"States must have {self._k} numbers. Got {len(numbers)}.")
                x[: self._k] = numbers
        return X


class RunningMoments(Component):
    """Mean and variance of the vectors so far, coordinate by coordinate (Welford's algorithm).

    Parameters
    ----------
    size : length of a vector
    """

    _arrays = ("mean", "squares")
    _counters = ("n",)

    def __init__(self, size: int) -> None:
        self.mean, self.squares, self.n = np.zeros(size), np.zeros(size), 0

    def add(self, x: Array) -> None:
        """One more vector."""
        self.n += 1
        off = x - self.mean
        self.mean += off / self.n
        off *= x - self.mean
        self.squares += off

    @property
    def variance(self) -> Array:
        """Of each coordinate; 1 before there are two vectors."""
        return self.squares / (self.n - 1) if self.n > 1 else np.ones_like(self.squares)

    def normalised(self, x: Array) -> Array:
        """Vectors (..., size) with mean 0 and variance 1, about."""
        found: Array = (x - self.mean) / np.sqrt(self.variance + TINY)
        return found


class RecentTransitions(Component):
    """At most `most` transitions; a new one takes the place of the oldest.

    Attributes
    ----------
    X, Y : (most, size) states, and those that followed
    action, reward, ended : (most,) and whether the following state was terminal
    total : transitions ever added, and not cleared
    """

    _arrays = ("X", "Y", "action", "reward", "ended")
    _counters = ("total",)

    def __init__(self, size: int, most: int) -> None:
        self.most, self.total = most, 0
        self.X, self.Y = np.zeros((most, size), dtype=np.float32), np.zeros((most, size), dtype=np.float32)
        self.action, self.reward = np.zeros(most, dtype=np.int32), np.zeros(most)
        self.ended = np.zeros(most, dtype=np.bool_)

    def __len__(self) -> int:
        return min(self.total, self.most)

    def add(self, x: Array, action: int, reward: float, y: Array, ended: bool) -> None:
        """One more."""
        i = self.total % self.most
        self.X[i], self.action[i], self.reward[i], self.Y[i], self.ended[i] = x, action, reward, y, ended
        self.total += 1
