"""A thermostat in a house that loses heat to the weather.

Each step (10 to 60 minutes) the heating (in some instances the cooling) runs at one of two to four powers. The house
moves towards the temperature outside, which follows the time of day and is shifted at random from day to day, and is
warmed by the power; doors and sun add noise. The reward is comfort minus the cost of energy. Comfort is lost in
proportion to the distance from the wanted temperature beyond a tolerance, or by its square; in some instances only
while somebody is at home, and in some a step in comfort pays a constant. Shown are the temperatures inside and
outside, in degrees, and always the time of day.
"""

from __future__ import annotations

from functools import cached_property

import numpy as np

from linmdp.envs.general.base import Family, Instance, runs
from linmdp.envs.general.display import Display
from linmdp.envs.general.gridded import GridPlan, grid_best, normal_nodes
from linmdp.types import Array


class Thermostat(Instance):
    """A house; its hidden state `x` is the temperature inside and how much warmer this day is than usual."""

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
        self.x: Array = np.zeros(2)

    @cached_property
    def plan(self) -> GridPlan:
        """The best policy."""
        axes = [self.wanted + np.linspace(-22, 22, 177), np.linspace(-3, 3, 7) * (self.days + 1e-6)]
        return GridPlan(axes, self.A, self.H, self.after, normal_nodes(1))

    def after(self, h: int, x: Array, action: int, z: Array) -> tuple[Array, Array]:
        """States (n, 2) after a step with noise z, and rewards (n,)."""
        inside, warmer = x.T
        inside = inside + self.loss * (self.outside[h] + warmer - inside) + self.powers[action] + self.jitter * z[0]
        off = np.maximum(abs(inside - self.wanted) - self.tolerance, 0)
        comfort = self.pay * (off == 0) - (off**2 if self.square else off)
        spent = self.energy * abs(self.powers[action]) / self.loss / 5
        return np.stack([inside, warmer], axis=1), self.scale * (self.home[h] * comfort - spent)

    def begin(self) -> None:
        """A day."""
        inside = self.start + self.np_random.normal()
        self.x = np.array([inside, self.days * np.clip(self.np_random.normal(), -3, 3)])

    def move(self, action: int) -> tuple[float, bool]:
        """Heat for a step."""
        x, reward = self.after(self.h, self.x[None], action, self.np_random.standard_normal(1))
        self.x = x[0]
        return float(reward[0]), False

    def show(self) -> Array:
        """The two temperatures."""
        outside = self.outside[min(self.h, self.H - 1)] + self.x[1]
        return self.display([float(self.x[0]), float(outside)], self.h, self.np_random)


FAMILY = Family(name="thermostat", half="made", make=Thermostat, H=48, episodes=runs(48), best=grid_best)
