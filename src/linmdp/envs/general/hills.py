"""Hills: a car in a valley whose engine is too weak to climb out of it at once.

The height of the ground is a sine of the place, and gravity pulls along its slope. Each step the engine pushes to the
left, to the right or, in some instances, not at all. The state is (place, velocity); the episode ends at the flag high
on one side, or after H steps. So the car has to swing (Moore 1990).

Drawn: gravity and force, the width of the valley, the side and the place of the flag, the noise on the velocity, H, and
what is paid: -c a step until the flag is reached, a prize at the flag with or without a cost of each push, or the
height that is held (dense, without an end at the flag). The best known return is that of planning on a grid, or of
pushing the way that the car rolls, whichever earns more.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from linmdp.envs.general.base import Family, runs
from linmdp.envs.general.physics import Numbers, Physics, best_played, grid_policy

FASTEST = 0.07


class Hills(Physics):
    """One valley; the state is mirrored where the flag is on the left."""

    def __init__(self, rng: np.random.Generator) -> None:
        self.gravity = rng.uniform(0.002, 0.0032)
        self.pushes = (
            self.gravity * rng.uniform(0.36, 0.55) * np.array([(-1.0, 1.0), (-1.0, 0.0, 1.0)][rng.integers(2)])
        )
        self.waves = rng.uniform(2.5, 3.5)
        self.side = int(rng.choice([-1, 1]))
        self.bottom = -np.pi / (2 * self.waves)
        # the ground is sin(waves x): the flag stands near its top, the wall beyond the top of the other side
        self.flag = rng.uniform(0.75, 1.0) * -self.bottom
        self.wall = 3.2 * self.bottom
        self.pay = str(rng.choice(["haste", "prize", "thrift", "height"], p=[0.5, 0.15, 0.15, 0.2]))
        self.unit, H = rng.uniform(0.3, 3.0), int(rng.integers(150, 201))
        noise = np.array([0.0, rng.choice([0.0, 0.0, 5e-4])])
        ends = bool(rng.random() < 0.5) and self.pay == "height"
        low, high = np.array([self.wall, -FASTEST]), np.array([1.3 * self.flag, FASTEST])
        self.box = low, high
        seen = np.sort(self.side * np.stack((low, high)), axis=0)
        super().__init__(H=H, A=len(self.pushes), low=seen[0], high=seen[1], noise=noise, ends=ends)

    def begin(self) -> None:
        """At rest near the bottom."""
        self.state = self.bottom + float(self.np_random.uniform(-0.1, 0.1)), 0.0

    def law(self, x: Numbers, action: int, m: Any) -> tuple[Numbers, Any, Any]:
        """Roll for one step; the wall stops the car."""
        push = self.side * float(self.pushes[action])
        v = m.clip(x[1] + push - self.gravity * m.cos(self.waves * x[0]), -FASTEST, FASTEST)
        at = x[0] + v
        v = m.where(at < self.wall, 0.0, v)
        at = m.clip(at, self.wall, 1.3 * self.flag)
        there = at >= self.flag
        over = there & (self.pay != "height")
        reward = -1.0 if self.pay == "haste" else m.sin(self.waves * at) + 1
        if self.pay in ("prize", "thrift"):
            reward = 50.0 * there - 0.2 * (push != 0 and self.pay == "thrift")
        return (at, v), self.unit * reward, over

    def observed(self, x: Numbers) -> Numbers:
        """The state, from the side that the flag is on."""
        return self.side * x[0], self.side * x[1]


def best(env: Hills) -> float:
    """Planning, or pushing the way that the car rolls."""
    rolls = [int(np.argmin(env.side * env.pushes)), int(np.argmax(env.side * env.pushes))]
    return best_played(env, grid_policy(env, *env.box, (71, 61)), lambda env: rolls[int(env.state[1] >= 0)])


FAMILY = Family(name="hills", half="made", make=Hills, H=200, episodes=runs(170), best=best)
