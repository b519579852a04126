"""Combination locks: a prize behind a row of right actions, and each wrong one undoes the work.

States are the number of right actions so far, 0 to L-1, and a stuck lock in some instances. At each place one action is
right. A wrong one goes back to the start, goes back one place, or sticks the lock until the day is over. The last right
action pays the prize, and the lock closes again: a day has time for one to three openings.

Drawn: L, the number of actions, the combination, what a wrong action does and pays (nothing, or a small lure), the
chance that an action slips to a random one, noise on rewards, whether a place is shown as its number, a float or a
one-hot vector. The best return is exact.
"""

from __future__ import annotations

import numpy as np

from linmdp.envs.general.base import Family, Outcomes, TableInstance, runs, tabulated
from linmdp.envs.general.grids import shown_as


def make(rng: np.random.Generator) -> TableInstance:
    """One lock."""
    wrong = str(rng.choice(["start", "back", "stuck"], p=[0.5, 0.25, 0.25]))
    L, A = int(rng.integers(4, 8 if wrong == "stuck" else 11)), int(rng.integers(2, 6))
    combination = rng.integers(A, size=L)
    combination[-1] = (combination[0] + rng.integers(1, A)) % A  # no action opens it alone
    slip = float(rng.choice([0.0, 0.05]))
    prize = rng.uniform(0.3, 5.0)
    lure = prize * float(rng.choice([0.0, 0.01])) / L
    H = L * int(rng.integers(1, 4)) + int(rng.integers(0, L))
    stuck = L

    def done(s: int, a: int) -> tuple[int, float]:
        """Where an action leads, and what it pays."""
        if s == stuck:
            return s, 0.0
        if a == combination[s]:
            return ((s + 1) % L, prize * (s == L - 1))
        return {"start": 0, "back": max(s - 1, 0), "stuck": stuck}[wrong], lure

    def outcomes(s: int, a: int) -> Outcomes:
        yield 1 - slip, *done(s, a)
        for other in range(A if slip else 0):
            yield slip / A, *done(s, other)

    model = tabulated(L + 1, A, H, 0, outcomes)
    space, shown = shown_as(str(rng.choice(["number", "floats", "board"])), np.zeros((1, L + 1), dtype=np.int64))
    noise = float(rng.choice([0.0, 0.0, 0.05])) * prize
    return TableInstance(model, space=space, shown=shown, noise=noise, ends=bool(rng.random() < 0.5))


FAMILY = Family(name="locks", half="made", make=make, H=39, episodes=runs(20))
