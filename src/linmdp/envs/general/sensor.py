"""Small machines that have to last: a sensor that lives on harvested energy, and a machine that wears out.

Half of the instances are `linmdp`'s own sensor with drawn sizes and weather: it sleeps, samples or transmits, and what
it delivers pays. The other half is a machine that wears as it runs and earns less the more it has worn, and breaks
down more often. Each step (an hour) it runs, is serviced, which takes some of the wear away for a fee, or is renewed
for a higher one. A breakdown costs a fine and some hours of repair, in which no action has an effect; after it the
machine is as worn as before. Shown are the battery in mWh, the readings in the queue and the light in lux; or
the wear in hundreds of hours, and the hours of repair that are left.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from linmdp.envs import devices
from linmdp.envs.general.base import Family, Table, TableInstance, runs, tabulated
from linmdp.envs.general.display import Device
from linmdp.envs.general.explored import explored

State = tuple[int, int]
"""Wear, hours of repair that are left."""


def sensor(rng: np.random.Generator) -> TableInstance:
    """The sensor of this package, drawn."""
    battery, queue = int(rng.integers(4, 10)), int(rng.integers(2, 7))
    model = devices.sensor(
        battery=battery,
        queue=queue,
        units=int(rng.integers(1, 4)),
        bright=rng.uniform(0.6, 0.95),
        dark=rng.uniform(0.0, 0.2),
        persistence=rng.uniform(0.6, 0.95),
        sample_cost=int(rng.integers(1, 3)),
        send_cost=int(rng.integers(2, 5)),
        H=int(rng.integers(40, 101)),
    )
    phi = model.features.table()
    unit, shift = float(rng.choice([0.1, 1.0, 50.0])), float(rng.choice([0.0, 0.0, -0.5]))
    chances, pay = phi @ model.mu[0], unit * (phi @ model.theta[0] + shift)
    order = rng.permutation(3)

    def outcomes(s: int, a: int) -> list[tuple[float, int | None, float]]:
        row = chances[s, order[a]]
        return [(float(row[i]), int(i), float(pay[s, order[a]])) for i in np.flatnonzero(row)]

    table: Table = tabulated(model.S, 3, model.H, 0, outcomes)
    sizes = [n for _, n in model.state_fields]
    energy, light = rng.uniform(0.5, 20), rng.uniform(200, 2000)
    states: list[Any] = [np.unravel_index(s, sizes) for s in range(model.S)]
    return Device(table, states, lambda s: (energy * s[0], s[1], 20 + light * s[2]), rng, hours=0.25, noise=0.01 * unit)


def machine(rng: np.random.Generator) -> TableInstance:
    """A machine that wears."""
    H, worn = int(rng.integers(40, 101)), int(rng.integers(6, 21))
    earns, unit = rng.uniform(1.0, 2.0), float(rng.choice([0.1, 1.0, 50.0]))
    fades, wears = rng.uniform(0.2, 1.0), rng.uniform(0.3, 0.9)
    fails = rng.uniform(0.1, 0.5) * (np.arange(worn + 1) / worn) ** rng.uniform(1.0, 3.0)
    fine, repair = rng.uniform(1.0, 6.0), int(rng.integers(1, 4))
    fees = (rng.uniform(0.5, 1.5), rng.uniform(2.0, 6.0))
    better = int(rng.integers(2, max(3, worn // 2)))
    order = rng.permutation(3)

    def outcomes(state: State, action: int) -> list[tuple[float, State | None, float]]:
        wear, down = state
        if down:
            return [(1.0, (wear, down - 1), 0.0)]
        what = int(order[action])
        if what == 1:
            return [(1.0, (max(wear - better, 0), 0), -unit * fees[0])]
        if what == 2:
            return [(1.0, (0, 0), -unit * fees[1])]
        pay, p = earns * (1 - fades * wear / worn), float(fails[wear])
        more = min(wear + 1, worn)
        return [
            (p, (wear, repair), -unit * fine),
            ((1 - p) * wears, (more, 0), unit * pay),
            ((1 - p) * (1 - wears), (wear, 0), unit * pay),
        ]

    model, states = explored({(int(rng.integers(worn // 2 + 1)), 0): 1.0}, 3, H, outcomes)
    return Device(model, states, lambda s: (1.5 * s[0], s[1]), rng, hours=1, noise=0.02 * unit)


def make(rng: np.random.Generator) -> TableInstance:
    """Draw a sensor or a machine."""
    return sensor(rng) if rng.random() < 0.5 else machine(rng)


FAMILY = Family(name="sensor", half="kept", make=make, H=100, episodes=runs(100))
