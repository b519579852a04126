"""Which cheap rule keeps a learner of practical width from being stuck? Many seeds at once, on tables.

A part is a variant; it prints, for each task, the mean regret, the share of runs that are stuck, and what P lost.
All of them with --seeds 200: half an hour of one core. The learner is the core of the default on unit vectors
(docs, evidence): shortfall regression, width 3/sqrt(H) sigma_h from the residuals, lambda by the evidence. `A` is that
learner; `P` is a wider planner on the same counts. A variant says how wide both are and which episodes P plays.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from linmdp.runner.registry import make_model
from research.study import Study

NU, ROUNDING, FLOOR, SURPRISE, FIRST_LAM, WIDTH = 0.01, 1e-7, 0.03, 10.0, 1e-4, 3.0


@dataclass(frozen=True)
class Problem:
    """A finite task whose features are unit vectors: `cell` (S, A) says which."""

    name: str
    cell: np.ndarray
    P: np.ndarray  # (G, d, S), G = H or 1
    r: np.ndarray  # (G, d)
    H: int
    K: int
    trap: float = math.nan  # what the policy is worth that a stuck learner plays
    least: float = 0.0  # the range of the rewards
    most: float = 1.0


def one_shot(name: str, K: int, H: int, safe: float, chance: float, pays: float) -> Problem:
    """Action 0 pays `safe` once; action 1 leads with `chance` to where each later step pays `pays`."""
    cell = np.arange(6).reshape(3, 2)
    P, r = np.zeros((1, 6, 3)), np.zeros((1, 6))
    P[0, 0, 2] = 1
    P[0, 1, 1], P[0, 1, 2] = chance, 1 - chance
    P[0, 2:4, 1] = P[0, 4:6, 2] = 1
    r[0, 0], r[0, 2:4] = safe, pays
    return Problem(name, cell, P, r, H, K, trap=safe)


def retried(name: str, K: int, H: int, small: float, chance: float, doors: int) -> Problem:
    """A corridor of doors that open with `chance` at each try; behind the last one every step pays 1.

    Action 0 pays `small` and leads back.
    """
    S = doors + 1
    cell = np.arange(2 * S).reshape(S, 2)
    P, r = np.zeros((1, 2 * S, S)), np.zeros((1, 2 * S))
    for s in range(doors):
        P[0, 2 * s, 0] = 1
        P[0, 2 * s + 1, s + 1], P[0, 2 * s + 1, s] = chance, 1 - chance
        r[0, 2 * s] = small
    P[0, 2 * doors :, doors] = 1
    r[0, 2 * doors :] = 1
    return Problem(name, cell, P, r, H, K, trap=small * H)


def high(name: str, K: int) -> Problem:
    """As `one_shot`, but the safe way pays 0.5 at each of ten steps, the other 0.6 or nothing by one toss."""
    p = one_shot(name, K, 10, 0.5, 0.6, 1.0)
    r = p.r.copy()
    r[0, 4:6] = 0.5  # the toss that fails leads to a state of its own
    cell, P = np.arange(8).reshape(4, 2), np.zeros((1, 8, 4))
    P[0, 0, 2] = P[0, 2:4, 1] = P[0, 4:6, 2] = P[0, 6:8, 3] = 1
    P[0, 1, 1], P[0, 1, 3] = 0.6, 0.4
    return replace(p, cell=cell, P=P, r=np.concatenate((r, np.zeros((1, 2))), axis=1), trap=5.0)


def random_task(name: str, K: int) -> Problem:
    """Ten states, three actions, ten steps; next states from a Dirichlet of 0.3, rewards uniform in [0, 1]."""
    rng = np.random.default_rng(5)
    cell = np.arange(30).reshape(10, 3)
    return Problem(name, cell, rng.dirichlet(np.full(10, 0.3), (1, 30)), rng.random((1, 30)), 10, K)


def from_model(spec: str, K: int) -> Problem:
    """A task of the package whose features are unit vectors."""
    m = make_model(spec)
    phi = np.array([m.features.phi(s) for s in range(m.S)])
    assert ((phi == 0) | (phi == 1)).all(), spec
    G = 1 if m.task.stationary else m.H
    low, high = m.reward_range
    return Problem(spec, phi.argmax(-1), np.array(m.mu[:G]), np.array(m.theta[:G]), m.H, K, least=low, most=high)


def problems() -> dict[str, Problem]:
    found = [
        one_shot("safe.1", 1000, 10, 0.5, 0.6 / 1, 1 / 9),  # in a win 9 steps pay 1/9 each: worth 0.6, safe 0.5
        one_shot("safe.2", 1000, 10, 0.4, 0.6 / 1, 1 / 9),
        one_shot("safe-late", 1000, 10, 0.5, 0.6, 0.0),
        one_shot("rare05", 3000, 21, 0.1, 0.05, 1.0),
        one_shot("rare01", 3000, 21, 0.02, 0.01, 1.0),
        retried("retry05", 3000, 20, 0.036, 0.05, 1),
        retried("chain20", 3000, 25, 0.03, 0.2, 3),
        high("safe-high", 1000),
        random_task("random", 1000),
        from_model("riverswim", 1000),
        from_model("lock", 1000),
        from_model("inventory", 1000),
        from_model("sensor", 1000),
    ]
    table = {p.name: p for p in found}
    # one payment of 1 at the last step of a win: noise of the return is Bernoulli, at one cell
    late = table["safe-late"]
    P, r = np.zeros((10, 6, 3)), np.zeros((10, 6))
    P[:], r[0, 0], r[9, 2:4] = late.P[0], 0.5, 1.0
    table["safe-late"] = replace(late, P=P, r=r)
    return table


@dataclass(frozen=True)
class Rule:
    """How wide A and P are, and which episodes P plays.

    a_log : A's bonus gains a_log log(1+n) range |phi|^2
    a_cell : A's width at a cell comes from its own residuals, with a prior of a_cell range^2 for one visit
    p_log, p_cell : the same two for P
    alpha, scale : P plays where floor(scale k^alpha) grows; alpha 0: never
    budget, power : ... if it has lost at most budget range k^power against A so far; budget 0: always
    recent : A's usual return is a mean of its last episodes, with at least this rate; 0: of all its episodes
    settled : ... and A thinks that no more than settled range is possible above its usual return; 0: always
    """

    a_log: float = 0.0
    a_cell: float = 0.0
    p_log: float = 0.0
    p_cell: float = 0.0
    alpha: float = 0.0
    scale: float = 1.0
    budget: float = 0.0
    power: float = 0.0
    recent: float = 0.0
    settled: float = 0.0
    replan: float = 0.02


class Runs:
    """n runs of a rule on a problem."""

    def __init__(self, p: Problem, rule: Rule, n: int, seed: int) -> None:
        self.p, self.rule, self.n, self.rng = p, rule, n, np.random.default_rng(seed)
        self.G, self.d, self.S = p.P.shape
        self.A, self.cdf = p.cell.shape[1], p.P.cumsum(-1)
        self.N = np.zeros((n, self.G, self.d, self.S))
        self.R = np.zeros_like(self.N)  # sum of rewards - the best reward
        self.RR = np.zeros((n, self.G, self.d))
        self.last = np.full((n, self.G, self.d), -1)
        self.repeats, self.surprises = np.ones(n), np.ones(n)
        self.lam = np.full(n, FIRST_LAM)
        top, low = max(p.most, 0.0), min(p.least, 0.0)
        self.caps = top * np.arange(p.H, -1, -1.0)
        self.lows = low * np.arange(p.H, -1, -1.0)
        self.top = top
        self.at = np.arange(n)

    def plan(self, wide: bool) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Best actions (n, H, S, A) as a mask, the optimistic value of state 0, and lambda for the next planning."""
        p, rule, lam = self.p, self.rule, self.lam[:, None]
        c_log, c_cell = (rule.p_log, rule.p_cell) if wide else (rule.a_log, rule.a_cell)
        V = np.zeros((self.n, self.S))
        best = np.empty((self.n, p.H, self.S, self.A), dtype=bool)
        visits = self.N.sum(-1)
        dof = (visits / (visits + lam[..., None])).sum(-1)  # (n, G)
        up = down = 0.0
        for h in reversed(range(p.H)):
            g = h if self.G > 1 else 0
            N, R, n_c = self.N[:, g], self.R[:, g], visits[:, g]
            u = (V - self.caps[h + 1])[:, None]
            total = (R + N * u).sum(-1)
            y2_c = self.RR[:, g] + (2 * R * u + N * u * u).sum(-1)
            n, y2 = n_c.sum(-1), y2_c.sum(-1)
            w = total / (n_c + lam)
            rss = np.maximum(y2 - (w * total).sum(-1) - self.lam * (w * w).sum(-1), 0)
            spread = y2 / np.maximum(n, 1) - (total.sum(-1) / np.maximum(n, 1)) ** 2
            least = ROUNDING * y2
            rss, spread = rss * (rss > least), spread * (n * spread > least)
            var = (rss + NU * spread) / (np.maximum(n - dof[:, g], 0) + NU)
            form = 1 / (n_c + lam)
            range_ = self.caps[h] - self.lows[h]
            var_c: Any = var[:, None]
            if c_cell:
                rss_c = np.maximum(y2_c - 2 * w * total + n_c * w * w, 0)
                var_c = np.maximum(var_c, (rss_c + c_cell * range_**2) / (n_c + 1))
            bonus = WIDTH / math.sqrt(p.H) * np.sqrt(var_c * form)
            if c_log:
                bonus = bonus + c_log * np.log1p(n)[:, None] * range_ * form
            q = self.caps[h] + np.clip(w + bonus, self.lows[h] - self.caps[h], 0)
            up, down = up + var * dof[:, g], down + (w * w).sum(-1)
            Q = q[:, p.cell]
            V = Q.max(-1)
            best[:, h] = V[..., None] - 1e-9 * max(1, self.caps[0]) <= Q
        floor = FLOOR * np.minimum(1, SURPRISE * self.surprises / self.repeats)
        lam_next = np.clip(up / np.maximum(down, 1e-12), floor, 1.0)
        return best, V[:, 0], lam_next

    def value(self, best: np.ndarray) -> np.ndarray:
        """The true value of state 0, ties drawn evenly, (n,)."""
        p, V = self.p, np.zeros((self.n, self.S))
        pi = best / best.sum(-1, keepdims=True)
        for h in reversed(range(p.H)):
            g = h if self.G > 1 else 0
            q = p.r[g] + V @ p.P[g].T
            V = (pi[:, h] * q[:, p.cell]).sum(-1)
        return V[:, 0]

    def optimum(self) -> float:
        p, V = self.p, np.zeros(self.S)
        for h in reversed(range(p.H)):
            g = h if self.G > 1 else 0
            V = (p.r[g] + p.P[g] @ V)[p.cell].max(-1)
        return float(V[0])

    def episode(self, best: np.ndarray) -> np.ndarray:
        """Play and learn; returns (n,)."""
        p, s, G = self.p, np.zeros(self.n, dtype=np.int64), np.zeros(self.n)
        noise, moves = self.rng.random((p.H, self.n, self.A)), self.rng.random((p.H, self.n))
        for h in range(p.H):
            g = h if self.G > 1 else 0
            a = (best[self.at, h, s] * (1 + noise[h])).argmax(-1)
            c = p.cell[s, a]
            r = p.r[g, c]
            to = np.minimum((self.cdf[g, c] <= moves[h][:, None]).sum(-1), self.S - 1)
            self.N[self.at, g, c, to] += 1
            self.R[self.at, g, c, to] += r - self.top
            self.RR[self.at, g, c] += (r - self.top) ** 2
            before = self.last[self.at, g, c]
            self.repeats += before >= 0
            self.surprises += (before >= 0) & (before != to)
            self.last[self.at, g, c] = to
            G += r
            s = to
        return G

    def run(self) -> tuple[float, float, float]:
        """Mean regret, the share of runs that are stuck at the end, and what P's episodes lost."""
        rule, p, star = self.rule, self.p, self.optimum()
        regret, late, lost, on_P, usual, played = np.zeros((6, self.n))
        range_, planned_at, granted, wide = self.caps[0] - self.lows[0], -1.0, 0, bool(rule.alpha)
        for k in range(1, p.K + 1):
            if k >= (1 + rule.replan) * planned_at or planned_at < 0:
                best_A, U_A, lam = self.plan(False)
                v_A = self.value(best_A)
                if wide:
                    best_P, _, _ = self.plan(True)
                    v_P = self.value(best_P)
                self.lam, planned_at = lam, max(k, 1)
            who = np.zeros(self.n, dtype=bool)
            if wide and math.floor(rule.scale * k**rule.alpha + 1e-9) > granted:
                granted += 1
                who[:] = True
                if rule.budget:
                    who &= lost <= rule.budget * range_ * k**rule.power
                if rule.settled:
                    who &= U_A - usual <= rule.settled * range_
            best = np.where(who[:, None, None, None], best_P, best_A) if who.any() else best_A
            v = np.where(who, v_P, v_A) if who.any() else v_A
            G = self.episode(best)
            regret += star - v
            late += (star - v_A) * (k > 0.9 * p.K)
            lost += np.where(who & (played > 0), usual - G, 0)
            on_P += np.where(who, star - v, 0)
            usual += np.where(who, 0, np.maximum(1 / (played + 1), rule.recent) * (G - usual))
            played += ~who
        late /= p.K - math.floor(0.9 * p.K)
        stuck = late > 0.5 * (star - p.trap) if not math.isnan(p.trap) else np.zeros(self.n)
        return float(regret.mean()), float(stuck.mean()), float(on_P.mean())


RULE = Rule(a_cell=0.003, p_cell=0.6, alpha=1, scale=0.25, budget=0.03, power=1 / 3, recent=0.02, settled=0.03)
VARIANTS = {
    "plain": Rule(),
    "log.01": Rule(a_log=0.01),
    "share.3": Rule(p_log=0.3, alpha=1 / 3),
    "log.01+share.3": Rule(a_log=0.01, p_log=0.3, alpha=1 / 3),
    "rule": RULE,
    "rule A0": replace(RULE, a_cell=0.0),
    "rule A.001": replace(RULE, a_cell=0.001),
    "rule A0+log.003": replace(RULE, a_cell=0.0, a_log=0.003),
    "rule P.3": replace(RULE, p_cell=0.3),
    "rule P1": replace(RULE, p_cell=1.0),
    "rule Plog.3": replace(RULE, p_cell=0.0, p_log=0.3),
    "rule b.05": replace(RULE, budget=0.05),
    "rule 1/2": replace(RULE, scale=0.5),
    "rule replan.1": replace(RULE, replan=0.1),
    "rule without settled": replace(RULE, settled=0.0),
}


def row(name: str) -> Callable[[Study], None]:
    """Prints a variant, task by task."""

    def run(study: Study) -> None:
        for task, problem in problems().items():
            regret, stuck, on_P = Runs(problem, VARIANTS[name], study.seeds or 60, study.seed or 0).run()
            print(f"{task:12}{regret:9.1f}{stuck:6.0%}{on_P:8.1f}", flush=True)

    return run


PARTS = {name: row(name) for name in VARIANTS}
