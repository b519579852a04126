"""`lsvi-gp`, transcribed line by line from docs/auto.md: slow, plain, the judge of the fast code.

Every visit is kept, every covariance is a dense matrix, every planning starts from nothing but the visits and the
shares of the planning before. A state is a tuple of numbers. Merging is no part of it: `remember` says
what memory holds of the visits so far.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from linmdp.types import Array

Point = tuple[float, ...]
Pair = tuple[Point, int]
"""A state and an action. One that was tried is a cell."""


class Visit(NamedTuple):
    x: Point
    action: int
    reward: float
    y: Point
    over: bool  # an end, before the last step


class Episode(NamedTuple):
    rewards: list[float]
    over: bool


def top_and_low(
    episodes: Sequence[Episode], rewards: Sequence[float], L: int, discount: float
) -> tuple[list[float], list[float]]:
    """The most and the least that any g rewards in a row have paid, g = 0, ..., L. After an end no more is paid.

    `rewards` are all, also those of the episode that is being played.
    """
    top, low, far = [0.0], [0.0], 1
    for g in range(1, L + 1):
        sums = list(rewards) if g == 1 else []
        for episode in episodes:
            for start in range(len(episode.rewards)):
                window = episode.rewards[start : start + g]
                if len(window) == g or episode.over:
                    sums.append(sum(discount**i * reward for i, reward in enumerate(window)))
        if sums:
            far = g
            top.append(max(sums))
            low.append(min(sums))
        else:  # no episode was that long: the longest window that there was, and then the rest
            top.append(top[far] + discount**far * top[g - far])
            low.append(min(low[far], low[far] + discount**far * low[g - far]))
    if max(rewards) < 0:  # an end after one step might come
        top[1:] = [max(most, *rewards) for most in top[1:]]
    return top, [min(pair) for pair in zip(low, top, strict=True)]


def discounted(rewards: Sequence[float], discount: float) -> float:
    return sum(discount**i * reward for i, reward in enumerate(rewards))


class Kernel:
    """k in units of the range of each coordinate, and k~: what at most p pivots say of it."""

    def __init__(self, unit: Sequence[float], length: float, states: Sequence[Point], p: int) -> None:
        moving = max(sum(u > 0 for u in unit), 1)
        self.unit, self.length = unit, length * math.sqrt(moving / 3)
        self.pivots: list[Point] = []
        self.known: dict[tuple[Point, Point], float] = {}
        self.stands: dict[Pair, int] = {}  # states that were merged into a cell
        for _ in range(p):  # the next pivot is the first state that the others say least about
            left = [self.left(x) for x in states]
            if max(left) < 1e-4:
                break
            self.pivots.append(next(x for x, rest in zip(states, left, strict=True) if rest > max(left) - 1e-6))
            self.known = {}

    def k(self, x: Point, y: Point) -> float:
        square = sum(((a - b) * u / self.length) ** 2 for a, b, u in zip(x, y, self.unit, strict=True))
        return 0.95 * math.exp(-square / 2) + 0.05 * math.exp(-(3**2) * square / 2)

    def between(self, xs: Sequence[Point], ys: Sequence[Point]) -> Array:
        return np.array([[self.k(x, y) for y in ys] for x in xs]).reshape(len(xs), len(ys))

    def smooth(self, x: Point, y: Point) -> float:
        """k~(x, y) = k(x, Z) k(Z, Z)^-1 k(Z, y), which is F F' for any features F that are exact on the pivots Z."""
        if (x, y) not in self.known:
            Z = self.pivots
            inner = np.linalg.solve(self.between(Z, Z), self.between(Z, [y])) if Z else np.zeros((0, 1))
            self.known[x, y] = float((self.between([x], Z) @ inner)[0, 0])
        return self.known[x, y]

    def left(self, x: Point) -> float:
        return max(self.k(x, x) - self.smooth(x, x), 0.0)

    def parts(self, c: Pair, d: Pair, *, seen: bool = True) -> tuple[float, float, float]:
        """What theta_0, theta_1 and theta_2 are multiplied by in cov(f(c), f(d)). What k~ leaves over is exact.

        What was `seen` in a cell is the mean over the states that it stands for, each with something of its own.
        """
        (x, a), (y, b) = c, d
        smooth, same = self.smooth(x, y), float(c == d) / (self.stands.get(c, 1) if seen else 1)
        left = same and same * self.left(x)
        return smooth + left, smooth * (a == b) + left, same

    def cov(self, theta: Sequence[float], c: Pair, d: Pair, *, seen: bool = True) -> float:
        return sum(share * part for share, part in zip(theta, self.parts(c, d, seen=seen), strict=False))


def evidence_step(
    kernel: Kernel, visits: Sequence[Pair], y: Sequence[float], theta: Sequence[float], *, floor: float, quiet: float
) -> list[float]:
    """theta_g <- theta_g^2 (a' K_g a) / (theta_g tr P K_g), P = K^-1, a = P y, for three parts of f and for the noise.

    K has a row for each visit. `floor` and `quiet` are parts of the mean square, and of its root.
    """
    n, target = len(visits), np.array(y)
    K_g = [np.array([[kernel.parts(c, d)[g] for d in visits] for c in visits]) for g in range(3)] + [np.eye(n)]
    P = np.linalg.inv(np.sum([share * part for share, part in zip(theta, K_g, strict=True)], axis=0))
    alpha = P @ target
    power = mean_square(visits, y)
    found = []
    for share, part in zip(theta, K_g, strict=True):
        new = share**2 * float(alpha @ part @ alpha) / (share * float(np.trace(P @ part)))
        found.append(min(max(new, 1e-10 * power), 1e4 * power))
    shared, own, exact, noise = found
    return [shared, max(own, 1e-3 * shared), max(exact, floor * power), max(noise, quiet**2 * power)]


def mean_square(visits: Sequence[Pair], y: Sequence[float]) -> float:
    """Of the mean targets of the cells, over all visits."""
    means = {c: np.mean([target for target, d in zip(y, visits, strict=True) if d == c]) for c in set(visits)}
    return float(np.mean([means[c] ** 2 for c in visits]))


class Posterior:
    """Of f, given noisy means of it in cells with so many visits."""

    def __init__(self, kernel: Kernel, cells: Sequence[Pair], times: Sequence[float], theta: Sequence[float]) -> None:
        self.kernel, self.cells, self.theta = kernel, list(cells), theta
        self.K = np.array([[kernel.cov(theta, c, d) for d in cells] for c in cells])
        self.K += np.diag([theta[3] / n for n in times])
        self.known: dict[Pair, tuple[Array, float]] = {}

    def about(self, c: Pair) -> tuple[Array, float]:
        """What the mean targets are multiplied by for the mean of f(c), and its variance."""
        if c not in self.known:
            row = np.array([self.kernel.cov(self.theta, c, d) for d in self.cells])
            factors = np.linalg.solve(self.K, row)
            self.known[c] = factors, self.kernel.cov(self.theta, c, c, seen=False) - float(factors @ row)
        return self.known[c]

    def scale(self, y: Array) -> float:
        """The s that makes y ~ N(0, s^2 K) most likely."""
        return math.sqrt(float(y @ np.linalg.solve(self.K, y)) / len(y))


class ReferencePlan:
    """Q_g for all g = 1, ..., L. `hope` is the most that is hoped for beyond the best so far; `power` of the visits.

    A scout (`wide`) may find as much at each of the g steps.
    """

    def __init__(
        self,
        posterior: Posterior,
        visits: Sequence[Visit],
        top: Sequence[float],
        low: Sequence[float],
        L: int,
        *,
        A: int,
        beta: float,
        discount: float,
        kept: int,
        hope: float,
        wide: bool,
        again: float,
    ) -> None:
        self.posterior, self.top, self.low, self.L, self.A, self.beta = posterior, top, low, L, A, beta
        self.stride, self.hope, self.wide, self.again = math.ceil(L / min(kept, L)), hope, wide, again
        self.states = {v.x for v in visits} | {v.y for v in visits}
        self.times = {c: sum((v.x, v.action) == c for v in visits) for c in posterior.cells}
        self.y, self.s = [np.zeros(0)], [0.0]
        V = dict.fromkeys(self.states, 0.0)
        for g in range(1, L + 1):
            y = []
            for c in posterior.cells:
                mine = [v for v in visits if (v.x, v.action) == c]
                y.append(sum(v.reward + discount * (0.0 if v.over else V[v.y]) for v in mine) / len(mine) - top[g])
            self.y.append(np.array(y))
            self.s.append(posterior.scale(self.y[g]))
            V = {x: max(self.at(x, g)) for x in self.states}

    def at(self, x: Point, g: int) -> list[float]:
        """Q_g(x, a) for each action."""
        found = []
        for a in range(self.A):
            factors, variance = self.posterior.about((x, a))
            top, mean = self.top[g], float(factors @ self.y[g])
            new = (1 + self.times.get((x, a), 0)) ** (-0.5 if self.wide else -1)
            unknown = min(variance / sum(self.posterior.theta[:3]), 1.0)
            share = self.again * new + (1 - self.again) * unknown
            cap = top + self.hope * (g if self.wide else 1)
            Q = min(top + mean + self.beta * self.s[g] * math.sqrt(max(variance, 0.0)), cap)
            found.append(max(Q + share * min(self.hope, cap - Q), self.low[g]))
        return found

    def q(self, x: Point, g: int) -> list[float]:
        """The same from the next of the levels that are kept for acting."""
        return self.at(x, min(math.ceil(min(max(g, 1), self.L) / self.stride) * self.stride, self.L))


class ReferenceScouts:
    """When a scout plays: where the plan thinks that it is done, and the last one is long enough ago."""

    def __init__(self, *, every: int, budget: float, settled: float) -> None:
        self.every, self.budget, self.settled = every, budget, settled
        self.k, self.first, self.usual, self.known, self.value = 0, float(every), 0.0, 0, 0.0
        self.sent = False

    def begin(self, span: float) -> bool:
        """An episode begins; two returns differ by at most `span`, 0 where scouts are of no use."""
        self.k += 1
        done = self.value <= self.usual + self.settled * span
        self.sent = span > 0 and self.known > 0 and self.k >= self.first and done
        return self.sent

    def thinks(self, value: float) -> None:
        self.value = self.value if self.sent else value

    def ended(self, earned: float, span: float) -> None:
        if self.sent:
            lost = max(self.usual - earned, 0.0) / span
            self.first = self.k + max(self.every, 2 * lost * math.sqrt(self.k) / self.budget)
        else:
            self.known += 1
            rate = max(1 / self.known, 0.1)
            self.usual = (1 - rate) * self.usual + rate * earned
        self.sent = False


class ReferenceGP:
    """The whole learner."""

    def __init__(
        self,
        A: int,
        H: int,
        *,
        beta: float = 2.0,
        features: int = 40,
        length: float = 0.8,
        noise: float = 0.02,
        exact: float = 1.0,
        levels: int = 200,
        kept: int = 50,
        discount: float = 0.99,
        replan: float = 0.1,
        evidence: int = 2,
        scout: float = 3.0,
        every: int = 4,
        budget: float = 1.0,
        settled: float = 0.05,
    ) -> None:
        self.A, self.H, self.beta, self.features, self.length, self.noise = A, H, beta, features, length, noise
        self.exact, self.levels, self.kept, self.discount = exact, levels, kept, discount
        self.replan, self.evidence, self.scout = replan, evidence, scout
        self.scouts = ReferenceScouts(every=every, budget=budget, settled=settled)
        self.visits: list[Visit] = []
        self.stands: dict[Pair, int] = {}
        self.rewards: list[float] = []
        self.again = 0
        self.episodes: list[Episode] = []
        self.playing = Episode([], False)
        self.theta: list[float] | None = None
        self.due = 1
        self.plan: ReferencePlan | None = None
        self.wide: ReferencePlan | None = None

    # what is known of episodes

    @property
    def clock(self) -> bool:
        """Whether all episodes were equally long: then the clock ended them, and no state is terminal."""
        return len({len(episode.rewards) for episode in self.episodes}) == 1

    @property
    def horizon(self) -> int:
        return len(self.episodes[0].rewards) if self.clock else self.H

    @property
    def returns(self) -> list[float]:
        return [discounted(episode.rewards, self.discount) for episode in self.episodes]

    @property
    def come_again(self) -> float:
        return self.again / max(len(self.visits), 1)

    # an episode

    def begin_episode(self) -> None:
        self.playing = Episode([], False)
        if self.visits:
            self.plan_if_due()
        of_use = self.scout > 0 and self.come_again > 0.5 and self.episodes
        if self.scouts.begin(max(self.returns) - min(self.returns) if of_use else 0.0):
            self.wide = self.planned(wide=True)

    def q_values(self, h: int, x: Point) -> list[float]:
        plan = self.wide if self.scouts.sent else self.plan
        return plan.q(x, self.horizon - h) if plan else [0.0] * self.A

    def begins_in(self, x: Point) -> None:
        self.scouts.thinks(max(self.q_values(0, x)))

    def observe(self, h: int, x: Point, action: int, reward: float, y: Point, terminated: bool) -> None:
        over = terminated and h < self.H - 1
        self.again += any(v.x == x for v in self.visits)
        self.rewards.append(reward)
        self.remember(Visit(x, action, reward, y, over))
        self.playing = Episode([*self.playing.rewards, reward], over)
        self.plan_if_due((self.scouts.sent or self.hope() > 0) and self.doubled(x, action))

    def remember(self, visit: Visit) -> None:
        self.visits.append(visit)

    def end_episode(self) -> None:
        self.episodes.append(self.playing)
        self.scouts.ended(self.returns[-1], max(self.returns) - min(self.returns))

    # planning

    def doubled(self, x: Point, action: int) -> bool:
        """Where a state has come again, the visits of an action are 1, 2, 4, 8, ..."""
        here = [v for v in self.visits if v.x == x]
        tried = sum(v.action == action for v in here)
        return len(here) > 1 and tried in [2**i for i in range(30)]

    def hope(self) -> float:
        """As long as all returns are equal, as if the largest reward, or 1, were to be found."""
        largest = max(abs(reward) for reward in self.rewards)
        equal = not self.episodes or max(self.returns) - min(self.returns) <= 0.001 * largest
        return equal * (largest or 1.0)

    def plan_if_due(self, news: bool = False) -> None:
        steps = len(self.visits)
        if self.scouts.sent and news:
            self.wide = self.planned(wide=True)
        elif not self.scouts.sent and (steps >= self.due or news):
            self.plan = self.planned(wide=False)
            self.due = max(steps + 1, math.ceil(steps * (1 + self.replan)))

    def planned(self, *, wide: bool) -> ReferencePlan:
        visits = [v._replace(over=v.over and not self.clock) for v in self.visits]
        most = min(self.H, self.levels)
        L = min(most, self.horizon)
        top, low = top_and_low(self.episodes, self.rewards, most, self.discount)
        kernel = self.kernel()
        if not wide:
            self.theta = self.likely(kernel, visits, top, L)
        assert self.theta
        cells = list(dict.fromkeys((v.x, v.action) for v in visits))
        times = [sum((v.x, v.action) == c for v in visits) for c in cells]
        # for a scout a bonus of `scout` times the range of returns over the root of the visits
        hope = self.scout * (max(self.returns) - min(self.returns)) if wide else self.hope()
        return ReferencePlan(
            Posterior(kernel, cells, times, self.theta),
            visits,
            top,
            low,
            L,
            A=self.A,
            beta=self.beta / math.sqrt(self.H),
            discount=self.discount,
            kept=self.kept,
            hope=hope,
            wide=wide,
            again=self.come_again,
        )

    def kernel(self) -> Kernel:
        """In units of the range from 1 to 99% of each coordinate of the ends of all transitions, each counted once."""
        transitions = dict.fromkeys((v.x, v.y, v.action, v.over) for v in self.visits)
        ends = [state for x, y, _, _ in transitions for state in (x, y)]
        unit = []
        for z in zip(*ends, strict=True):
            low, high = np.percentile(z, [1, 99])
            spread = high - low if high > low else max(z) - min(z)
            unit.append(1 / spread if spread > 0 else 0.0)
        kernel = Kernel(unit, self.length, list(dict.fromkeys(ends)), self.features)
        kernel.stands = self.stands
        return kernel

    def likely(self, kernel: Kernel, visits: Sequence[Visit], top: Sequence[float], L: int) -> list[float]:
        """Shares after some steps of the evidence, on targets with L steps left and the values of the plan before."""
        before, y = self.plan, []
        for v in visits:
            value = 0.0
            if L > 1 and not v.over:
                value = max(before.q(v.y, L - 1)) if before else top[L - 1]
            y.append(v.reward + self.discount * value - top[L])
        pairs = [(v.x, v.action) for v in visits]
        power = mean_square(pairs, y)
        if math.sqrt(power) <= 1e-10 * max(map(abs, self.rewards)):  # nothing to explain
            return [1e-12, 1e-12, 1e-12, 1e-16]
        theta = self.theta
        if theta is None or theta[0] == 1e-12:
            theta = [power, power, power, 0.3 * power]
        for _ in range(self.evidence):
            floor = self.exact * self.come_again
            theta = evidence_step(kernel, pairs, y, theta, floor=floor, quiet=self.noise)
        return theta
