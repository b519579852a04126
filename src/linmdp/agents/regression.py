"""Ridge regression for every step of the horizon, and the optimistic value that is made of it.

Arrays carry the axes (H, *batch, ...): `batch` is empty for one agent and (B,) for B runs in lockstep.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any, ClassVar

import numpy as np

from linmdp.agents.backend import NUMPY, Backend
from linmdp.agents.base import Component
from linmdp.errors import check_number, invalid
from linmdp.types import Array, BoolArray

TIE = 1e-9
"""Actions tie when their Q differ by less than this (times the largest possible value, if that is over 1):
well above rounding, so that two ways of computing the same Q agree on what is a tie."""

REFACTOR_EVERY = 512
"""Updates between two fresh inversions of Lambda. The error of an inverse that is only ever updated grows with each
update; a fresh one costs d^3 once instead of d^2 each time."""

DELAY = 16
"""Features that wait before they are added to Lambda, which is needed for fresh inverses only: one product of DELAY
rows costs little more than one outer product, and is bound by arithmetic instead of memory."""

BLOCK_BYTES = 1 << 21
"""Matrices are changed in blocks of this size, which stay in the cache."""


def subtract_outer(matrices: Any, x: Any) -> None:
    """matrices -= x x' in place, in blocks that stay in the cache. Shapes (..., d, d) and (..., d)."""
    if not isinstance(matrices, np.ndarray):
        matrices -= x[..., :, None] * x[..., None, :]
        return
    d = x.shape[-1]
    matrices, x = matrices.reshape(-1, d, d), x.reshape(-1, d)
    if d * d * 8 <= BLOCK_BYTES:
        block = BLOCK_BYTES // (8 * d * d)
        for part in (slice(i, i + block) for i in range(0, len(x), block)):
            matrices[part] -= x[part, :, None] * x[part, None, :]
        return
    rows = max(1, BLOCK_BYTES // (8 * d))
    for matrix, vector in zip(matrices, x, strict=True):
        if vector.any():
            for part in (slice(i, i + rows) for i in range(0, d, rows)):
                matrix[part] -= vector[part, None] * vector[None, :]


def matvec(matrices: Any, vectors: Any) -> Any:
    """M x for (..., n, m) and (..., m)."""
    return matrices @ vectors if vectors.ndim == 1 else (matrices @ vectors[..., None])[..., 0]


def quadratic_forms(rows: Array, matrix: Array) -> Array:
    """x' M x for every row x of (..., d); not below 0, where rounding might put it."""
    forms: Array = np.abs(np.einsum("...d,...d->...", rows @ matrix, rows))
    return forms


def downdate(Lambda_inv: Any, phi: Any) -> Any:
    """Turn Lambda^-1 into (Lambda + phi phi')^-1 in place, by Sherman-Morrison.

    Returns v = Lambda^-1 phi / sqrt(1 + phi' Lambda^-1 phi), for which the change is exactly -v v': symmetric to the
    last bit, and any quadratic form x' Lambda^-1 x falls by (x'v)^2.

    Shapes: Lambda_inv (..., d, d), phi (..., d) -> v (..., d). A zero phi changes nothing.
    """
    u = matvec(Lambda_inv, phi)
    c = 1.0 + (phi * u).sum(-1)
    v = u / (c**0.5)[..., None]
    subtract_outer(Lambda_inv, v)
    return v


def masked_steps(mask: BoolArray) -> Iterator[tuple[int, Any]]:
    """The steps of a mask (H, *batch), each with an index of its runs."""
    for h, runs in enumerate(mask):
        if runs.any():
            yield h, runs if mask.ndim > 1 else ...


def add_sample(pending: Any, u: Any, phi: Any, reward: Any) -> None:
    """One sample of one step; `pending` is zero where a sample comes, since the step was planned in this episode."""
    pending += phi
    u += phi * reward


Rebuild = Callable[[int], Any]
"""Lambda_h of step h, (d, d), from the samples that are in Lambda_inv; None where they have been dropped."""


class Ridge(Component):
    """Lambda_h = lam I + sum phi phi' and u_h = sum phi r for all steps; one new sample a step may be pending.

    The newest phi is kept aside until the step is planned again, so that the Q of this episode goes on using the
    Lambda it was planned with, and so that one trip over the features can serve w and v together.

    Lambda itself is needed for fresh inverses and for `drift` alone. Whoever holds every sample can make it anew then
    (`rebuild`, a function of h), and need not keep it: `keep_Lambda` False saves H d^2 numbers.

    Attributes
    ----------
    Lambda, Lambda_inv : (H, *batch, d, d); Lambda without the features in `waiting`, see `settle`, or empty
    waiting : (H, *batch, DELAY, d) features that are in Lambda_inv and not yet in Lambda; empty without Lambda
    u : (H, *batch, d) sum of phi r, the newest sample included
    pending : (H, *batch, d) phi not yet in Lambda; zero where there is none
    absorbed, delayed : updates since the inverses were made afresh, and since Lambda was settled
    """

    _arrays: ClassVar = ("Lambda", "Lambda_inv", "u", "pending", "waiting")
    _counters: ClassVar = ("absorbed", "delayed")

    def __init__(
        self,
        H: int,
        d: int,
        lam: Any,
        *,
        batch: tuple[int, ...] = (),
        backend: Backend = NUMPY,
        keep_Lambda: bool = True,
    ) -> None:
        self.lam = backend.array(np.broadcast_to(lam, batch))
        self.backend, self._d, self.keep_Lambda = backend, d, keep_Lambda
        self.Lambda = backend.zeros((H * keep_Lambda, *batch, d, d))
        self.Lambda_inv = backend.zeros((H, *batch, d, d))
        self.u = backend.zeros((H, *batch, d))
        self.pending = backend.zeros((H, *batch, d))
        self.waiting = backend.zeros((H * keep_Lambda, *batch, DELAY, d))
        self.absorbed = self.delayed = 0
        self.restart(np.ones((H, *batch), dtype=np.bool_))

    def restart(self, mask: BoolArray) -> None:
        """Forget the steps (and runs) of `mask`, (H, *batch)."""
        eye = self.backend.array(np.eye(self._d))
        for h, runs in masked_steps(mask):
            lam = self.lam[runs][..., None, None]
            self.Lambda_inv[h][runs] = eye / lam
            self.u[h][runs] = 0.0
            self.pending[h][runs] = 0.0
            if self.keep_Lambda:
                self.Lambda[h][runs] = lam * eye
                self.waiting[h][runs] = 0.0

    def add(self, h: int, phi: Any, reward: Any) -> None:
        """One sample of step h in each run: phi (*batch, d), reward a number or (B, 1). A zero phi is no sample."""
        add_sample(self.pending[h], self.u[h], phi, reward)

    def absorb(self, mask: Any, *, whole: bool) -> Any:
        """Bring the pending samples of `mask` (H, *batch) into Lambda; v of `downdate`, zero elsewhere.

        `whole` says that the mask holds everywhere (the caller knows; looking would wait for the device).
        """
        if whole:
            v = downdate(self.Lambda_inv, self.pending)
            self.pending[:] = 0.0
            return v
        phi = self.pending * mask[..., None]
        v = self.backend.xp.zeros_like(phi)
        for h in range(len(phi)):
            if not self.backend.is_numpy or phi[h].any():
                v[h] = downdate(self.Lambda_inv[h], phi[h])
        self.pending -= phi
        return v

    def keep(self, mask: Any, *, whole: bool) -> None:
        """Before `absorb`, with the same mask: put the features where they wait for Lambda, if that is kept."""
        self.absorbed += 1
        if not self.keep_Lambda:
            return
        if self.delayed == DELAY:
            self.settle()
        self.waiting[..., self.delayed, :] = self.pending if whole else self.pending * mask[..., None]
        self.delayed += 1

    @property
    def stale(self) -> bool:
        """Whether it is time for fresh inverses."""
        return self.absorbed >= REFACTOR_EVERY

    def settle(self) -> None:
        """Add the waiting features to Lambda."""
        for h in range(len(self.Lambda)):
            self.Lambda[h] += self.waiting[h].swapaxes(-1, -2) @ self.waiting[h]
        self.waiting[:] = 0.0
        self.delayed = 0

    def refactor(self, rebuild: Rebuild | None = None) -> None:
        """Invert every Lambda afresh; what was derived from the old inverses has to follow."""
        for h, Lambda in self._each_Lambda(rebuild):
            self.Lambda_inv[h] = fresh_inverse(Lambda, self.backend)
        self.absorbed = 0

    def _each_Lambda(self, rebuild: Rebuild | None) -> Iterator[tuple[int, Any]]:
        """Every step with its Lambda, without those that can not be made anew."""
        self.settle()
        for h in range(len(self.Lambda_inv)):
            if self.keep_Lambda:
                yield h, self.Lambda[h]
            elif rebuild is not None and (Lambda := rebuild(h)) is not None:
                yield h, Lambda

    def solve(self, h: int, z: Any) -> Any:
        """w_h = Lambda_h^-1 (u_h + z), (*batch, d)."""
        return matvec(self.Lambda_inv[h], self.u[h] + z)

    def drift(self, rebuild: Rebuild | None = None) -> Any:
        """max |Lambda Lambda^-1 - I| over all steps, (*batch)."""
        worst, eye = self.backend.xp.zeros_like(self.lam), self.backend.array(np.eye(self._d))
        for h, Lambda in self._each_Lambda(rebuild):
            off = self.backend.xp.amax(abs(Lambda @ self.Lambda_inv[h] - eye), (-1, -2))
            worst = self.backend.xp.maximum(worst, off)
        return worst


def tie_tolerance(caps: Array) -> float:
    """How far below the largest Q an action still ties with it."""
    return TIE * max(1.0, float(np.abs(caps).max()))


class Optimism:
    """Q = min(phi'w + beta sqrt(phi' Lambda^-1 phi), cap_h): the formula, in the one place where it stands.

    The squared bonus b = beta^2 phi' Lambda^-1 phi is what is kept for each row; it falls by (beta phi'v)^2 when Lambda
    grows (see `downdate`). `beta` is a number, or (B,) for B runs.
    """

    def __init__(self, beta: Any, caps: Array, backend: Backend = NUMPY) -> None:
        self.backend = backend
        self.beta = backend.array(beta)
        self.caps = backend.array(caps)
        self._beta_squared = self.beta**2
        self.tie = tie_tolerance(caps)
        self.largest = np.maximum.reduce if backend.is_numpy else backend.xp.amax

    def change(self, beta: float) -> float:
        """Take another beta (of one run); the factor by which every squared bonus changes with it."""
        factor = (beta / float(self.beta)) ** 2
        self.beta = self.backend.array(beta)
        self._beta_squared = self.beta**2
        return factor

    def squared(self, forms: Any, runs: Any = ...) -> Any:
        """b from the quadratic forms phi' Lambda^-1 phi, which have the runs as their first axis if there are many."""
        if self.beta.ndim == 0:
            return self._beta_squared * forms
        beta = self.beta[runs]
        return beta.reshape(beta.shape + (1,) * (forms.ndim - beta.ndim)) ** 2 * forms

    def raised(self, mean: Any, b: Any, spare: Any = None) -> Any:
        """phi'w + bonus, from mean = phi'w and b >= 0; in place of `spare`, if that is given."""
        q = self.backend.xp.sqrt(b, out=spare)
        q += mean
        return q

    def q(self, mean: Any, b: Any, cap: Any) -> Any:
        """Q from mean = phi'w and b >= 0."""
        return self.backend.xp.minimum(self.raised(mean, b), cap)

    def best(self, q: Any, axis: int = 0) -> Any:
        """Which actions share the largest Q along `axis`."""
        return q >= self.largest(q, axis=axis, keepdims=True) - self.tie


def effective_steps(H: int, discount: float) -> float:
    """What H steps that pay 1 each are worth."""
    return float(H) if discount == 1 else (1 - discount**H) / (1 - discount)


def value_caps(cap: str, H: int, r_max: float, discount: float = 1.0) -> Array:
    """The largest value of Q at each step, (H,): H r_max (the paper's) or what the remaining steps can pay.

    Never less than 0, which an episode that ends early is worth: that matters where all rewards are negative. With a
    discount there is one Q for all steps, and one cap: what H discounted steps can pay.
    """
    best = max(r_max, 0.0)
    if discount < 1:
        return np.full(H, best * effective_steps(H, discount))
    return np.full(H, H * best) if cap == "H" else best * np.arange(H, 0, -1.0)


def fresh_inverse(Lambda: Any, backend: Backend = NUMPY) -> Any:
    """Lambda^-1, symmetric to the last bit."""
    inverse = backend.xp.linalg.inv(Lambda)
    return (inverse + inverse.swapaxes(-1, -2)) / 2


def confidence_width(owner: str, beta: float | str, *, d: int, H: int, K: int | None) -> float:
    """beta as a number: itself, or the width of the theory, or the one that was published with the paper's program."""
    if not isinstance(beta, str):
        return check_number(owner, "beta", beta, low=0.0)
    if beta not in ("theory", "published"):
        invalid(owner, "beta", "a finite number >= 0, 'auto', 'theory' or 'published'", beta)
    if K is None:
        invalid(owner, "episodes", f"given when beta is {beta!r}, which depends on it", None)
    if beta == "theory":
        p = 0.1
        return d * H * math.sqrt(math.log(2 * d * (K * H) / p))
    return 1e-4 * d * H * math.sqrt(math.log(3 * d * H * K))
