"""Landers: bring a small craft down on a pad, softly and upright, with one main engine and two that turn it."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from linmdp.envs.general.base import family, runs
from linmdp.envs.general.physics import Numbers, Physics

TAU, SIDES, TOP = 0.1, 1.5, 2.2
LEFT, MAIN, RIGHT = 1, 2, 3


@family("landers", "kept", H=160, episodes=runs(80))
class Landers(Physics):
    """Landers: bring a small craft down on a pad, softly and upright, with one main engine and two that turn it.

    The state is (place, height, their velocities, angle, angular velocity). The actions do nothing, turn to the left,
    fire the main engine along the axis of the craft, turn to the right; gravity pulls and wind blows all the time. The
    episode ends on the ground (a prize on the pad, a fine for a hard or tilted touch, else nothing), with a fine out of
    sight or upside down, or after H steps. Engines cost fuel, and in most instances each step pays what it brings
    closer to resting upright on the pad, as in Gymnasium's LunarLander.

    Drawn: gravity, the engines, the wind and its gusts, the pad, the start, the prices, H. The best known return is
    that of the best of some controllers by hand, with drawn gains.
    """

    def __init__(self, rng: np.random.Generator) -> None:
        self.gravity = rng.uniform(0.15, 0.4)
        self.thrust, self.turn = self.gravity * rng.uniform(1.8, 3.0), rng.uniform(0.8, 1.6)
        self.wind = self.gravity * rng.choice([0.0, rng.uniform(-0.15, 0.15)])
        gusts = rng.choice([0.0, 0.01]) * np.array([0.0, 0.0, 1.0, 1.0, 0.0, 1.0])
        self.pad, self.spread = rng.uniform(0.15, 0.35), rng.uniform(0.1, 0.5)
        self.unit = rng.uniform(0.01, 1.0)
        self.shaped, self.fuel = bool(rng.random() < 0.75), rng.uniform(0.0, 0.6)
        high = np.array([SIDES, TOP, 2.0, 2.0, np.pi / 2, 4.0])
        super().__init__(H=int(rng.integers(100, 161)), A=4, low=-high, high=high, noise=gusts)

    def begin(self) -> None:
        """High up, with some speed to the side."""
        x, vx, vy, angle = self.np_random.uniform(-1.0, 1.0, size=4).tolist()
        self.state = self.spread * x, 1.4, 0.2 * vx, 0.1 * vy, 0.1 * angle, 0.0

    def law(self, x: Numbers, action: int, m: Any) -> tuple[Numbers, Any, Any]:
        """One step of Euler, velocities first."""
        at, height, vx, vy, angle, spin = x
        lift = self.thrust * (action == MAIN)
        vx = vx + TAU * (self.wind - lift * m.sin(angle))
        vy = vy + TAU * (lift * m.cos(angle) - self.gravity)
        spin = m.clip(0.98 * spin + TAU * self.turn * ((action == LEFT) - (action == RIGHT)), -4.0, 4.0)
        after = at + TAU * vx, height + TAU * vy, vx, vy, angle + TAU * spin, spin
        down = after[1] <= 0
        hard = (abs(vy) > 0.35) | (abs(vx) > 0.25) | (abs(after[4]) > 0.35)
        lost = (abs(after[0]) > SIDES) | (after[1] > TOP) | (abs(after[4]) > math.pi / 2)
        failed = lost | (down & hard)
        landed = m.where(failed, False, down & (abs(after[0]) < self.pad))
        reward = (
            100.0 * landed - 100.0 * failed - self.fuel * (1.0 * (action == MAIN) + 0.1 * (action in (LEFT, RIGHT)))
        )
        if self.shaped:
            reward = reward + self.closeness(after) - self.closeness(x)
        return after, self.unit * reward, down | lost

    def closeness(self, x: Numbers) -> Any:
        """How close a state is to resting upright on the pad; 0 there."""
        at, height, vx, vy, angle, _ = x
        return -100 * ((at**2 + height**2) ** 0.5 + (vx**2 + vy**2) ** 0.5 + abs(angle))
