"""A battery in a house whose electricity has a price that changes.

Each step (an hour, or half of one) the house needs energy, and the battery is discharged by a lot, left alone, or
charged by a lot (in some instances by two lots as well). What the house and the battery need is bought at the price of
the step; what the battery gives beyond the need is sold, in some instances for a part of the price, in others for
nothing. Charging loses energy. The price is a profile over the day times a level (cheap, usual, dear) that stays as it
is or changes at random. The reward is what is paid, so it is mostly negative; what is left at the end of the day is
worth nothing. Shown are the charge in kWh, the price, and always the time of day.
"""

from __future__ import annotations

import numpy as np

from linmdp.envs.general.base import Family, runs
from linmdp.envs.general.display import Device
from linmdp.envs.general.explored import explored

State = tuple[int, int, int]
"""Lots in the battery, level of the price, step."""


def make(rng: np.random.Generator) -> Device:
    """Draw a battery, a house and its prices."""
    H = int(rng.choice([24, 48]))
    capacity, lot = int(rng.integers(4, 9)), rng.uniform(0.5, 2.5)
    moves = [-1, 0, 1] if rng.random() < 0.6 else [-2, -1, 0, 1, 2]
    efficiency, sold = rng.uniform(0.8, 0.98), rng.choice([0.0, 0.5, 0.9])
    hour = np.arange(H) * 24 / H
    peak, width = rng.uniform(0, 24), rng.uniform(2, 5)
    away = np.minimum(abs(hour - peak), 24 - abs(hour - peak))
    profile = 1 + rng.uniform(0.5, 2.0) * np.exp(-0.5 * (away / width) ** 2)
    profile *= rng.choice([0.25, 25.0])  # euros or cents
    levels = np.array([1 - rng.uniform(0.2, 0.5), 1.0, 1 + rng.uniform(0.3, 1.0)])
    need = rng.uniform(0.3, 1.5) * lot * (1 + rng.uniform(-0.4, 0.4, H))
    stays = rng.uniform(0.6, 0.95)

    def outcomes(state: State, action: int) -> list[tuple[float, State | None, float]]:
        charge, level, h = state
        after = min(max(charge + moves[action], 0), capacity)
        change = after - charge
        energy = need[h] + lot * (change / efficiency if change > 0 else change)
        reward = -profile[h] * levels[level] * (energy if energy > 0 else sold * energy)
        if h == H - 1:
            return [(1.0, (after, level, h), float(reward))]
        chances = [stays if other == level else (1 - stays) / 2 for other in range(3)]
        return [(p, (after, other, h + 1), float(reward)) for other, p in enumerate(chances)]

    first = int(rng.integers(capacity + 1))
    model, states = explored({(first, level, 0): 1 / 3 for level in range(3)}, len(moves), H, outcomes)
    noise = float(rng.choice([0.0, 0.05])) * lot * float(profile.mean())
    return Device(
        model,
        states,
        lambda s: (s[0] * lot, profile[s[2]] * levels[s[1]]),
        rng,
        hours=24 / H,
        clock=True,
        noise=noise,
    )


FAMILY = Family(name="battery", half="made", make=make, H=48, episodes=runs(48))
