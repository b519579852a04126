"""Dice games: when to stop, and what to throw again.

Half of the instances are in the manner of Pig: in each of one to three rounds one or two dice are thrown again and
again, and what they show is added up, until the player holds, which pays the sum, or a bad face comes up, which loses
it. The other half is in the manner of Yahtzee: two or three dice are thrown, then chosen ones again, two or three
times at most; at the end, or where none is chosen, sums, pairs, equal and consecutive faces pay. An action chooses a
subset of the dice, which lie in order. Faces, rounds, what is bad and what is paid are drawn. Shown are whole numbers:
the sum and the rounds that are left, or the dice and the throws that are left.
"""

from __future__ import annotations

from collections import Counter
from itertools import product

import numpy as np
from gymnasium import spaces

from linmdp.envs.general.base import Family, TableInstance
from linmdp.envs.general.explored import explored


def pig(rng: np.random.Generator) -> TableInstance:
    """Hold or throw."""
    faces, dice, rounds = int(rng.integers(4, 11)), int(rng.integers(1, 3)), int(rng.integers(1, 4))
    bad = int(rng.integers(1, 3)) if faces > 5 and dice == 1 else 1  # faces that lose, from 1 on
    most = 5 * faces
    unit, consolation = float(rng.choice([0.1, 1.0])), float(rng.choice([0.0, 2.0]))
    throws = Counter(sum(t) if min(t) > bad else 0 for t in product(range(1, faces + 1), repeat=dice))
    hold = int(rng.integers(2))

    def outcomes(state: tuple[int, int], action: int) -> list[tuple[float, tuple[int, int] | None, float]]:
        total, left = state
        following = (0, left - 1) if left > 1 else None
        if action == hold:
            return [(1.0, following, unit * total)]
        result: list[tuple[float, tuple[int, int] | None, float]] = []
        for thrown, n in throws.items():
            p = n / faces**dice
            if thrown:
                result.append((p, (min(total + thrown, most), left), 0.0))
            else:
                result.append((p, following, unit * consolation))
        return result

    model, states = explored({(0, rounds): 1.0}, 2, 12 * rounds, outcomes)
    space = spaces.MultiDiscrete([most + 1, rounds + 1])
    return TableInstance(model, space=space, shown=lambda s: np.array(states[s]), ends=bool(rng.random() < 0.5))


def yahtzee(rng: np.random.Generator) -> TableInstance:
    """Which dice to throw again."""
    n = int(rng.integers(2, 4))
    faces, throws = int(rng.integers(4, 7 if n == 2 else 6)), int(rng.integers(2, 4))
    unit, summed = float(rng.choice([0.1, 1.0])), rng.uniform(0.0, 0.5)
    pays = rng.permutation([rng.uniform(0, 3), rng.uniform(3, 10), rng.uniform(6, 20)])  # a pair, a run, all equal
    order = rng.permutation(2**n)

    def paid(dice: tuple[int, ...]) -> float:
        different = len(set(dice))
        run = different == n and dice[-1] - dice[0] == n - 1
        pattern = pays[2] if different == 1 else pays[1] if run else pays[0] if different < n else 0.0
        return float(unit * (summed * sum(dice) + pattern))

    Thrown = tuple[tuple[int, ...], int]

    def outcomes(state: Thrown, action: int) -> list[tuple[float, Thrown | None, float]]:
        dice, left = state
        again = [i for i in range(n) if order[action] >> i & 1]
        if not again:
            return [(1.0, None, paid(dice))]
        kept = [dice[i] for i in range(n) if i not in again]
        p = faces ** -len(again)
        result: list[tuple[float, Thrown | None, float]] = []
        for new in product(range(1, faces + 1), repeat=len(again)):
            after = tuple(sorted((*kept, *new)))
            result.append((p, (after, left - 1), 0.0) if left > 1 else (p, None, paid(after)))
        return result

    start = Counter(tuple(sorted(t)) for t in product(range(1, faces + 1), repeat=n))
    model, states = explored({(t, throws): c / faces**n for t, c in start.items()}, 2**n, throws, outcomes)
    space = spaces.MultiDiscrete([*[faces + 1] * n, throws + 1])
    return TableInstance(model, space=space, shown=lambda s: np.array([*states[s][0], states[s][1]]))


def make(rng: np.random.Generator) -> TableInstance:
    """Draw one of the two games."""
    return pig(rng) if rng.random() < 0.5 else yahtzee(rng)


FAMILY = Family(name="dice", half="kept", make=make, H=36, episodes={"quick": 250, "full": 600})
