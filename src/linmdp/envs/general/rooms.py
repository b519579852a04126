"""A temperature and a level in the blood, both to be held within bounds."""

from __future__ import annotations

from abc import abstractmethod

import numpy as np

from linmdp.envs.general.base import Instance, family, runs
from linmdp.envs.general.devices import Display
from linmdp.types import Array


class Regulated(Instance):
    """A level that is to be held; a subclass defines `after`, for many states at once."""

    x: Array

    @abstractmethod
    def after(self, h: int, x: Array, action: int, z: Array) -> tuple[Array, Array]:
        """States (n, 2) after a step with noise z, and rewards (n,)."""

    def move(self, action: int) -> tuple[float, bool]:
        x, reward = self.after(self.h, self.x[None], action, self.np_random.standard_normal(1))
        self.x = x[0]
        return float(reward[0]), False


@family("thermostat", "made", H=48, episodes=runs(48))
class Thermostat(Regulated):
    """A thermostat in a house that loses heat to the weather.

    Each step (10 to 60 minutes) the heating (in some instances the cooling) runs at one of two to four powers. The
    house moves towards the temperature outside, which follows the time of day and is shifted at random from day to day,
    and is warmed by the power; doors and sun add noise. The reward is comfort minus the cost of energy. Comfort is lost
    in proportion to the distance from the wanted temperature beyond a tolerance, or by its square; in some instances
    only while somebody is at home, and in some a step in comfort pays a constant. Shown are the temperatures inside and
    outside, in degrees, and always the time of day.
    """

    def __init__(self, rng: np.random.Generator) -> None:
        H, A = int(rng.choice([24, 48])), int(rng.integers(2, 5))
        self.cooling = bool(rng.random() < 0.3)
        self.wanted, self.tolerance = rng.uniform(18, 23), rng.uniform(0.2, 1.5)
        hour = np.arange(H) * 24 / H
        colder = rng.uniform(6, 16) * (-1 if self.cooling else 1)
        self.outside = self.wanted - colder + rng.uniform(2, 6) * np.cos((hour - 15) * np.pi / 12)
        self.loss = 1 - np.exp(-24 / H / rng.uniform(4, 15))
        strongest = rng.uniform(1.3, 2.0) * (abs(colder) + 4) * self.loss
        self.powers = np.linspace(0, strongest, A) * (-1 if self.cooling else 1)
        self.jitter, self.days = rng.uniform(0.05, 0.4), rng.uniform(0.0, 3.0)
        leaves, back = rng.uniform(6, 10), rng.uniform(14, 20)
        empty = (hour > leaves) & (hour < back) & (rng.random() < 0.5)
        self.home = np.where(empty, 0.0, 1.0)
        self.scale = float(rng.choice([0.1, 1.0, 10.0]))
        self.energy, self.square = rng.uniform(0.1, 0.6), bool(rng.random() < 0.3)
        self.pay = float(rng.choice([0.0, 1.0, 3.0]))
        self.start = self.wanted + rng.uniform(-6, 3)
        self.display = Display(rng, [-20, -30], [60, 60], 24 / H, clock=True)
        super().__init__(H=H, A=A, space=self.display.space, ends=bool(rng.random() < 0.5))

    def after(self, h: int, x: Array, action: int, z: Array) -> tuple[Array, Array]:
        inside, warmer = x.T
        inside = inside + self.loss * (self.outside[h] + warmer - inside) + self.powers[action] + self.jitter * z[0]
        off = np.maximum(abs(inside - self.wanted) - self.tolerance, 0)
        comfort = self.pay * (off == 0) - (off**2 if self.square else off)
        spent = self.energy * abs(self.powers[action]) / self.loss / 5
        return np.stack([inside, warmer], axis=1), self.scale * (self.home[h] * comfort - spent)

    def begin(self) -> None:
        inside = self.start + self.np_random.normal()
        self.x = np.array([inside, self.days * np.clip(self.np_random.normal(), -3, 3)])

    def show(self) -> Array:
        outside = self.outside[min(self.h, self.H - 1)] + self.x[1]
        return self.display([float(self.x[0]), float(outside)], self.h, self.np_random)


@family("dosing", "kept", H=72, episodes=runs(72))
class Dosing(Regulated):
    """Dosing: a drug that works late, and a level in the blood that has to stay within bounds.

    A dose goes into a depot first and from there into the blood, over several steps (5 to 60 minutes each). In half of
    the instances the level is of the drug itself, which the body removes. In the other half it is sugar, which the drug
    lowers: it comes back to a level of its own, and meals at fixed hours raise it. The reward of a step is minus the
    distance of the level from the bounds, with a higher price on the dangerous side, and in some instances minus what
    the dose costs; in some a step within bounds pays. How much of the depot is taken up varies at random. Shown are the
    level in mg/l, in some instances what was given at the step before, and the time of day where there are meals.
    """

    def __init__(self, rng: np.random.Generator) -> None:
        H, A = int(rng.integers(36, 73)), int(rng.integers(2, 5))
        self.sugar = bool(rng.random() < 0.5)
        self.leaves, self.clears = rng.uniform(0.15, 0.6), rng.uniform(0.05, 0.3)
        self.wanted, self.jitter = rng.uniform(1.5, 3.0), rng.uniform(0.05, 0.3)
        self.rest = self.wanted + rng.uniform(1.5, 4.0) if self.sugar else 0.0  # where the level goes without a drug
        away = abs(self.rest - self.wanted)
        self.doses = np.linspace(0, rng.uniform(1.6, 2.6) * away * self.clears, A)
        self.meals = np.zeros(H)
        if self.sugar:
            self.meals[np.sort(rng.choice(H - 4, 3, replace=False))] = rng.uniform(0.5, 1.5, 3)
        self.danger, self.cost = rng.uniform(1.0, 4.0), float(rng.choice([0.0, 0.2]))
        self.pay, self.scale = float(rng.choice([0.0, 1.0])), float(rng.choice([0.1, 1.0, 10.0]))
        self.first = rng.uniform(0, 1) * (self.rest - self.wanted) + self.wanted
        self.unit, self.hours = rng.uniform(0.5, 50), float(rng.choice([0.25, 0.5]))
        high = self.unit * np.array([12.0, self.doses[-1]])
        self.told = bool(rng.random() < 0.7)
        self.display = Display(rng, [0.0] * (1 + self.told), high[: 1 + self.told].tolist(), self.hours, clock=True)
        super().__init__(H=H, A=A, space=self.display.space, ends=bool(rng.random() < 0.5))

    def after(self, h: int, x: Array, action: int, z: Array) -> tuple[Array, Array]:
        depot, level = x.T
        depot = depot + self.doses[action]
        taken = self.leaves * np.clip(1 + self.jitter * z[0], 0, 1 / self.leaves) * depot
        level = level + self.clears * (self.rest - level) + self.meals[h] + (-taken if self.sugar else taken)
        level = np.clip(level, 0, 12)
        low, high = self.wanted - 0.5 - level, level - self.wanted - 0.5
        worse, bad = (low, high) if self.sugar else (high, low)
        off = self.danger * np.maximum(worse, 0) + np.maximum(bad, 0)
        reward = self.pay * (off == 0) - off - self.cost * action
        return np.stack([depot - taken, level], axis=1), self.scale * reward

    def begin(self) -> None:
        self.x = np.array([0.0, np.clip(self.first + 0.3 * self.np_random.standard_normal(), 0, 12)])
        self.last = 0.0

    def move(self, action: int) -> tuple[float, bool]:
        self.last = float(self.doses[action])
        return super().move(action)

    def show(self) -> Array:
        return self.display([self.unit * self.x[1], self.unit * self.last][: 1 + self.told], self.h, self.np_random)
