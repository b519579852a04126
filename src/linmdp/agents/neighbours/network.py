"""A network of two hidden layers for streams: sparse at first, normalised, with traces and steps that are bounded."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from linmdp.agents.base import Component
from linmdp.types import Array

SLOPE = 0.01
"""Of LeakyReLU below zero."""
LAYER_TINY = 1e-5
"""Added to the variance in a layer's normalisation."""
SPARSITY = 0.9
"""The share of a unit's incoming weights that are 0 at first."""


class Network(Component):
    """Two hidden layers, each normalised (without gain and offset) before LeakyReLU, with an eligibility trace.

    All weights lie in one vector theta, all traces in another, so that a step of ObGD is three operations.
    """

    _arrays = ("theta", "trace")

    def __init__(self, size: int, hidden: int, A: int, dtype: Any = np.float32) -> None:
        shapes = ((hidden, size), (hidden,), (hidden, hidden), (hidden,), (A, hidden), (A,))
        ends = np.cumsum([math.prod(shape) for shape in shapes]).tolist()
        self._pieces = [(slice(end - math.prod(shape), end), shape) for end, shape in zip(ends, shapes, strict=True)]
        self.theta, self.trace = np.zeros(ends[-1], dtype), np.zeros(ends[-1], dtype)

    def layers(self, vector: Array) -> list[Array]:
        """Views of theta, or of the trace: W1, b1, W2, b2, W3, b3."""
        return [vector[piece].reshape(shape) for piece, shape in self._pieces]

    def initialise(self, rng: np.random.Generator) -> None:
        """Sparse initialisation (Algorithm 1): weights up to 1 / sqrt(fan in), of a unit's nine in ten 0; biases 0."""
        for W in self.layers(self.theta)[::2]:
            n = W.shape[1]
            W[:] = rng.uniform(-1, 1, W.shape) / math.sqrt(n)
            np.put_along_axis(W, rng.random(W.shape).argsort(axis=1)[:, : math.floor(SPARSITY * n)], 0.0, axis=1)

    def forward(self, X: Array) -> tuple[Array, list[tuple[Array, Array, Array]]]:
        """Q of n inputs, (n, A), and of each hidden layer its input, its normalised sums and their scale."""
        W1, b1, W2, b2, W3, b3 = self.layers(self.theta)
        passed = list[tuple[Array, Array, Array]]()
        x: Array = X.astype(self.theta.dtype, copy=False)
        for W, b in ((W1, b1), (W2, b2)):
            u = x @ W.T + b
            u -= u.sum(axis=1, keepdims=True) / len(b)
            scale = np.sqrt(np.einsum("nj,nj->n", u, u)[:, None] / len(b) + LAYER_TINY)
            u /= scale
            passed.append((x, u, scale))
            x = np.maximum(u, SLOPE * u)
        passed.append((x, x, x))
        return x @ W3.T + b3, passed

    def accumulate(self, decay: float, passed: list[tuple[Array, Array, Array]], action: int) -> None:
        """trace <- decay * trace + the gradient of Q(x, action), for the first input x that was passed forward."""
        W1, b1, W2, b2, W3, b3 = self.layers(self.trace)
        self.trace *= decay
        W3[action] += passed[2][0][0]
        b3[action] += 1.0
        _, _, above, _, last, _ = self.layers(self.theta)
        down = last[action]
        for (x, u, scale), W, b, next_weights in ((passed[1], W2, b2, above), (passed[0], W1, b1, None)):
            g = np.where(u[0] > 0, down, SLOPE * down)
            g = (g - g.sum() / len(g) - u[0] * (g @ u[0] / len(g))) / scale[0]
            W += np.multiply.outer(g, x[0])
            b += g
            if next_weights is not None:
                down = g @ next_weights

    def step(self, delta: float, lr: float, kappa: float) -> None:
        """ObGD (Algorithm 3): theta += alpha delta trace, with alpha so small that delta is not overshot."""
        most = lr * kappa * max(abs(delta), 1.0) * float(np.abs(self.trace).sum())
        self.theta += (lr / max(most, 1.0) * delta) * self.trace
