"""Small numbered states: chains, locks, doors and seas, where what pays well lies far away, and random linear MDPs."""

from __future__ import annotations

import numpy as np
from gymnasium import spaces

from linmdp.envs.general.base import Outcomes, Table, TableInstance, family, runs, tabulated
from linmdp.envs.general.grids import drawn

BACK, ON = 0, 1
ROW = ("number", "floats", "board")


@family("chains", "made", H=60, episodes=runs(42))
def chains(rng: np.random.Generator) -> TableInstance:
    """Chains: a small reward at one end, a large one far away at the other.

    States are the places 0 to N-1, and 0 is the first. One action goes on, another goes back, and a third, in some
    instances, rests. In a river (RiverSwim: Strehl and Littman 2008) going on succeeds with some chance only, and the
    stream may push back; on a slide (NChain: Dearden, Friedman and Russell 1998) going back leads to the start at once,
    and the two actions are confused with some chance. Going back pays a little at place 0, going on pays much at the
    last.
    """
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
    return drawn(rng, model, ROW, np.zeros((1, N), dtype=np.int64), (0.0, 0.0, 0.05), unit)


@family("locks", "made", H=39, episodes=runs(20))
def locks(rng: np.random.Generator) -> TableInstance:
    """Combination locks: a prize behind a row of right actions, and each wrong one undoes the work.

    States are the number of right actions so far, 0 to L-1, and a stuck lock in some instances. At each place one
    action is right. A wrong one goes back to the start, goes back one place, or sticks the lock until the day is over.
    The last right action pays the prize, and the lock closes again: a day has time for one to three openings.
    """
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
    return drawn(rng, model, ROW, np.zeros((1, L + 1), dtype=np.int64), (0.0, 0.0, 0.05), prize)


@family("deep_sea", "kept", H=12, episodes=runs(9))
def deep_sea(rng: np.random.Generator) -> TableInstance:
    """Deep sea: a treasure that only one sequence of actions out of 2^N finds, and each step towards it costs.

    A diver sinks one row of an N x N grid at each of N steps, to the left or to the right; the first cell is at the top
    left. A step to the right costs 0.01/N of the treasure, and the treasure lies at the bottom right (Osband et al.
    2019, "Behaviour suite"). Which action is right is drawn for each cell.
    """
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
    sea = np.zeros((N, N), dtype=np.int64)
    return drawn(rng, model, ("number", "board"), sea, (0.0, 0.0, 0.0, 0.01), treasure)


@family("doors", "kept", H=60, episodes=runs(40))
def doors(rng: np.random.Generator) -> TableInstance:
    """Doors: what pays well lies behind doors that seldom open.

    At each of two to four doors in a row one action pushes, which opens the door with a chance of 15 to 25 percent, and
    the others pay a little or nothing and change nothing; the pushing action is never that of the door before. Behind
    the last one every step until the end pays much. Shown is the state as a number, or as a row of zeros and a one.
    """
    n, A = int(rng.integers(2, 5)), int(rng.integers(2, 4))
    H = int(rng.integers(10 * n, 15 * n + 1))
    chance, scale = rng.uniform(0.15, 0.25, n), float(rng.choice([0.1, 1.0, 10.0]))
    push = (rng.integers(A) + np.cumsum(rng.integers(1, A, size=n))) % A  # never the same one twice in a row
    little = rng.uniform(0, 0.05, (n, A))
    little[:, int(rng.integers(A))] = 0.0

    def outcomes(s: int, a: int) -> Outcomes:
        if s == n:
            return [(1.0, n, scale)]
        if a == push[s]:
            return [(chance[s], s + 1, 0.0), (1 - chance[s], s, 0.0)]
        return [(1.0, s, scale * little[s, a])]

    return bits(tabulated(n + 1, A, H, 0, outcomes), rng)


def bits(model: Table, rng: np.random.Generator) -> TableInstance:
    """States as numbers, or in some instances as unit vectors; rewards have a little noise in half of the instances."""
    ends, noise = bool(rng.random() < 0.5), float(rng.choice([0.0, 0.01])) * float(np.abs(model.reward).max())
    if rng.random() < 0.7:
        return TableInstance(model, noise=noise, ends=ends)
    rows = np.eye(model.S, dtype=np.int8)
    return TableInstance(
        model, space=spaces.MultiBinary(model.S), shown=lambda s: rows[s].copy(), noise=noise, ends=ends
    )


@family("misleading", "kept", H=40, episodes=runs(40))
def misleading(rng: np.random.Generator) -> TableInstance:
    """Misleading rewards: what pays at once leads to nothing, and what pays well costs at first.

    At the start one action pays a little and stays, one is a bait, which pays at once and leads to a pit that costs or
    pays nothing until the end, and one enters a corridor of three to six steps. Each of these costs a little, a wrong
    action leads back to the start, and in some instances one slips and stays where one is. Behind the last step every
    step until the end of the episode pays much. Shown is the state as a number, or as a row of zeros and a one.
    """
    n, H = int(rng.integers(3, 7)), int(rng.integers(15, 41))
    A, scale = int(rng.integers(3, 5)), float(rng.choice([0.1, 1.0, 10.0]))
    stay, bait, enter = rng.permutation(A)[:3]
    forward, slip = rng.integers(A, size=n), float(rng.choice([0.0, 0.1]))
    costs, small, pit = rng.uniform(0.0, 0.1), rng.uniform(0.02, 0.1), float(rng.choice([0.0, -0.05]))
    lure = rng.uniform(0.3, 0.8) * small * H - pit * H
    prize = (rng.uniform(1.5, 4.0) * small * H + costs * n) / max(H - 1.5 * n, 3)
    last, hole = n + 1, n + 2  # 1 to n is the corridor

    def outcomes(s: int, a: int) -> Outcomes:
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

    return bits(tabulated(n + 3, A, H, 0, outcomes), rng)


def arms(rng: np.random.Generator) -> TableInstance:
    """Safe arms and a risky one."""
    H, A = int(rng.integers(1, 9)), int(rng.integers(2, 6))
    chance, scale = rng.uniform(0.08, 0.35), float(rng.choice([0.1, 1.0, 10.0]))
    safe, risky = rng.uniform(0.2, 1.0, A), int(rng.integers(A))
    prize = safe.max() * rng.uniform(1.25, 2.0) / chance

    def outcomes(s: int, a: int) -> Outcomes:
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

    def outcomes(s: int, a: int) -> Outcomes:
        if s == 1:
            return [(1.0, 0, 0.0)] if shuts and a == push else [(1.0, 1, scale * prize)]
        if a != push:
            return [(1.0, 0, scale * stay[a])]
        return [(chance, 1, -scale * cost), (1 - chance, 0, -scale * cost)]

    noise = float(rng.choice([0.0, 0.02])) * scale
    return TableInstance(tabulated(2, A, H, 0, outcomes), noise=noise, ends=bool(rng.random() < 0.5))


@family("traps", "made", H=24, episodes={"quick": 120, "full": 300})
def traps(rng: np.random.Generator) -> TableInstance:
    """Traps for learners that settle too early: the better choice looks worse until it has been made often enough.

    Half of the instances are arms: in each of one to eight steps, several safe arms pay little for certain, and a risky
    one pays more in the mean, but mostly nothing. The other half is a hall with a door: staying pays a little, pushing
    the door pays nothing (or costs a little) and opens it with a chance of 3 to 8 percent, and in the room behind it
    every step until the end pays much; in some instances only until the door is pushed again, which shuts it.
    """
    return arms(rng) if rng.random() < 0.5 else door(rng)


@family("linear_mdps", "kept", H=30, episodes=runs(20))
def linear_mdps(rng: np.random.Generator) -> TableInstance:
    """Random linear MDPs: what an action does is a hidden mixture of a few things that may happen.

    P(s' | s, a) = <phi(s, a), mu(s')> and r(s, a) = <phi(s, a), theta>, with phi(s, a) drawn from the unit simplex;
    each of its d numbers stands for a distribution of the next state and for a reward.
    """
    S, A, d, H = (int(rng.integers(low, high + 1)) for low, high in ((8, 30), (2, 5), (3, 8), (10, 30)))
    phi = rng.dirichlet(np.full(d, rng.uniform(0.1, 0.5)), size=(S, A))
    mu = rng.dirichlet(np.full(S, rng.uniform(0.05, 0.5)), size=d)
    unit = rng.uniform(0.3, 5.0)
    theta = unit * (rng.beta(0.5, 1.0, size=d) + rng.choice([0.0, 0.0, -1.0]))
    start = np.full(S, 1 / S) if rng.random() < 0.5 else np.eye(S)[0]
    model = Table(
        H=H,
        chance=phi @ mu,
        next=np.broadcast_to(np.arange(S), (S, A, S)),
        reward=np.broadcast_to((phi @ theta)[:, :, None], (S, A, S)),
        over=np.zeros((S, A, S), dtype=np.bool_),
        start=start,
    )
    noise, ends = unit * float(rng.choice([0.0, 0.1])), bool(rng.random() < 0.5)
    if rng.random() < 0.5:
        return TableInstance(model, noise=noise, ends=ends)
    seen = phi.reshape(S, A * d).astype(np.float32)
    space = spaces.Box(0.0, 1.0, (A * d,), np.float32)
    return TableInstance(model, space=space, shown=lambda s: seen[s].copy(), noise=noise, ends=ends)
