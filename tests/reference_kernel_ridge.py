"""Literal transcription of docs/auto.md, "States made of several numbers": slow, plain, and independent of src."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from linmdp.types import Array, Task
from reference import ReferenceEvidence


def kernel(sizes: Sequence[int], one: Sequence[int], other: Sequence[int]) -> list[float]:
    """Every K_j of two states, given by their numbers."""
    kept = [i for i, n in enumerate(sizes) if n > 1]
    same = [float(one[i] == other[i]) for i in kept]
    near = [
        math.exp(-abs(one[i] - other[i]) / (0.25 * sizes[i])) if sizes[i] >= 4 else float(one[i] == other[i])
        for i in kept
    ]
    ordered = [x for i, x in zip(kept, near, strict=True) if sizes[i] >= 4]
    return [1.0, *same, *ordered, *([math.prod(near)] if ordered else []), float(all(same))]


class ReferenceKernelRidge(ReferenceEvidence):
    """One regression for all steps; the pairs of an action that were tried are related by K = sum_j theta_j K_j."""

    def __init__(self, task: Task, sizes: Sequence[int], ties: str) -> None:
        super().__init__(task, stationary=True, ties=ties)
        self.states = [tuple(int(x) for x in np.unravel_index(s, sizes)) for s in range(task.S or 0)]
        self.K = [
            np.array([[kernel(sizes, one, other)[j] for other in self.states] for one in self.states])
            for j in range(len(kernel(sizes, self.states[0], self.states[0])))
        ]
        self.theta = np.array([1e4] + [1.0] * (len(self.K) - 1))

    def begin_episode(self) -> None:
        H, d, A = self.task.H, self.task.d, self.task.A
        self.tie_draws = self.rng.random(H)
        samples: list[Any] = self.samples[0]
        visits: Array = sum((phi for phi, _, _, _ in samples), np.zeros(d))
        tried = [np.flatnonzero(visits[a::A] > 0) for a in range(A)]
        inverse = np.eye(d) / self.lam
        for a, states in enumerate(tried):
            prior = sum(t * K[np.ix_(states, states)] for t, K in zip(self.theta, self.K, strict=True))
            cells = states * A + a
            inverse[np.ix_(cells, cells)] = prior @ np.linalg.inv(np.eye(len(cells)) + visits[cells][:, None] * prior)
        dof = sum(visits[i] * inverse[i, i] for i in range(d))
        evidence = size = variance = 0.0
        z = w = np.zeros(d)
        for h in reversed(range(H)):
            z, ys = np.zeros(d), list[float]()
            for phi, cost, next_phi, over in samples:
                ahead = 0.0
                if h < H - 1:
                    ahead = (H - h - 1) * self.best if over else float(self.W(h + 1, next_phi).min())
                z, ys = z + phi * (cost + ahead), [*ys, cost + ahead]
            w = np.where(visits > 0, inverse @ z, 0.0)
            rss = sum((y - phi @ w) ** 2 for y, (phi, _, _, _) in zip(ys, samples, strict=True))
            yy, spread = sum(y * y for y in ys), float(np.var(ys)) if ys else 0.0
            rss = 0.0 if rss <= 1e-7 * yy else rss  # rounding
            spread = 0.0 if max(len(ys), 1) * spread <= 1e-7 * yy else spread
            variance = (rss + 0.01 * spread) / (max(len(ys) - dof, 0.0) + 0.01)
            self.fits[h] = w, inverse, 3 / math.sqrt(H) * math.sqrt(variance)
            evidence, size = evidence + variance * dof, size + float(w @ w)
        if not samples:
            return
        floor = 0.03 * min(1.0, 10 * self.surprises / self.repeats)
        self.lam = min(max(evidence / max(size, 1e-12), floor), max(1.0, floor))
        self._learn(tried, visits, inverse, z - visits * w, variance)

    def _learn(self, tried: list[Any], visits: Array, inverse: Array, left: Array, variance: float) -> None:
        """theta_j times a'K_j a / (sigma^2 tr K_j P), by at most 10 either way."""
        for j, K in enumerate(self.K):
            found = expected = 0.0
            for a, states in enumerate(tried):
                cells = states * self.task.A + a
                N, near = np.diag(visits[cells]), K[np.ix_(states, states)]
                found += left[cells] @ near @ left[cells]
                P = N - N @ inverse[np.ix_(cells, cells)] @ N
                expected += variance * float(np.trace(near @ P))
            factor = min(max(found / expected, 0.1), 10.0) if expected > 0 else 1.0
            self.theta[j] = min(max(self.theta[j] * factor, 1e-6), 1e4)
