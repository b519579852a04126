"""Poles on carts, to be held up or swung up."""

from __future__ import annotations

import math
from itertools import compress
from typing import Any

import numpy as np
from gymnasium import spaces

from linmdp.envs.general.base import family, runs
from linmdp.envs.general.physics import Numbers, Physics, turned
from linmdp.types import Array

GRAVITY = 9.8


class Cart(Physics):
    """A cart with a pole; the law of motion is that of Barto, Sutton and Anderson (1983)."""

    cart: float
    pole: float
    half: float
    forces: Array

    def accelerated(self, x: Numbers, action: int, m: Any) -> tuple[Any, Any]:
        """The accelerations of the cart and of the angle."""
        _, _, angle, turn = x
        sin, cos, mass = m.sin(angle), m.cos(angle), self.cart + self.pole
        push = (float(self.forces[action]) + self.pole * self.half * turn**2 * sin) / mass
        spin = (GRAVITY * sin - cos * push) / (self.half * (4 / 3 - self.pole * cos**2 / mass))
        return push - self.pole * self.half * spin * cos / mass, spin


@family("poles", "made", H=300, episodes=runs(220))
class Poles(Cart):
    """Poles on carts: keep a pole upright by pushing the cart that it stands on.

    A cart on a track is pushed to the left or to the right at each step, in some instances it may also be left alone.
    The state is (position, velocity, angle, angular velocity), near 0 at the start, with the law of motion of Barto,
    Sutton and Anderson (1983). The episode ends when the pole leans too far or the cart leaves the track, or after H
    steps.
    """

    tau = 0.02

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
        drift, spin = self.accelerated(x, action, m)
        after = at + self.tau * speed, speed + self.tau * drift, angle + self.tau * turn, turn + self.tau * spin
        far, lean = (after[0] / self.limits[0]) ** 2, (after[2] / self.limits[1]) ** 2
        over = (far > 1) | (lean > 1)
        if self.pay == "fall":
            return after, -10 * self.unit * over, over
        worth = 1.0 if self.pay == "step" else 1 - (far + lean) / 2
        return after, self.unit * worth * (1 - over), over

    def observed(self, x: Numbers) -> Numbers:
        """The state, or with sine and cosine for the angle."""
        return (x[0], x[1], math.sin(x[2]), math.cos(x[2]), x[3]) if self.sines else x


@family("blind_poles", "memory", H=300, episodes=runs(220))
class BlindPoles(Poles):
    """Poles on carts whose velocities are not seen: only where the cart is and how the pole leans.

    Everything else is as in the family of poles, and so is the best known return: who remembers the last observation
    knows the velocities, up to their noise.
    """

    def __init__(self, rng: np.random.Generator) -> None:
        super().__init__(rng)
        self.seen = np.isfinite(self._high)
        self._low, self._high = self._low[self.seen], self._high[self.seen]
        self.observation_space = spaces.Box(self._low, self._high, dtype=np.float32)

    def observed(self, x: Numbers) -> Numbers:
        """What has bounds: place and angle."""
        return list(compress(super().observed(x), self.seen))


@family("swingups", "kept", H=200, episodes=runs(170))
class Swingups(Cart):
    """Swing-ups: a pole hangs from a cart, and is to be swung up and held above it by pushing the cart.

    The state is (position, velocity, angle, angular velocity) with the law of motion of a pole on a cart; angle 0 is
    upright, and the pole hangs at the start. At the ends of the track the cart stops, or the episode ends with a fine.
    """

    tau = 0.04

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
        drift, spin = self.accelerated(x, action, m)
        speed, turn = speed + self.tau * drift, m.clip(turn + self.tau * spin, -25.0, 25.0)
        at, angle = at + self.tau * speed, angle + self.tau * turn
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

    def observed(self, x: Numbers) -> Numbers:
        """The state, or with cosine and sine for the angle."""
        return (x[0], x[1], math.cos(x[2]), math.sin(x[2]), x[3]) if self.sines else (x[0], x[1], turned(x[2]), x[3])
