"""Doors: what pays well lies behind doors that seldom open.

At each of two to four doors in a row one action pushes, which opens the door with a chance of 15 to 25 percent, and the
others pay a little or nothing and change nothing; the pushing action is never that of the door before. Behind the last
one every step until the end pays much. Shown is the state as a number, or as a row of zeros and a one.
"""

from __future__ import annotations

import numpy as np
from gymnasium import spaces

from linmdp.envs.general.base import Family, Table, TableInstance, runs, tabulated


def chain(rng: np.random.Generator) -> Table:
    """A chain of doors that seldom open."""
    n, A = int(rng.integers(2, 5)), int(rng.integers(2, 4))
    H = int(rng.integers(10 * n, 15 * n + 1))
    chance, scale = rng.uniform(0.15, 0.25, n), float(rng.choice([0.1, 1.0, 10.0]))
    push = (rng.integers(A) + np.cumsum(rng.integers(1, A, size=n))) % A  # never the same one twice in a row
    little = rng.uniform(0, 0.05, (n, A))
    little[:, int(rng.integers(A))] = 0.0

    def outcomes(s: int, a: int) -> list[tuple[float, int | None, float]]:
        if s == n:
            return [(1.0, n, scale)]
        if a == push[s]:
            return [(chance[s], s + 1, 0.0), (1 - chance[s], s, 0.0)]
        return [(1.0, s, scale * little[s, a])]

    return tabulated(n + 1, A, H, 0, outcomes)


def shown(model: Table, rng: np.random.Generator) -> TableInstance:
    """States as numbers, or in some instances as unit vectors; rewards have a little noise in half of the instances."""
    ends, noise = bool(rng.random() < 0.5), float(rng.choice([0.0, 0.01])) * float(np.abs(model.reward).max())
    if rng.random() < 0.7:
        return TableInstance(model, noise=noise, ends=ends)
    rows = np.eye(model.S, dtype=np.int8)
    return TableInstance(
        model, space=spaces.MultiBinary(model.S), shown=lambda s: rows[s].copy(), noise=noise, ends=ends
    )


def make(rng: np.random.Generator) -> TableInstance:
    """Draw a chain."""
    return shown(chain(rng), rng)


FAMILY = Family(name="doors", half="kept", make=make, H=60, episodes=runs(40))
