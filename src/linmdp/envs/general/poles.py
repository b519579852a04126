"""Poles on carts: keep a pole upright by pushing the cart that it stands on.

A cart on a track is pushed to the left or to the right at each step, in some instances it may also be left alone. The
state is (position, velocity, angle, angular velocity), near 0 at the start, with the law of motion of Barto, Sutton
and Anderson (1983). The episode ends when the pole leans too far or the cart leaves the track, or after H steps.

Drawn: the masses, the length of the pole, the force, the limits, the noise on velocities, the actions, whether the
angle is seen as it is or as its sine and cosine, H, and what is paid: something for each step, or more the closer to
upright in the middle, or nothing but a fine for a fall. The best known return is that of a linear controller.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from linmdp.envs.general.base import Family, Policy, runs
from linmdp.envs.general.physics import Floats, Numbers, Physics, best_played

GRAVITY, TAU = 9.8, 0.02


class Poles(Physics):
    """One cart with its pole."""

    def __init__(self, rng: np.random.Generator) -> None:
        self.cart, self.pole = rng.uniform(0.5, 2.0), rng.uniform(0.05, 0.4)
        self.half = rng.uniform(0.3, 0.9)
        self.forces = rng.uniform(6.0, 14.0) * np.array([(-1.0, 1.0), (-1.0, 0.0, 1.0)][rng.integers(2)])
        self.limits = np.array([rng.uniform(1.8, 3.0), rng.uniform(0.16, 0.3)])
        noise = rng.choice([0.0, 0.01, 0.03]) * np.array([0.0, 1.0, 0.0, 1.0])
        self.sines = bool(rng.random() < 0.3)
        self.pay, self.unit = str(rng.choice(["step", "middle", "fall"], p=[0.5, 0.25, 0.25])), rng.uniform(0.2, 3.0)
        x, angle = 2 * self.limits
        turn = [1.0, 1.0] if self.sines else [angle]
        high = np.array([x, np.inf, *turn, np.inf])
        H = int(rng.integers(150, 301))
        super().__init__(H=H, A=len(self.forces), low=-high, high=high, noise=noise)

    def begin(self) -> None:
        """Nearly upright, nearly in the middle."""
        self.state = self.np_random.uniform(-0.05, 0.05, size=4).tolist()

    def law(self, x: Numbers, action: int, m: Any) -> tuple[Numbers, Any, Any]:
        """One step of Euler."""
        at, speed, angle, turn = x
        sin, cos, mass = m.sin(angle), m.cos(angle), self.cart + self.pole
        push = (self.forces[action] + self.pole * self.half * turn**2 * sin) / mass
        spin = (GRAVITY * sin - cos * push) / (self.half * (4 / 3 - self.pole * cos**2 / mass))
        drift = push - self.pole * self.half * spin * cos / mass
        after = at + TAU * speed, speed + TAU * drift, angle + TAU * turn, turn + TAU * spin
        far, lean = (after[0] / self.limits[0]) ** 2, (after[2] / self.limits[1]) ** 2
        over = (far > 1) | (lean > 1)
        if self.pay == "fall":
            return after, -10 * self.unit * over, over
        worth = 1.0 if self.pay == "step" else 1 - (far + lean) / 2
        return after, self.unit * worth * (1 - over), over

    def observed(self, x: Numbers) -> Numbers:
        """The state, or with sine and cosine for the angle."""
        return (x[0], x[1], math.sin(x[2]), math.cos(x[2]), x[3]) if self.sines else x


def controller(env: Poles, cost: tuple[float, ...]) -> Policy:
    """The linear-quadratic regulator of the law at the top, rounded to the nearest force; `cost` of the state's parts.

    The Riccati equation is iterated until it settles.
    """
    step, last = 1e-5, env.A - 1
    # column i of F: how the next state follows the i-th number of this one; the two pushes cancel each other
    F = (np.array(env.law(step * np.eye(4), last, np)[0]) + np.array(env.law(step * np.eye(4), 0, np)[0])) / (2 * step)
    g = (np.array(env.law([0.0] * 4, last, Floats)[0]) - env.law([0.0] * 4, 0, Floats)[0]) / (2 * env.forces[-1])
    P = np.diag(cost)
    gain = np.zeros(4)
    for _ in range(2000):
        gain = (g @ P @ F) / (1e-3 + g @ P @ g)
        P = np.diag(cost) + F.T @ P @ (F - np.outer(g, gain))
    forces, (a, b, c, d) = env.forces.tolist(), gain.tolist()

    def policy(env: Any) -> int:
        x, v, angle, turn = env.state
        wanted = -(a * x + b * v + c * angle + d * turn)
        return min(range(len(forces)), key=lambda i: abs(forces[i] - wanted))

    return policy


def best(env: Poles) -> float:
    """The best of some controllers, which care more or less for the place and for the angle."""
    costs = ((0.1, 0.1, 1.0, 0.1), (1.0, 0.1, 1.0, 0.1), (1.0, 1.0, 1.0, 1.0), (0.01, 0.01, 1.0, 0.01))
    return best_played(env, *(controller(env, cost) for cost in costs))


FAMILY = Family(name="poles", half="made", make=Poles, H=300, episodes=runs(220), best=best)
