"""The update equations of the neighbours as their papers have them: one number at a time, slow, and nothing clever."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from linmdp.types import Array


class ReferenceStreamQ:
    """Stream Q(lambda) with weights in plain matrices, and gradients by differences."""

    def __init__(self, weights: Sequence[Array]) -> None:
        self.weights = [w.copy() for w in weights]
        self.traces = [np.zeros_like(w) for w in weights]

    def q(self, x: Array, weights: Sequence[Array] | None = None) -> list[float]:
        W1, b1, W2, b2, W3, b3 = weights or self.weights
        h = list(x)
        for W, b in ((W1, b1), (W2, b2)):
            sums = [sum(W[i, j] * h[j] for j in range(len(h))) + b[i] for i in range(len(b))]
            mean = sum(sums) / len(sums)
            variance = sum((u - mean) ** 2 for u in sums) / len(sums)
            normalised = [(u - mean) / math.sqrt(variance + 1e-5) for u in sums]
            h = [u if u > 0 else 0.01 * u for u in normalised]
        return [sum(W3[a, j] * h[j] for j in range(len(h))) + b3[a] for a in range(len(b3))]

    def gradient(self, x: Array, action: int) -> list[Array]:
        found = []
        for n, w in enumerate(self.weights):
            g = np.zeros_like(w)
            for at in np.ndindex(w.shape):
                values = []
                for move in (1e-6, -1e-6):
                    moved = [v.copy() for v in self.weights]
                    moved[n][at] += move
                    values.append(self.q(x, moved)[action])
                g[at] = (values[0] - values[1]) / 2e-6
            found.append(g)
        return found

    def learn(self, x: Array, action: int, target: float, decay: float, lr: float, kappa: float) -> None:
        """Algorithm 3: z = gamma lambda z + grad, M = lr kappa max(|delta|, 1) |z|_1, w += min(lr / M, lr) delta z."""
        delta = target - self.q(x)[action]
        self.traces = [decay * z + g for z, g in zip(self.traces, self.gradient(x, action), strict=True)]
        M = lr * kappa * max(abs(delta), 1.0) * sum(float(np.abs(z).sum()) for z in self.traces)
        alpha = min(lr / M, lr)
        self.weights = [w + alpha * delta * z for w, z in zip(self.weights, self.traces, strict=True)]


class Sample(NamedTuple):
    """A transition between points; `following` is None after an end."""

    place: Array
    action: int
    reward: float
    following: Array | None


def distance(x: Array, z: Array) -> float:
    return math.sqrt(sum((a - b) ** 2 for a, b in zip(x, z, strict=True)))


def reference_kbsf(
    Z: Sequence[Array], data: Sequence[Sample], A: int, tau: float, tau_bar: float, discount: float
) -> Array:
    """Q of the representatives, (m, A): the stochastic factors of each action written out, then value iteration."""
    m, r, P = len(Z), [], []
    for a in range(A):
        of = [sample for sample in data if sample.action == a]
        K, D = np.zeros((m, len(of))), np.zeros((len(of), m))
        for i in range(m):
            weights = [math.exp(-((distance(Z[i], s.place) / tau) ** 2)) for s in of]
            K[i] = [w / sum(weights) for w in weights]
        for n, s in enumerate(of):
            if s.following is not None:
                weights = [math.exp(-((distance(z, s.following) / tau_bar) ** 2)) for z in Z]
                D[n] = [w / sum(weights) for w in weights]
        r.append(K @ [s.reward for s in of] if of else np.zeros(m))
        P.append(K @ D)
    Q = np.zeros((m, A))
    for _ in range(2000):
        Q = np.stack([r[a] + discount * P[a] @ Q.max(axis=1) for a in range(A)], axis=1)
    return Q


def reference_kernel_ucbvi(
    Z: Sequence[Array], data: Sequence[Sample], A: int, sigma: float, beta: float, c: float, span: float, caps: Array
) -> Array:
    """Q_h of the representatives, (H, m, A); data lie on representatives."""
    m, H = len(Z), len(caps)
    Q = np.zeros((H, m, A))
    for h in reversed(range(H)):
        for i in range(m):
            for a in range(A):
                of = [s for s in data if s.action == a]
                weights = [math.exp(-(distance(Z[i], s.place) ** 2) / (2 * sigma**2)) for s in of]
                n, value = beta + sum(weights), 0.0
                for w, s in zip(weights, of, strict=True):
                    later = 0.0
                    if s.following is not None and h < H - 1:
                        j = min(range(m), key=lambda j, y=s.following: distance(Z[j], y))  # type: ignore[misc]
                        later = max(Q[h + 1, j])
                    value += w / n * (s.reward + later)
                bonus = c * span * (H - h) * (math.sqrt(1 / n) + beta / n)
                Q[h, i, a] = min(value + bonus, caps[h])
    return Q
