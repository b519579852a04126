"""Two-link arms: swing the tip of a hanging double pendulum above a line, with a motor in the elbow only.

The state is (angle 1, angle 2, velocity 1, velocity 2), hanging nearly at rest at the start; the law of motion is that
of Sutton's acrobot (1996), integrated by Runge and Kutta. The episode ends when the tip is above the line, or, where
the height itself is paid, when the day is over.

Drawn: masses and lengths of the links, gravity, the torque, the line, the actions, whether angles are seen as they are
or as sines and cosines, H, and what is paid: -c a step until the line is reached, a prize there, or the height of the
tip at each step. The best known return is that of a beam search; there is no noise, so a policy can earn it.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from linmdp.envs.general.base import Family, runs
from linmdp.envs.general.physics import Numbers, Physics, beamed, turned
from linmdp.types import Array

TAU = 0.2
FASTEST = 4 * np.pi, 9 * np.pi


class Arms(Physics):
    """One arm."""

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
        high = np.concatenate((turns, FASTEST))
        H = int(rng.integers(150, 251))
        super().__init__(H=H, A=len(self.torques), low=-high, high=high, ends=ends)

    def begin(self) -> None:
        """Hanging, nearly at rest."""
        self.state = self.np_random.uniform(-0.1, 0.1, size=4).tolist()

    def law(self, x: Numbers, action: int, m: Any) -> tuple[Numbers, Any, Any]:
        """One step of Runge and Kutta, of fourth order; velocities are bounded, angles go round."""
        torque = float(self.torques[action])
        k1 = self._rates(x, torque, m)
        k2 = self._rates([p + TAU / 2 * k for p, k in zip(x, k1, strict=True)], torque, m)
        k3 = self._rates([p + TAU / 2 * k for p, k in zip(x, k2, strict=True)], torque, m)
        k4 = self._rates([p + TAU * k for p, k in zip(x, k3, strict=True)], torque, m)
        slopes = zip(x, k1, k2, k3, k4, strict=True)
        a, b, v, w = (p + TAU / 6 * (s1 + 2 * s2 + 2 * s3 + s4) for p, s1, s2, s3, s4 in slopes)
        fast, faster = FASTEST
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

    def swing(self, x: Numbers) -> Array:
        """How promising states are: the height, and the speed that may become height."""
        speed = self.lengths[0] ** 2 * x[2] ** 2 + self.lengths[1] ** 2 * (x[2] + x[3]) ** 2
        found: Array = self.unit * (self.height(x, np) + speed / (2 * self.g))
        return found

    def observed(self, x: Numbers) -> Numbers:
        """The state, or with sines and cosines for angles."""
        a, b, v, w = x
        return (math.cos(a), math.sin(a), math.cos(b), math.sin(b), v, w) if self.sines else x


def best(env: Arms) -> float:
    """Beam search."""
    return beamed(env, env.swing, np.array([0.1, 0.1, 0.3, 0.3]))


FAMILY = Family(name="arms", half="kept", make=Arms, H=250, episodes=runs(200), best=best)
