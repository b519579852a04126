"""Pendulums: swing a rod up and hold it there, with a motor that is too weak to lift it at once.

The state is (angle, angular velocity), anywhere at the start or hanging; each step applies one of some torques. There
is no early end: an episode has H steps, and their end is a termination in some instances, a truncation in others.

Drawn: gravity, length, mass, friction, the torques, the noise on the velocity, whether the angle is seen as it is or as
its cosine and sine, H, and what is paid: the costs of Gymnasium's Pendulum, or the height of the rod. The best known
return is that of planning on a grid.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from linmdp.envs.general.base import Family, runs
from linmdp.envs.general.physics import Numbers, Physics, best_played, grid_policy, turned

TAU, FASTEST = 0.05, 8.0


class Pendulums(Physics):
    """One pendulum; angle 0 is upright."""

    def __init__(self, rng: np.random.Generator) -> None:
        self.g, self.length, self.mass = rng.uniform(8.0, 11.0), rng.uniform(0.8, 1.2), rng.uniform(0.7, 1.3)
        weight = self.mass * self.g * self.length / 2
        A = int(rng.choice([2, 3, 5]))
        self.torques = weight * rng.uniform(0.35, 0.6) * np.linspace(-1.0, 1.0, A)
        self.friction = float(rng.choice([0.0, 0.05]))
        self.hangs, self.sines = bool(rng.random() < 0.5), bool(rng.random() < 0.7)
        self.pay, self.unit = str(rng.choice(["costs", "height"])), rng.uniform(0.2, 3.0)
        noise = np.array([0.0, rng.choice([0.0, 0.05])])
        turn = [1.0, 1.0] if self.sines else [np.pi]
        high = np.array([*turn, FASTEST])
        H, ends = int(rng.integers(100, 201)), bool(rng.random() < 0.5)
        super().__init__(H=H, A=A, low=-high, high=high, noise=noise, ends=ends)

    def begin(self) -> None:
        """Anywhere, or hanging."""
        spread = np.array([0.3, 0.3]) if self.hangs else np.array([np.pi, 1.0])
        angle, speed = self.np_random.uniform(-spread, spread)
        self.state = float(angle + self.hangs * np.pi), float(speed)

    def law(self, x: Numbers, action: int, m: Any) -> tuple[Numbers, Any, Any]:
        """One step of Euler, as in Gymnasium's Pendulum."""
        torque, angle = float(self.torques[action]), turned(x[0])
        pull = 1.5 * self.g / self.length * m.sin(angle) + 3 * torque / (self.mass * self.length**2)
        speed = m.clip(x[1] * (1 - self.friction) + TAU * pull, -FASTEST, FASTEST)
        costs = angle**2 + 0.1 * x[1] ** 2 + 0.001 * torque**2
        reward = -costs if self.pay == "costs" else (1 + m.cos(angle)) / 2
        return (turned(angle + TAU * speed), speed), self.unit * reward, False

    def observed(self, x: Numbers) -> Numbers:
        """The state, or with cosine and sine for the angle."""
        return (math.cos(x[0]), math.sin(x[0]), x[1]) if self.sines else (turned(x[0]), x[1])


def best(env: Pendulums) -> float:
    """Planning on a grid."""
    return best_played(env, grid_policy(env, (-np.pi, -FASTEST), (np.pi, FASTEST), (81, 65)), episodes=60)


FAMILY = Family(name="pendulums", half="kept", make=Pendulums, H=200, episodes=runs(150), best=best)
