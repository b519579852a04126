"""Misleading rewards: what pays at once leads to nothing, and what pays well costs at first.

At the start one action pays a little and stays, one is a bait, which pays at once and leads to a pit that costs or pays
nothing until the end, and one enters a corridor of three to six steps. Each of these costs a little, a wrong action
leads back to the start, and in some instances one slips and stays where one is. Behind the last step every step until
the end of the episode pays much. Shown is the state as a number, or as a row of zeros and a one.
"""

from __future__ import annotations

import numpy as np

from linmdp.envs.general.base import Family, Table, TableInstance, runs, tabulated
from linmdp.envs.general.doors import shown


def corridor(rng: np.random.Generator) -> Table:
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
    """Draw a corridor and what stands beside it."""
    return shown(corridor(rng), rng)


FAMILY = Family(name="misleading", half="kept", make=make, H=40, episodes=runs(40))
