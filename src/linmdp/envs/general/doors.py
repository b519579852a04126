"""Doors: what pays well lies behind what pays nothing for long.

Half of the instances are a chain of two to four doors. At each, one action pushes the door, which opens with a chance
of 15 to 25 percent, and the others pay a little or nothing and change nothing; the pushing action is another one at
each door. Behind the last one every step until the end pays much. The other half misleads: at the start one action pays
a little and stays, one is a bait, which pays at once and leads to a pit that costs or pays nothing until the
end, and one enters a corridor whose steps cost a little each, and where a wrong action leads back to the start; its end
pays at each step until the end of the episode. Shown is the state as a number, or as a row of zeros and a one.
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


def misleading(rng: np.random.Generator) -> Table:
    """A bait, a pit, and a corridor that is worth its costs."""
    n, H = int(rng.integers(3, 7)), int(rng.integers(15, 41))
    A, scale = int(rng.integers(3, 5)), float(rng.choice([0.1, 1.0, 10.0]))
    stay, bait, enter = rng.permutation(A)[:3]
    forward, slip = rng.integers(A, size=n), float(rng.choice([0.0, 0.1]))
    costs, small, pit = rng.uniform(0.0, 0.1), rng.uniform(0.02, 0.1), float(rng.choice([0.0, -0.05]))
    lure = rng.uniform(0.3, 0.8) * small * H - pit * H
    prize = (rng.uniform(1.5, 4.0) * small * H + costs * n) / max(H - 1.5 * n, 3)
    last, hole = n + 1, n + 2  # 1 to n is the corridor

    def outcomes(s: int, a: int) -> list[tuple[float, int | None, float]]:
        if s == last:
            return [(1.0, last, scale * prize)]
        if s == hole:
            return [(1.0, hole, scale * pit)]
        if s == 0:
            pays = {stay: (0, small), bait: (hole, lure), enter: (1, -costs)}
            to, pay = pays.get(a, (0, 0.0))
            return [(1.0, to, scale * pay)]
        on = s + 1 if a == forward[s - 1] else 0
        return [(1 - slip, on, -scale * costs), (slip, s, -scale * costs)]

    return tabulated(n + 3, A, H, 0, outcomes)


def make(rng: np.random.Generator) -> TableInstance:
    """Draw a chain or a corridor."""
    model = chain(rng) if rng.random() < 0.5 else misleading(rng)
    ends, noise = bool(rng.random() < 0.5), float(rng.choice([0.0, 0.01])) * float(np.abs(model.reward).max())
    if rng.random() < 0.3:
        rows = np.eye(model.S, dtype=np.int8)
        space = spaces.MultiBinary(model.S)
        return TableInstance(model, space=space, shown=lambda s: rows[s].copy(), noise=noise, ends=ends)
    return TableInstance(model, noise=noise, ends=ends)


FAMILY = Family(name="doors", half="kept", make=make, H=60, episodes=runs(40))
