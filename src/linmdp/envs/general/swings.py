"""What has to swing to get up, pendulums, arms and cars between hills; and landers, which have to come down softly."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from linmdp.envs.general.base import family, runs
from linmdp.envs.general.physics import Numbers, Physics, turned


@family("pendulums", "kept", H=200, episodes=runs(150))
class Pendulums(Physics):
    """Pendulums: swing a rod up and hold it there, with a motor that is too weak to lift it at once.

    The state is (angle, angular velocity), anywhere at the start or hanging; each step applies one of some torques.
    There is no early end: an episode has H steps, and their end is a termination in some instances, a truncation in
    others.
    """

    tau, fastest = 0.05, 8.0

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
        high = np.array([*turn, self.fastest])
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
        speed = m.clip(x[1] * (1 - self.friction) + self.tau * pull, -self.fastest, self.fastest)
        costs = angle**2 + 0.1 * x[1] ** 2 + 0.001 * torque**2
        reward = -costs if self.pay == "costs" else (1 + m.cos(angle)) / 2
        return (turned(angle + self.tau * speed), speed), self.unit * reward, False

    def observed(self, x: Numbers) -> Numbers:
        """The state, or with cosine and sine for the angle."""
        return (math.cos(x[0]), math.sin(x[0]), x[1]) if self.sines else (turned(x[0]), x[1])


@family("arms", "kept", H=250, episodes=runs(200))
class Arms(Physics):
    """Two-link arms: swing the tip of a hanging double pendulum above a line, with a motor in the elbow only.

    The state is (angle 1, angle 2, velocity 1, velocity 2), hanging nearly at rest at the start; the law of motion is
    that of Sutton's acrobot (1996), integrated by Runge and Kutta. The episode ends when the tip is above the line, or,
    where the height itself is paid, when the day is over.
    """

    tau, fastest = 0.2, (4 * np.pi, 9 * np.pi)

    def __init__(self, rng: np.random.Generator) -> None:
        self.masses = rng.uniform(0.6, 1.4, size=2).tolist()
        self.lengths = rng.uniform(0.7, 1.3, size=2).tolist()
        self.g = rng.uniform(7.0, 11.0)
        weight = self.masses[1] * self.g * self.lengths[1] / 9.8  # 1 for Sutton's arm
        self.torques = weight * rng.uniform(0.9, 1.6) * np.array([(-1.0, 1.0), (-1.0, 0.0, 1.0)][rng.integers(2)])
        self.line = rng.uniform(0.4, 0.7) * sum(self.lengths)
        self.pay = str(rng.choice(["haste", "prize", "height"], p=[0.5, 0.2, 0.3]))
        self.unit, self.sines = rng.uniform(0.3, 3.0), bool(rng.random() < 0.6)
        ends = bool(rng.random() < 0.5) and self.pay == "height"
        turns = np.array([1.0] * 4 if self.sines else [np.pi] * 2)
        high = np.concatenate((turns, self.fastest))
        H = int(rng.integers(150, 251))
        super().__init__(H=H, A=len(self.torques), low=-high, high=high, ends=ends)

    def begin(self) -> None:
        """Hanging, nearly at rest."""
        self.state = self.np_random.uniform(-0.1, 0.1, size=4).tolist()

    def law(self, x: Numbers, action: int, m: Any) -> tuple[Numbers, Any, Any]:
        """One step of Runge and Kutta, of fourth order; velocities are bounded, angles go round."""
        torque = float(self.torques[action])
        k1 = self._rates(x, torque, m)
        k2 = self._rates([p + self.tau / 2 * k for p, k in zip(x, k1, strict=True)], torque, m)
        k3 = self._rates([p + self.tau / 2 * k for p, k in zip(x, k2, strict=True)], torque, m)
        k4 = self._rates([p + self.tau * k for p, k in zip(x, k3, strict=True)], torque, m)
        slopes = zip(x, k1, k2, k3, k4, strict=True)
        a, b, v, w = (p + self.tau / 6 * (s1 + 2 * s2 + 2 * s3 + s4) for p, s1, s2, s3, s4 in slopes)
        fast, faster = self.fastest
        after = turned(a), turned(b), m.clip(v, -fast, fast), m.clip(w, -faster, faster)
        height = self.height(after, m)
        there = height > self.line
        if self.pay == "height":
            return after, self.unit * (1 + height / sum(self.lengths)) / 2, False
        return after, self.unit * (50.0 * there if self.pay == "prize" else -1.0), there

    def _rates(self, x: Numbers, torque: float, m: Any) -> Numbers:
        """Velocities and accelerations: Lagrange's equations, links with their mass in the middle."""
        (m1, m2), (l1, l2), g = self.masses, self.lengths, self.g
        c1, c2 = l1 / 2, l2 / 2
        i1, i2 = m1 * l1**2 / 12 + m1 * c1**2, m2 * l2**2 / 12 + m2 * c2**2
        a, b, v, w = x
        cos, sin = m.cos(b), m.sin(b)
        M11 = i1 + i2 + m2 * (l1**2 + 2 * l1 * c2 * cos)
        M12 = i2 + m2 * l1 * c2 * cos
        pull2 = m2 * c2 * g * m.sin(a + b)
        pull1 = (m1 * c1 + m2 * l1) * g * m.sin(a) + pull2
        whirl = m2 * l1 * c2 * sin
        f1 = whirl * (2 * v * w + w**2) - pull1
        f2 = torque - whirl * v**2 - pull2
        det = M11 * i2 - M12**2
        return v, w, (i2 * f1 - M12 * f2) / det, (M11 * f2 - M12 * f1) / det

    def height(self, x: Numbers, m: Any) -> Any:
        """Of the tip above the shoulder."""
        return -self.lengths[0] * m.cos(x[0]) - self.lengths[1] * m.cos(x[0] + x[1])

    def observed(self, x: Numbers) -> Numbers:
        """The state, or with sines and cosines for angles."""
        a, b, v, w = x
        return (math.cos(a), math.sin(a), math.cos(b), math.sin(b), v, w) if self.sines else x


@family("hills", "made", H=200, episodes=runs(170))
class Hills(Physics):
    """Hills: a car in a valley whose engine is too weak to climb out of it at once.

    The height of the ground is a sine of the place, and gravity pulls along its slope. Each step the engine pushes to
    the left, to the right or, in some instances, not at all. The state is (place, velocity); the episode ends at the
    flag high on one side, or after H steps. So the car has to swing (Moore 1990).
    """

    fastest = 0.07

    def __init__(self, rng: np.random.Generator) -> None:
        self.gravity = rng.uniform(0.002, 0.0032)
        strength = self.gravity * rng.uniform(0.36, 0.55)
        self.pushes = strength * np.array([(-1.0, 1.0), (-1.0, 0.0, 1.0)][rng.integers(2)])
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
        low, high = np.array([self.wall, -self.fastest]), np.array([1.3 * self.flag, self.fastest])
        self.box = low, high
        seen = np.sort(self.side * np.stack((low, high)), axis=0)
        super().__init__(H=H, A=len(self.pushes), low=seen[0], high=seen[1], noise=noise, ends=ends)

    def begin(self) -> None:
        """At rest near the bottom."""
        self.state = self.bottom + float(self.np_random.uniform(-0.1, 0.1)), 0.0

    def law(self, x: Numbers, action: int, m: Any) -> tuple[Numbers, Any, Any]:
        """Roll for one step; the wall stops the car."""
        push = self.side * float(self.pushes[action])
        v = m.clip(x[1] + push - self.gravity * m.cos(self.waves * x[0]), -self.fastest, self.fastest)
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
