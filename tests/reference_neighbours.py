"""The update equations of the neighbours as their papers have them: one number at a time, slow, and nothing clever."""

from __future__ import annotations

import math
from collections.abc import Sequence

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
