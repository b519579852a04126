"""Chains: a small reward at one end, a large one far away at the other.

States are the places 0 to N-1, and 0 is the first. One action goes on, another goes back, and a third, in some
instances, rests. In a river (RiverSwim: Strehl and Littman 2008) going on succeeds with some chance only, and the
stream may push back; on a slide (NChain: Dearden, Friedman and Russell 1998) going back leads to the start at once,
and the two actions are confused with some chance. Going back pays a little at place 0, going on pays much at the last.

Drawn: N, the kind, all chances, what is paid, which action does what (in most instances at each place anew), noise on
rewards, H, and whether a place is shown as its number, a float or a one-hot vector. The best return is exact.
"""

from __future__ import annotations

import numpy as np

from linmdp.envs.general.base import Family, Outcomes, TableInstance, runs, tabulated
from linmdp.envs.general.grids import shown_as

BACK, ON = 0, 1


def make(rng: np.random.Generator) -> TableInstance:
    """One chain."""
    N, A, H = int(rng.integers(5, 13)), int(rng.integers(2, 4)), int(rng.integers(25, 61))
    river = bool(rng.random() < 0.5)
    success, swept = rng.uniform(0.4, 0.9), rng.uniform(0.0, 0.1)
    confused = float(rng.choice([0.0, 0.1, 0.2]))
    unit = rng.uniform(0.3, 5.0)
    little, much = unit * rng.uniform(0.005, 0.05), unit
    same = rng.permutation(A)
    mixed = rng.random() < 0.7
    meaning = np.array([rng.permutation(A) if mixed else same for _ in range(N)])

    def moved(s: int, what: int) -> tuple[int, float]:
        """Where going back, going on or resting leads, and what it pays."""
        if what == BACK:
            return (max(s - 1, 0) if river else 0), little * (s == 0 or not river)
        return (min(s + 1, N - 1), much * (s == N - 1)) if what == ON else (s, 0.0)

    def outcomes(s: int, a: int) -> Outcomes:
        what = int(meaning[s, a])
        if river and what == ON:
            yield success, *moved(s, ON)
            yield swept, max(s - 1, 0), 0.0
            yield 1 - success - swept, s, 0.0
        elif river or what > ON:
            yield 1.0, *moved(s, what)
        else:
            yield 1 - confused, *moved(s, what)
            yield confused, *moved(s, 1 - what)

    model = tabulated(N, A, H, 0, outcomes)
    space, shown = shown_as(str(rng.choice(["number", "floats", "board"])), np.zeros((1, N), dtype=np.int64))
    noise = float(rng.choice([0.0, 0.0, 0.05])) * unit
    return TableInstance(model, space=space, shown=shown, noise=noise, ends=bool(rng.random() < 0.5))


FAMILY = Family(name="chains", half="made", make=make, H=60, episodes=runs(42))
