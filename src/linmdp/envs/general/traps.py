"""Traps for whoever is content too early: the better choice looks worse until it has been made often enough.

Half of the instances are arms: in each of one to eight steps, several safe arms pay little for certain, and a risky
one pays more in the mean, but mostly nothing. The other half is a hall with a door: staying pays a little, pushing the
door pays nothing (or costs a little) and opens it with a chance of 3 to 8 percent, and in the room behind it every
step until the end pays much; in some instances only until the door is pushed again, which shuts it.
"""

from __future__ import annotations

import numpy as np

from linmdp.envs.general.base import Family, TableInstance, tabulated


def arms(rng: np.random.Generator) -> TableInstance:
    """Safe arms and a risky one."""
    H, A = int(rng.integers(1, 9)), int(rng.integers(2, 6))
    chance, scale = rng.uniform(0.08, 0.35), float(rng.choice([0.1, 1.0, 10.0]))
    safe, risky = rng.uniform(0.2, 1.0, A), int(rng.integers(A))
    prize = safe.max() * rng.uniform(1.25, 2.0) / chance

    def outcomes(s: int, a: int) -> list[tuple[float, int | None, float]]:
        if a != risky:
            return [(1.0, 0, scale * safe[a])]
        return [(chance, 0, scale * prize), (1 - chance, 0, 0.0)]

    noise = float(rng.choice([0.0, 0.02])) * scale
    return TableInstance(tabulated(1, A, H, 0, outcomes), noise=noise, ends=bool(rng.random() < 0.5))


def door(rng: np.random.Generator) -> TableInstance:
    """A hall, a door that seldom opens, and a room."""
    H, A = int(rng.integers(8, 25)), int(rng.integers(2, 5))
    chance, scale = rng.uniform(0.03, 0.08), float(rng.choice([0.1, 1.0, 10.0]))
    stay, push = rng.uniform(0.02, 0.1, A), int(rng.integers(A))
    cost, shuts = float(rng.choice([0.0, 0.02])), bool(rng.random() < 0.5)
    # what the door promises is 1.5 to 4 times what staying pays
    steps = chance * sum((1 - chance) ** t * (H - 1 - t) for t in range(H))
    prize = rng.uniform(1.5, 4.0) * H * (stay.max() + cost) / steps

    def outcomes(s: int, a: int) -> list[tuple[float, int | None, float]]:
        if s == 1:
            return [(1.0, 0, 0.0)] if shuts and a == push else [(1.0, 1, scale * prize)]
        if a != push:
            return [(1.0, 0, scale * stay[a])]
        return [(chance, 1, -scale * cost), (1 - chance, 0, -scale * cost)]

    noise = float(rng.choice([0.0, 0.02])) * scale
    return TableInstance(tabulated(2, A, H, 0, outcomes), noise=noise, ends=bool(rng.random() < 0.5))


def make(rng: np.random.Generator) -> TableInstance:
    """Draw arms or a door."""
    return arms(rng) if rng.random() < 0.5 else door(rng)


FAMILY = Family(name="traps", half="made", make=make, H=24, episodes={"quick": 120, "full": 300})
