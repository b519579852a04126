"""Insurance on tables, transcribed line by line from docs/insured.md, for many runs at once.

Every array has an axis for the runs, the first one. B is LSVI-UCB on unit vectors at the width beta_1 of each step,
planned before every episode on everybody's data.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np

Array = np.ndarray[Any, Any]


@dataclass(frozen=True)
class Tables:
    """n finite tasks: P (n, H, S, A, S) and mean rewards r (n, H, S, A); rewards are 0 or 1."""

    P: Array
    r: Array

    @classmethod
    def random(cls, n: int, H: int, S: int, A: int, rng: np.random.Generator) -> Tables:
        """Next states from a Dirichlet, from even to nearly certain; rewards from 0 or 1 to a half."""
        sharp = 10.0 ** rng.uniform(-1.5, 0.5, (n, 1, 1, 1, 1))
        P = rng.standard_gamma(np.broadcast_to(sharp, (n, H, S, A, S))) + 1e-12
        return cls(P / P.sum(-1, keepdims=True), rng.beta(0.5, 0.5, (n, H, S, A)))

    def best(self, sign: float = 1.0) -> tuple[Array, Array]:
        """The best policy (n, H, S) and its values (n, H + 1, S); with sign -1 the worst."""
        n, H, S, _ = self.r.shape
        V, pi = np.zeros((n, H + 1, S)), np.zeros((n, H, S), dtype=np.int64)
        for h in reversed(range(H)):
            Q = self.r[:, h] + (self.P[:, h] * V[:, h + 1, None, None]).sum(-1)
            pi[:, h] = (sign * Q).argmax(-1)
            V[:, h] = sign * (sign * Q).max(-1)
        return pi, V


Inner = Callable[[Tables, int, int, np.random.Generator], Array]
"""(tasks, k, K, rng) -> the policy of A in episode k, (n, H, S)."""


def _drawn(tasks: Tables, k: int, K: int, rng: np.random.Generator) -> Array:
    drawn: Array = rng.integers(tasks.r.shape[-1], size=tasks.r.shape[:-1])
    return drawn


INNER: dict[str, Inner] = {
    "random": _drawn,
    "optimal": lambda tasks, k, K, rng: tasks.best()[0],
    "constant": lambda tasks, k, K, rng: np.zeros(tasks.r.shape[:-1], dtype=np.int64),
    "adversarial": lambda tasks, k, K, rng: tasks.best(-1.0)[0],
    "turncoat": lambda tasks, k, K, rng: tasks.best(1.0 if k <= K // 2 else -1.0)[0],
}
FIXED = ("optimal", "constant", "adversarial")
"""Those whose policy is the same in every episode."""


def in_W(k: int, alpha: Fraction) -> bool:
    """Whether floor(k^alpha) > floor((k - 1)^alpha), in whole numbers: some n has n^q <= k^r, and > (k - 1)^r."""
    r, q = alpha.numerator, alpha.denominator
    n = 1
    while n**q <= (k - 1) ** r:
        n += 1
    return bool(n**q <= k**r)


class Outcome(NamedTuple):
    """What came of n runs of K episodes, (n,) each."""

    certified: Array  # C_A + C_B
    lost: Array  # sum of V*(s_k) - G_k
    pseudo: Array  # sum of V*(s_k) - V^pi_k(s_k)
    worst: Array  # the least U_k - V*(s_k) over all k
    U: Array  # the last one
    turns: Array  # n_B
    over: Array  # the most that C_A was above H + (b at A's last turn)
    path: Array  # (n, points) `pseudo` at the episodes asked for


def beta_1(H: int, S: int, A: int, K: int, p: float, lam: float) -> Array:
    """Of each step, (H,)."""
    return np.arange(H, 0, -1.0) * (math.sqrt(0.5 * math.log(H * S * A * K / p)) + math.sqrt(lam))


def insured(
    tasks: Tables,
    inner: str,
    K: int,
    *,
    mode: str = "mean",
    alpha: Fraction = Fraction(1, 3),
    omega: float = 1.0,
    margin: float = 1.0,
    p: float = 0.05,
    lam: float = 1.0,
    starts: str = "fixed",
    points: tuple[int, ...] = (),
    seed: int = 0,
) -> Outcome:
    """n runs of K episodes of the rule."""
    rng, at = np.random.default_rng(seed), np.arange(len(tasks.r))
    n, H, S, A = tasks.r.shape
    cdf, beta, V_star = tasks.P.cumsum(-1), beta_1(H, S, A, K, p, lam), tasks.best()[1]
    N, R = np.zeros((n, H, S, A, S)), np.zeros((n, H, S, A))
    C, count = np.zeros((2, n)), np.zeros((2, n), dtype=np.int64)
    least, allowed = np.full((n, S), np.inf), np.zeros(n)
    b: Any = 0.0
    lost, pseudo, worst = np.zeros(n), np.zeros(n), np.full(n, np.inf)
    policy_A, path = INNER[inner](tasks, 1, K, rng), []
    W = [in_W(k, alpha) for k in range(1, K + 1)]
    U = np.zeros(n)
    for k in range(1, K + 1):
        # who plays, from the past alone
        if mode == "mean":
            b = np.where(count[0] > 0, count[0] * (C[1] / np.maximum(count[1], 1) + margin * _c_star(H, count, p)), 0.0)
            b_plays = W[k - 1] | (C[0] > b)
        else:
            b = omega * C[1] + H * math.sqrt(k * math.log(k * (k + 1) / p))
            b_plays = C[0] > b
        allowed = np.where(b_plays, allowed, b)
        if inner not in FIXED:
            policy_A = INNER[inner](tasks, k, K, rng)
        # B plans
        visits, V, policy_B = N.sum(-1), np.zeros((n, S)), np.empty((n, H, S), dtype=np.int64)
        for h in reversed(range(H)):
            w = (R[:, h] + (N[:, h] * V[:, None, None]).sum(-1)) / (visits[:, h] + lam)
            score = w + beta[h] / np.sqrt(visits[:, h] + lam)
            Q = np.clip(score, 0, H - h)
            V = Q.max(-1)
            tied = np.where(V[..., None] - 1e-9 <= Q, score, -np.inf)
            policy_B[:, h] = tied.argmax(-1)
        policy = np.where(b_plays[:, None, None], policy_B, policy_A)
        value = _value(tasks, policy)
        s: Array = np.zeros(n, dtype=np.int64)
        if starts == "random":
            s = rng.integers(S, size=n)
        elif starts == "adversarial":
            s = (V_star[:, 0] - value).argmax(-1)
        least[at, s] = np.minimum(least[at, s], V[at, s])
        U = least[at, s]
        # the episode
        start, G = s, np.zeros(n)
        for h in range(H):
            a = policy[at, h, s]
            reward = (rng.random(n) < tasks.r[at, h, s, a]) * 1.0
            to = np.minimum((cdf[at, h, s, a] <= rng.random(n)[:, None]).sum(-1), S - 1)
            N[at, h, s, a, to] += 1
            R[at, h, s, a] += reward
            G += reward
            s = to
        who = b_plays.astype(np.int64)
        C[who, at] += U - G
        count[who, at] += 1
        lost += V_star[at, 0, start] - G
        pseudo += V_star[at, 0, start] - value[at, start]
        worst = np.minimum(worst, U - V_star[at, 0, start])
        if k in points:
            path.append(pseudo.copy())
    over = C[0] - (H + allowed)
    return Outcome(C.sum(0), lost, pseudo, worst, U, count[1], over, np.array(path).T)


def _c_star(H: int, count: Array, p: float) -> Any:
    n = np.maximum(count, 1)
    return (H * np.sqrt(np.log(n * (n + 1) / p) / (2 * n))).sum(0)


def _value(tasks: Tables, policy: Array) -> Array:
    """The true value of a policy at every start, (n, S)."""
    n, H, S, _ = tasks.r.shape
    V, each, states = np.zeros((n, S)), np.arange(n)[:, None], np.arange(S)
    for h in reversed(range(H)):
        a = policy[:, h]
        V = tasks.r[each, h, states, a] + (tasks.P[each, h, states, a] * V[:, None]).sum(-1)
    return V


def optimist_bound(n: int, beta: float, *, d: int, H: int, lam: float, p: float, eta: float = 1.0) -> float:
    """R_B(n): the most that n episodes of an optimist can certify, for rewards in [0, 1]; `eta` as of its plannings."""
    if n == 0:
        return 0.0
    squares = H * (H + 1) * (2 * H + 1) / 6
    potential = 2 * beta * H * math.sqrt(2 * eta * d * n * math.log1p(n / (lam * d)))
    return potential + math.sqrt(n * squares * math.log(n * (n + 1) / p) / 2)
