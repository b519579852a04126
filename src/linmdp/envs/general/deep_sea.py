"""Deep sea: a treasure that only one sequence of actions out of 2^N finds, and each step towards it costs.

A diver sinks one row of an N x N grid at each of N steps, to the left or to the right; the first cell is at the top
left. A step to the right costs 0.01/N of the treasure, and the treasure lies at the bottom right (Osband et al. 2019,
"Behaviour suite"). Which action is right is drawn for each cell.

Drawn: N, whether a step to the right fails with chance 1/N, what the treasure pays, noise on the reward, and whether a
cell is shown as its number or as a board with a 1 in it. The best return is exact.
"""

from __future__ import annotations

import numpy as np

from linmdp.envs.general.base import Family, Outcomes, TableInstance, runs, tabulated
from linmdp.envs.general.grids import shown_as


def make(rng: np.random.Generator) -> TableInstance:
    """One sea."""
    N = int(rng.integers(5, 13))
    right = rng.integers(2, size=N * N)
    current = 1 / N if rng.random() < 0.3 else 0.0
    treasure = rng.uniform(0.3, 5.0)
    cost = 0.01 * treasure / N

    def outcomes(s: int, a: int) -> Outcomes:
        row, column = divmod(s, N)
        below = min(row + 1, N - 1) * N
        left = below + max(column - 1, 0)
        if a == right[s]:
            yield 1 - current, below + min(column + 1, N - 1), treasure * (s == N * N - 1) - cost
            yield current, left, -cost
        else:
            yield 1.0, left, 0.0

    model = tabulated(N * N, 2, N, 0, outcomes)
    space, shown = shown_as(str(rng.choice(["number", "board"])), np.zeros((N, N), dtype=np.int64))
    noise = float(rng.choice([0.0, 0.0, 0.0, 0.01])) * treasure
    return TableInstance(model, space=space, shown=shown, noise=noise, ends=bool(rng.random() < 0.5))


FAMILY = Family(name="deep_sea", half="kept", make=make, H=12, episodes=runs(9))
