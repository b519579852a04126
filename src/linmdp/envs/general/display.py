"""What a device shows: numbers in their own units, sometimes the time, sometimes a number that tells nothing."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from gymnasium import spaces

from linmdp.envs.general.base import Table, TableInstance
from linmdp.types import Array

DAY = 24.0


class Display:
    """Numbers between bounds; whether time and humidity stand beside them is drawn.

    Parameters
    ----------
    rng : what is shown is drawn from it
    low, high : of each number
    hours : of a step of the episode
    clock : whether the time of day is shown; None: drawn
    """

    def __init__(
        self, rng: np.random.Generator, low: Sequence[float], high: Sequence[float], hours: float, clock: bool | None
    ) -> None:
        drawn = rng.random(2) < 1 / 3
        self.clock = bool(drawn[0]) if clock is None else clock
        self.humidity, self.hours = bool(drawn[1]), hours
        self.first = float(rng.integers(24)) if clock is None else 0.0  # the hour at which the day begins
        extra = [DAY] * self.clock + [100.0] * self.humidity
        bottom, top = [*low, *[0.0] * len(extra)], [*high, *extra]
        self.space = spaces.Box(np.array(bottom, np.float32), np.array(top, np.float32), dtype=np.float32)

    def __call__(self, numbers: Sequence[float], h: int, rng: np.random.Generator) -> Array:
        """The observation at step h."""
        shown = list(numbers)
        if self.clock:
            shown.append((self.first + h * self.hours) % DAY)
        if self.humidity:
            shown.append(100 * rng.beta(4, 4))
        seen: Array = np.clip(np.array(shown, np.float32), self.space.low, self.space.high)
        return seen


class Device(TableInstance):
    """A device with a table of transitions and a display.

    Parameters
    ----------
    model, states : the table, and what its states are
    read : the numbers that are shown of a state, in their units
    rng : what is shown is drawn from it
    hours : of a step of the episode
    clock : whether the time of day is shown; None: drawn
    noise : standard deviation of the noise on rewards
    """

    def __init__(
        self,
        model: Table,
        states: Sequence[Any],
        read: Callable[[Any], Sequence[float]],
        rng: np.random.Generator,
        *,
        hours: float,
        clock: bool | None = None,
        noise: float = 0.0,
    ) -> None:
        self.numbers = [tuple(float(x) for x in read(s)) for s in states]
        columns = np.array(self.numbers)
        self.display = Display(rng, columns.min(axis=0).tolist(), columns.max(axis=0).tolist(), hours, clock)
        super().__init__(model, space=self.display.space, noise=noise, ends=bool(rng.random() < 0.5))

    def show(self) -> Array:
        """The numbers of the state."""
        return self.display(self.numbers[self.state], self.h, self.np_random)
