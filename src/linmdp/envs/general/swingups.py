"""Swing-ups: a pole hangs from a cart, and is to be swung up and held above it by pushing the cart.

The state is (position, velocity, angle, angular velocity) with the law of motion of a pole on a cart; angle 0 is
upright, and the pole hangs at the start. At the ends of the track the cart stops, or the episode ends with a fine.

Drawn: the masses, the length, the force, the track, what its ends do, whether the angle is seen as it is or as its
cosine and sine, whether a day ends by termination, H, and what a step pays: the height of the pole, the height less the
distance from the middle, or 1 while the pole is nearly upright. The best known return is that of a beam search; there
is no noise, so a policy can earn it.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from linmdp.envs.general.base import Family, runs
from linmdp.envs.general.physics import Numbers, Physics, beamed, turned
from linmdp.types import Array

GRAVITY, TAU = 9.8, 0.04


class Swingups(Physics):
    """One cart with its pole."""

    def __init__(self, rng: np.random.Generator) -> None:
        self.cart, self.pole = rng.uniform(0.5, 1.5), rng.uniform(0.05, 0.3)
        self.half, self.track = rng.uniform(0.3, 0.6), rng.uniform(1.8, 3.0)
        push = (self.cart + self.pole) * rng.uniform(6.0, 10.0)
        self.forces = push * np.array([(-1.0, 1.0), (-1.0, 0.0, 1.0)][rng.integers(2)])
        self.falls, self.sines = bool(rng.random() < 0.4), bool(rng.random() < 0.7)
        self.pay = str(rng.choice(["height", "middle", "up"], p=[0.4, 0.4, 0.2]))
        self.unit = rng.uniform(0.2, 3.0)
        turn = [1.0, 1.0] if self.sines else [np.pi]
        high = np.array([self.track, np.inf, *turn, np.inf])
        H, ends = int(rng.integers(120, 201)), bool(rng.random() < 0.5)
        super().__init__(H=H, A=len(self.forces), low=-high, high=high, ends=ends)

    def begin(self) -> None:
        """In the middle, the pole hanging."""
        x, v, angle, turn = self.np_random.uniform(-0.05, 0.05, size=4).tolist()
        self.state = x, v, angle + math.pi, turn

    def law(self, x: Numbers, action: int, m: Any) -> tuple[Numbers, Any, Any]:
        """One step of Euler, velocities first."""
        at, speed, angle, turn = x
        sin, cos, mass = m.sin(angle), m.cos(angle), self.cart + self.pole
        push = (float(self.forces[action]) + self.pole * self.half * turn**2 * sin) / mass
        spin = (GRAVITY * sin - cos * push) / (self.half * (4 / 3 - self.pole * cos**2 / mass))
        speed = speed + TAU * (push - self.pole * self.half * spin * cos / mass)
        turn = m.clip(turn + TAU * spin, -25.0, 25.0)
        at, angle = at + TAU * speed, angle + TAU * turn
        out = abs(at) > self.track
        speed, at = m.where(out, 0.0, speed), m.clip(at, -self.track, self.track)
        angle = turned(angle)
        worth = (1 + m.cos(angle)) / 2
        if self.pay == "middle":
            worth = worth - 0.3 * abs(at) / self.track
        elif self.pay == "up":
            worth = m.where(abs(angle) < 0.3, 1.0, 0.0)
        over = out & self.falls
        return (at, speed, angle, turn), self.unit * (worth - 5.0 * over), over

    def swing(self, x: Numbers) -> Array:
        """How promising states are: an energy near that of resting upright, and a cart near the middle."""
        energy = self.half * (2 / 3 * x[3] ** 2) / GRAVITY + np.cos(x[2])
        found: Array = -self.unit * (4 * abs(energy - 1) + 2 * (x[0] / self.track) ** 2)
        return found

    def observed(self, x: Numbers) -> Numbers:
        """The state, or with cosine and sine for the angle."""
        return (x[0], x[1], math.cos(x[2]), math.sin(x[2]), x[3]) if self.sines else (x[0], x[1], turned(x[2]), x[3])


def best(env: Swingups) -> float:
    """Beam search."""
    return beamed(env, env.swing, np.array([0.1, 0.3, 0.1, 0.4]))


FAMILY = Family(name="swingups", half="kept", make=Swingups, H=200, episodes=runs(170), best=best)
