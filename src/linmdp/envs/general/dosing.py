"""Dosing: a drug that works late, and a level in the blood that has to stay within bounds.

A dose goes into a depot first and from there into the blood, over several steps (5 to 60 minutes each). In half of the
instances the level is of the drug itself, which the body removes. In the other half it is sugar, which the drug
lowers: it comes back to a level of its own, and meals at fixed hours raise it. The reward of a step is minus the
distance of the level from the bounds, with a higher price on the dangerous side, and in some instances minus what
the dose costs; in some a step within bounds pays. How much of the depot is taken up varies at random. Shown are
the level in mg/l, in some instances what was given at the step before, and the time of day where there are meals.
"""

from __future__ import annotations

from functools import cached_property

import numpy as np

from linmdp.envs.general.base import Family, Instance, runs
from linmdp.envs.general.display import Display
from linmdp.envs.general.gridded import GridPlan, grid_best, normal_nodes
from linmdp.types import Array


class Dosing(Instance):
    """A patient; the hidden state `x` is (depot, level), both in units of the width of the bounds."""

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
        self.x: Array = np.zeros(2)
        self.last = 0.0

    @cached_property
    def plan(self) -> GridPlan:
        """The best policy of who sees the depot too."""
        full = self.doses[-1] / self.leaves
        axes = [np.linspace(0, 1.05 * full, 31), np.linspace(0, 12, 181)]
        return GridPlan(axes, self.A, self.H, self.after, normal_nodes(1, 3))

    def after(self, h: int, x: Array, action: int, z: Array) -> tuple[Array, Array]:
        """States (n, 2) after a step with noise z, and rewards (n,)."""
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
        """A patient in the morning."""
        self.x = np.array([0.0, np.clip(self.first + 0.3 * self.np_random.standard_normal(), 0, 12)])
        self.last = 0.0

    def move(self, action: int) -> tuple[float, bool]:
        """Give a dose."""
        x, reward = self.after(self.h, self.x[None], action, self.np_random.standard_normal(1))
        self.x, self.last = x[0], float(self.doses[action])
        return float(reward[0]), False

    def show(self) -> Array:
        """The level, and what was given."""
        return self.display([self.unit * self.x[1], self.unit * self.last][: 1 + self.told], self.h, self.np_random)


FAMILY = Family(name="dosing", half="kept", make=Dosing, H=72, episodes=runs(72), best=grid_best)
