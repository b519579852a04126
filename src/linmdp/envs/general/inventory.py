"""A store that orders goods ahead of a demand that it does not know.

Each step (a day) it orders nothing or one of two to four sizes, which arrive at once or one or two days later. Then
demand comes, with a law that is drawn (Poisson, geometric, or a rush on some days), and is met from the stock; the
rest is lost, with a fine for lost good will in some instances. A unit sold pays its margin, an order costs a fixed sum,
a unit that is left over costs room, in some instances a part of it spoils overnight, and what exceeds the shelf is
thrown away. Shown are the stock and what is on its way, in units.
"""

from __future__ import annotations

import math

import numpy as np

from linmdp.envs.general.base import Family, TableInstance, runs
from linmdp.envs.general.display import Device
from linmdp.envs.general.explored import explored
from linmdp.types import Array

State = tuple[int, ...]
"""Stock, then what arrives in one, two, ... days."""


def demand_law(rng: np.random.Generator, mean: float, most: int) -> Array:
    """Chances of 0 to `most` units; what is beyond counts as `most`."""
    n, kind = np.arange(most + 1), rng.integers(3)
    if kind == 0:
        law = np.array([mean**k * math.exp(-mean) / math.factorial(k) for k in n])
    elif kind == 1:
        law = (1 / (1 + mean)) * (mean / (1 + mean)) ** n
    else:
        rush = int(rng.integers(most // 2, most + 1))
        law = np.where(n == rush, mean / (2 * rush), 0) + np.where(n == 1, min(mean / 2, 0.6), 0)
        law[0] += max(1 - law.sum(), 0)
    law[-1] += max(1 - law.sum(), 0)
    chances: Array = law / law.sum()
    return chances


def make(rng: np.random.Generator) -> TableInstance:
    """Draw a store, its goods and its customers."""
    H, shelf, lead = int(rng.integers(20, 51)), int(rng.integers(6, 16)), int(rng.integers(0, 3))
    A = int(rng.integers(3, 6)) if lead < 2 else 3
    mean = shelf * rng.uniform(0.12, 0.3)
    lot = max(1, round(mean * rng.uniform(0.8, 1.5)))
    most = int(max(4, math.ceil(3 * mean)))
    law = demand_law(rng, mean, most)
    margin = float(rng.choice([1.0, 7.5, 120.0]))
    room, order = margin * rng.uniform(0.03, 0.25), margin * rng.uniform(0.0, 1.0)
    missed, waste = margin * float(rng.choice([0.0, 0.5])), margin * rng.uniform(0.2, 0.8)
    spoils = float(rng.choice([0.0, 0.3]))  # chance that one unit has spoilt in the morning
    unit = int(rng.choice([1, 12]))  # a unit may be a box of twelve

    def outcomes(state: State, action: int) -> list[tuple[float, State | None, float]]:
        stock, *due = state
        due.append(action * lot)
        stock += due.pop(0)
        lost = max(stock - shelf, 0)
        stock -= lost
        cost = order * (action > 0) + waste * lost
        result: list[tuple[float, State | None, float]] = []
        for wanted, p in enumerate(law):
            sold = min(stock, wanted)
            left = stock - sold
            reward = margin * sold - missed * (wanted - sold) - room * left - cost
            result.append((float(p) * (1 - spoils), (left, *due), float(reward)))
            result.append((float(p) * spoils, (max(left - 1, 0), *due), float(reward)))
        return result

    start = (int(rng.integers(shelf + 1)), *[0] * lead)
    model, states = explored({start: 1.0}, A, H, outcomes)
    return Device(model, states, lambda s: [unit * n for n in s], rng, hours=24, clock=False)


FAMILY = Family(name="inventory", half="made", make=make, H=50, episodes=runs(50))
