"""Which cheap rule keeps a learner of practical width from being stuck? Many seeds at once, on tables.

python research/insurance/study.py [VARIANT...] [--seeds 60] [--only TASK,TASK] [--jobs N] [--out FILE.json]

The learner is the core of the default on unit vectors (docs/auto.md): shortfall regression, width 3/sqrt(H) sigma_h
from the residuals, lambda by the evidence. `A` is that learner; `P` is a wider planner on the same counts. A variant
says how wide both are and which episodes P plays. `notes.md` has what each gave.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
import time
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

import numpy as np

from linmdp.runner.registry import make_model

NU, ROUNDING, FLOOR, SURPRISE, FIRST_LAM = 0.01, 1e-7, 0.03, 10.0, 1e-4


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
    """How wide A and P are, and which episodes P plays."""

    a_log: float = 0.0  # A's bonus gains a_log log(1+n) range |phi|^2
    a_cell: float = (
        0.0  # A's width at a cell comes from its own residuals, with a prior of a_cell range^2 for one visit
    )
    p_log: float = 0.0  # the same two for P
    p_cell: float = 0.0
    p_times: float = 1.0  # P's beta in units of A's
    alpha: float = 0.0  # P plays where floor(k^alpha) grows; 0: never
    scale: float = 1.0  # ... floor(scale k^alpha)
    budget: float = 0.0  # ... if it has lost at most budget range log(1+k) against A so far
    power: float = 0.0  # ... or budget range k^power
    recent: float = 0.0  # A's mean return is that of the last episodes, with at least this rate; 0: of all its episodes
    settled: float = 0.0  # ... and A thinks that no more than settled range is possible above its mean return
    seen: bool = False  # that range is of the returns seen, not of all that there can be
    welch: float = 0.0  # P takes over where its mean return is better by so many standard errors (5 episodes each)
    replan: float = 0.02
    width: float = 3.0
    psrl: bool = False


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
        times = rule.p_times if wide else 1.0
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
            bonus = times * rule.width / math.sqrt(p.H) * np.sqrt(var_c * form)
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

    def sampled(self) -> np.ndarray:
        """Best actions of a model from a posterior: Dirichlet with 1/S, rewards are their means (unseen: the best)."""
        p = self.p
        draws = self.rng.standard_gamma(self.N + 1 / self.S) + 1e-300
        P = draws / draws.sum(-1, keepdims=True)
        n_c = self.N.sum(-1)
        r = (self.R.sum(-1) + 0.0) / np.maximum(n_c, 1) + self.top
        V, best = np.zeros((self.n, self.S)), np.empty((self.n, p.H, self.S, self.A), dtype=bool)
        for h in reversed(range(p.H)):
            g = h if self.G > 1 else 0
            q = np.minimum(r[:, g] + (P[:, g] * V[:, None]).sum(-1), self.caps[h])
            Q = q[:, p.cell]
            V = Q.max(-1)
            best[:, h] = V[..., None] - 1e-9 <= Q
        return best

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

    def run(self) -> dict[str, Any]:
        rule, p = self.rule, self.p
        star = self.optimum()
        regret, lost, planned_at = np.zeros(self.n), np.zeros(self.n), -1.0
        moments = np.zeros((2, 3, self.n))  # of the returns of A and P: count, mean, squares
        shares, late = np.zeros(self.n), np.zeros(self.n)
        wide = bool(rule.alpha or rule.budget or rule.welch)
        granted, usual, on_P = 0, np.zeros(self.n), np.zeros(self.n)
        span = np.zeros((2, self.n))
        for k in range(1, p.K + 1):
            if rule.psrl:
                best_A = self.sampled()
                v_A = self.value(best_A)
            elif k >= (1 + rule.replan) * planned_at or planned_at < 0:
                best_A, U_A, lam = self.plan(False)
                v_A = self.value(best_A)
                if wide:
                    best_P, _, _ = self.plan(True)
                    v_P = self.value(best_P)
                self.lam, planned_at = lam, max(k, 1)
            who = np.zeros(self.n, dtype=bool)
            if wide:
                due = True
                if rule.alpha:
                    due = math.floor(rule.scale * k**rule.alpha + 1e-9) > granted
                    granted += due
                if due:
                    who[:] = True
                    if rule.budget:
                        width = span[1] - span[0] if rule.seen else self.caps[0] - self.lows[0]
                        who &= lost <= rule.budget * width * (k**rule.power if rule.power else math.log1p(k))
                    if rule.settled:
                        who &= U_A - usual <= rule.settled * (self.caps[0] - self.lows[0])
                if rule.welch:
                    (nA, mA, sA), (nP, mP, sP) = moments
                    se = np.sqrt(sA / np.maximum(nA, 1) ** 2 + sP / np.maximum(nP, 1) ** 2)
                    who |= (nA >= 5) & (nP >= 5) & (mP - mA > rule.welch * se + 1e-12)
            best = np.where(who[:, None, None, None], best_P, best_A) if who.any() else best_A
            v = np.where(who, v_P, v_A) if who.any() else v_A
            G = self.episode(best)
            span = np.stack((np.minimum(span[0], G), np.maximum(span[1], G))) if k > 1 else np.stack((G, G))
            regret += star - v
            late += (star - v_A) * (k > 0.9 * p.K)
            shares += who
            if wide:
                lost += np.where(who & (moments[0, 0] > 0), usual - G, 0)
                usual += np.where(who, 0, np.maximum(1 / (moments[0, 0] + 1), rule.recent) * (G - usual))
                on_P += np.where(who, star - v, 0)
                for i, mine in enumerate((~who, who)):
                    m = moments[i]
                    n = m[0] + mine
                    delta = (G - m[1]) * mine
                    mean = m[1] + delta / np.maximum(n, 1)
                    m[2] += delta * (G - mean)
                    m[0], m[1] = n, mean
        late /= p.K - math.floor(0.9 * p.K)
        stuck = late > 0.5 * (star - p.trap) if not math.isnan(p.trap) else np.zeros(self.n)
        return {
            "task": p.name,
            "regret": float(regret.mean()),
            "sd": float(regret.std(ddof=1) / math.sqrt(self.n)),
            "median": float(np.median(regret)),
            "stuck": float(stuck.mean()),
            "late": float(late.mean()),
            "P": float(shares.mean()),
            "on_P": float(on_P.mean()),
            "star": star,
        }


BASE = Rule(a_cell=0.003, p_cell=0.3, alpha=1, scale=0.25, budget=0.02, power=1 / 3, recent=0.02)
RULE = replace(BASE, p_cell=0.6, budget=0.03, settled=0.03)
VARIANTS: dict[str, Rule] = {
    "plain": Rule(),
    "psrl": Rule(psrl=True),
    "log.01": Rule(a_log=0.01),
    "log.003": Rule(a_log=0.003),
    "cell.003": Rule(a_cell=0.003),
    "cell.03": Rule(a_cell=0.03),
    "share.3": Rule(p_log=0.3, alpha=1 / 3),
    "log.01+share.3": Rule(a_log=0.01, p_log=0.3, alpha=1 / 3),
    "log.01+share.3+welch": Rule(a_log=0.01, p_log=0.3, alpha=1 / 3, welch=2.0),
    "half.3": Rule(p_log=0.3, alpha=1 / 2),
    "seen budget.1": Rule(p_log=0.3, alpha=2 / 3, budget=0.1, seen=True),
    "budget.03 a.67": Rule(p_log=0.3, alpha=2 / 3, budget=0.03),
    "budget.03 a.8": Rule(p_log=0.3, alpha=0.8, budget=0.03),
    "budget.03 1/4": Rule(p_log=0.3, alpha=1, scale=0.25, budget=0.03),
    "budget.01 a.8": Rule(p_log=0.3, alpha=0.8, budget=0.01),
    "budget.1 a.8": Rule(p_log=0.3, alpha=0.8, budget=0.1),
    "budget.03 a.8 P.03": Rule(p_log=0.03, alpha=0.8, budget=0.03),
    "budget.03 a.8 Pcell1": Rule(p_cell=1.0, alpha=0.8, budget=0.03),
    "budget.03 a.8 Pcell.1": Rule(p_cell=0.1, alpha=0.8, budget=0.03),
    "budget.03 a.8 A.003": Rule(a_cell=0.003, p_cell=1.0, alpha=0.8, budget=0.03),
    "budget.03 a.8 A.01": Rule(a_cell=0.01, p_cell=1.0, alpha=0.8, budget=0.03),
    "budget.03 1/4 A.01": Rule(a_cell=0.01, p_cell=1.0, alpha=1, scale=0.25, budget=0.03),
    "log P1 A.003": replace(BASE, p_cell=1.0, budget=0.03, power=0),
    "log P.3 A.003": replace(BASE, budget=0.03, power=0),
    "log .02 P.3 A.003": replace(BASE, power=0),
    "log Plog.3 A.003": replace(BASE, p_cell=0, p_log=0.3, budget=0.03, power=0),
    "1/2 P1 A.003": replace(BASE, p_cell=1.0, budget=0.01, power=0.5),
    "P1 A.003": replace(BASE, p_cell=1.0),
    "P.3 A.003": BASE,
    "P.3 A.003 s.003": replace(BASE, settled=0.003),
    "P.3 A.003 s.01": replace(BASE, settled=0.01),
    "P.3 A.003 s.03": replace(BASE, settled=0.03),
    "P.3 A.003 s.1": replace(BASE, settled=0.1),
    "P1 A.003 s.03": replace(BASE, p_cell=1.0, settled=0.03),
    "P.3 A0 s.03": replace(BASE, a_cell=0.0, settled=0.03),
    "P.3 A.001 s.03": replace(BASE, a_cell=0.001, settled=0.03),
    "P.3 A.003 s.03 1/8": replace(BASE, settled=0.03, scale=0.125),
    "P.3 A.003 s.03 b.01": replace(BASE, settled=0.03, budget=0.01),
    "P.3 A.003 s.03 b.03": replace(BASE, settled=0.03, budget=0.03),
    "rule A0": replace(RULE, a_cell=0.0),
    "rule A.001": replace(RULE, a_cell=0.001),
    "rule": RULE,
    "rule P.3": replace(RULE, p_cell=0.3),
    "rule 1/2 A.001": replace(RULE, a_cell=0.001, scale=0.5),
    "rule replan.1": replace(RULE, replan=0.1),
    "rule b.05": replace(RULE, budget=0.05),
    "rule P1": replace(RULE, p_cell=1.0),
    "rule Plog.3": replace(RULE, p_cell=0.0, p_log=0.3),
    "rule 1/2": replace(RULE, scale=0.5),
    "rule +log.003": replace(RULE, a_cell=0.0, a_log=0.003),
    "rule +welch": replace(RULE, welch=2.0),
    "rule without settled": replace(RULE, settled=0.0),
    "P1 A.003 s.03 k1/2": replace(BASE, p_cell=1.0, settled=0.03, budget=0.01, power=0.5),
}


def one(job: tuple[str, Rule, str, int, int]) -> dict[str, Any]:
    label, rule, task, seeds, seed = job
    begun = time.perf_counter()
    found = Runs(problems()[task], rule, seeds, seed).run()
    return {"variant": label, **found, "seconds": time.perf_counter() - begun}


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("variants", nargs="*")
    parser.add_argument("--seeds", type=int, default=60)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", default="")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--out", type=Path)
    given = parser.parse_args()
    known = {f.name: f.type for f in fields(Rule)}
    rules = {}
    for text in given.variants or VARIANTS:
        if text in VARIANTS:
            rules[text] = VARIANTS[text]
        else:  # a_log=0.01,alpha=0.5
            pairs = dict(part.split("=") for part in text.split(","))
            rules[text] = Rule(**{k: (v == "True" if known[k] == "bool" else float(v)) for k, v in pairs.items()})
    tasks = given.only.split(",") if given.only else list(problems())
    jobs = [(label, rule, task, given.seeds, given.seed) for task in tasks for label, rule in rules.items()]
    with ProcessPoolExecutor(given.jobs) as pool:
        rows = list(pool.map(one, jobs)) if given.jobs > 1 else [one(job) for job in jobs]
    print(f"{'':36}" + "".join(f"{t:>16}" for t in tasks))
    for label in rules:
        mine = {row["task"]: row for row in rows if row["variant"] == label}
        cells = [f"{mine[t]['regret']:8.1f}{100 * mine[t]['stuck']:4.0f}%{mine[t]['on_P']:4.0f}" for t in tasks]
        print(f"{label:36}" + "".join(f"{c:>18}" for c in cells), file=sys.stdout)
    if given.out:
        given.out.write_text(json.dumps(rows, indent=1))


if __name__ == "__main__":
    main()
