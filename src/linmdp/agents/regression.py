"""Ridge regression for every step of the horizon, and the optimistic value that is made of it."""

from __future__ import annotations

import math
from typing import ClassVar

import numpy as np

from linmdp.agents.base import Component
from linmdp.errors import check_number, invalid
from linmdp.types import Array, BoolArray

TIE = 1e-9
"""Actions tie when their Q differ by less than this (times the largest possible value, if that is over 1):
well above rounding, so that two ways of computing the same Q agree on what is a tie."""

_BLOCK_BYTES = 1 << 20


def downdate(Lambda_inv: Array, phi: Array) -> Array:
    """Turn Lambda^-1 into (Lambda + phi phi')^-1 in place, by Sherman-Morrison.

    Returns v = Lambda^-1 phi / sqrt(1 + phi' Lambda^-1 phi), for which the change is exactly -v v': symmetric to the
    last bit, and any quadratic form x' Lambda^-1 x falls by (x'v)^2.

    Shapes: Lambda_inv (n, d, d), phi (n, d) -> v (n, d). A zero phi changes nothing.
    """
    v = np.empty_like(phi)
    d = phi.shape[-1]
    block = max(1, _BLOCK_BYTES // (8 * d * d))  # bounds the temporary v v'
    for start in range(0, len(phi), block):
        part = slice(start, start + block)
        u = np.einsum("nij,nj->ni", Lambda_inv[part], phi[part]) if d < 64 else _matvec(Lambda_inv[part], phi[part])
        c = 1.0 + np.einsum("ni,ni->n", phi[part], u)
        v[part] = u / np.sqrt(c)[:, None]
        Lambda_inv[part] -= v[part, :, None] * v[part, None, :]
    return v


def _matvec(matrices: Array, vectors: Array) -> Array:
    product: Array = np.matmul(matrices, vectors[:, :, None])[:, :, 0]
    return product


class Ridge(Component):
    """Lambda_h = lam I + sum phi phi' and u_h = sum phi r for all steps; one new sample a step may be pending.

    The newest phi is kept aside until the step is planned again, so that the Q of this episode goes on using the
    Lambda it was planned with, and so that one trip over the features can serve w and v together.

    Attributes
    ----------
    Lambda, Lambda_inv : (H, d, d)
    u : (H, d) sum of phi r, the newest sample included
    pending : (H, d) phi not yet in Lambda; zero where there is none
    """

    _arrays: ClassVar = ("Lambda", "Lambda_inv", "u", "pending")

    def __init__(self, H: int, d: int, lam: float) -> None:
        self.lam = lam
        self.Lambda = np.empty((H, d, d))
        self.Lambda_inv = np.empty((H, d, d))
        self.u = np.empty((H, d))
        self.pending = np.empty((H, d))
        for h in range(H):
            self.restart(h)

    def restart(self, h: int) -> None:
        """Forget step h."""
        self.Lambda[h] = 0.0
        self.Lambda_inv[h] = 0.0
        np.fill_diagonal(self.Lambda[h], self.lam)
        np.fill_diagonal(self.Lambda_inv[h], 1 / self.lam)
        self.u[h] = 0.0
        self.pending[h] = 0.0

    def add(self, h: int, phi: Array, reward: float) -> None:
        """One sample of step h."""
        self.pending[h] = phi
        self.u[h] += reward * phi

    def absorb(self, steps: BoolArray) -> Array:
        """Bring the pending samples of `steps` into Lambda; v (H, d) of `downdate`, zero elsewhere."""
        v = np.zeros_like(self.pending)
        if steps.all():
            phi = self.pending
            v[:] = downdate(self.Lambda_inv, phi)
            for h in range(len(phi)):
                self.Lambda[h] += np.outer(phi[h], phi[h])
        else:
            for h in np.flatnonzero(steps).tolist():
                one = slice(h, h + 1)
                v[one] = downdate(self.Lambda_inv[one], self.pending[one])
                self.Lambda[h] += np.outer(self.pending[h], self.pending[h])
        self.pending[steps] = 0.0
        return v

    def solve(self, h: int, z: Array) -> Array:
        """w_h = Lambda_h^-1 (u_h + z), (d,)."""
        w: Array = self.Lambda_inv[h] @ (self.u[h] + z)
        return w

    def drift(self) -> float:
        """max |Lambda Lambda^-1 - I| over all steps."""
        eye = np.eye(self.Lambda.shape[-1])
        return max(float(np.abs(L @ L_inv - eye).max()) for L, L_inv in zip(self.Lambda, self.Lambda_inv, strict=True))


class Optimism:
    """Q = min(phi'w + beta sqrt(phi' Lambda^-1 phi), cap_h): the formula, in the one place where it stands."""

    def __init__(self, beta: float, caps: Array) -> None:
        self.beta = beta
        self.caps = caps
        self.tie = TIE * max(1.0, float(np.abs(caps).max()))

    def q(self, h: int, mean: Array, b: Array) -> Array:
        """Q from mean = phi'w and b = phi' Lambda^-1 phi >= 0; the result replaces `mean`."""
        bonus = np.sqrt(b)
        bonus *= self.beta
        mean += bonus
        np.minimum(mean, self.caps[h], out=mean)
        return mean

    def best(self, q: Array, axis: int = 0) -> BoolArray:
        """Which actions share the largest Q along `axis`."""
        tied: BoolArray = q >= q.max(axis=axis, keepdims=True) - self.tie
        return tied


def value_caps(cap: str, H: int, r_max: float) -> Array:
    """The largest value of Q at each step, (H,): H r_max (the paper's) or what the remaining steps can pay."""
    return np.full(H, H * r_max) if cap == "H" else r_max * np.arange(H, 0, -1.0)


def confidence_width(owner: str, beta: float | str, *, d: int, H: int, K: int | None) -> float:
    """beta as a number: itself, or the width of the theory, or the one that was published with the paper's program."""
    if not isinstance(beta, str):
        return check_number(owner, "beta", beta, low=0.0)
    if beta not in ("theory", "published"):
        invalid(owner, "beta", "a finite number >= 0, 'theory' or 'published'", beta)
    if K is None:
        invalid(owner, "episodes", f"given when beta is {beta!r}, which depends on it", None)
    if beta == "theory":
        p = 0.1
        return d * H * math.sqrt(math.log(2 * d * (K * H) / p))
    return 1e-4 * d * H * math.sqrt(math.log(3 * d * H * K))
