"""Ridge regressions, one for every step or one for all, and the linear algebra of rank-one updates.

Arrays have the axes (G, *batch, ...): G regressions; `batch` is empty for one agent and (B,) for B runs in lockstep.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache
from typing import Any, ClassVar

import numpy as np

from linmdp.agents.backend import LARGEST_KERNEL, NUMPY, Backend, imagining
from linmdp.agents.base import Component
from linmdp.agents.held import POSITIVE, check_gram, check_range
from linmdp.types import Array, BoolArray, IntArray

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


def dot(x: Any, y: Any) -> Any:
    """x'y of (..., d): of two vectors a number."""
    return float(x @ y) if x.ndim == 1 else (x * y).sum(-1)


def at_least(x: Any, low: float) -> Any:
    """The larger of both, of a number or of each of an array."""
    return max(x, low) if isinstance(x, float) else x.clip(low)


def quadratic_forms(rows: Array, matrix: Array) -> Array:
    """x' M x for every row x of (..., d); not below 0, where rounding might put it."""
    forms: Array = np.abs(np.einsum("...d,...d->...", rows @ matrix, rows))
    return forms


@lru_cache(maxsize=8)
def _pairs(d: int) -> tuple[IntArray, IntArray]:
    """All i <= j below d."""
    i, j = np.triu_indices(d)
    return i, j


def packed(matrices: Array) -> Array:
    """Symmetric matrices (..., d, d) as rows (..., pairs) whose product with `products` of x is x' M x."""
    d = matrices.shape[-1]
    i, j = _pairs(d)
    rows: Array = matrices.reshape(*matrices.shape[:-2], d * d).take(i * d + j, axis=-1)
    rows *= 2.0 - (i == j)
    return rows


def products(columns: Array) -> Array:
    """x_i x_j, i <= j, of every column x of (d, n), (pairs, n)."""
    i, j = _pairs(len(columns))
    found = columns[i]
    found *= columns[j]
    return found


def downdate(Lambda_inv: Any, phi: Any) -> Any:
    """Turn Lambda^-1 into (Lambda + phi phi')^-1 in place, by Sherman-Morrison.

    Returns v = Lambda^-1 phi / sqrt(1 + phi' Lambda^-1 phi), for which the change is exactly -v v': symmetric to the
    last bit, and any quadratic form x' Lambda^-1 x falls by (x'v)^2.

    Shapes: Lambda_inv (..., d, d), phi (..., d) -> v (..., d). A zero phi changes nothing.
    """
    if not isinstance(Lambda_inv, np.ndarray) and Lambda_inv.is_cuda and phi.shape[-1] <= LARGEST_KERNEL:
        from linmdp.agents import kernels

        return kernels.downdate(Lambda_inv, phi)
    u = matvec(Lambda_inv, phi)
    c = 1.0 + (phi * u).sum(-1)
    v = u / (c**0.5)[..., None]
    subtract_outer(Lambda_inv, v)
    return v


def masked_groups(mask: BoolArray) -> list[int]:
    """The regressions of a mask (G, *batch)."""
    found: list[int] = np.flatnonzero(mask if mask.ndim == 1 else mask.any(axis=1)).tolist()
    return found


def runs_in(mask: BoolArray, g: int) -> Any:
    """An index of the runs of regression g in a mask."""
    return ... if mask.ndim == 1 else mask[g]


Rebuild = Callable[[int], Any]
"""Lambda_g, (d, d), from the samples that are held, without the pending one."""


class Ridge(Component):
    """Lambda_g = lam I + sum phi phi' and u_g = sum phi r, for every regression g.

    `Lambda_inv` is that of the last planning, so that the planned Q goes on acting however many samples come in. The
    newest sample waits in `pending`: if it is the only one when its regression is planned again, a rank-one update
    brings it in, and one pass over the features serves w and v together. If there are more, the older ones have been
    put aside (`defer`), and the inverse is made afresh.

    Lambda itself is needed for fresh inverses and for `drift` alone. A storage that holds every sample can compute it
    again then (`rebuild`, a function of g), and need not keep it: `delay` 0 saves G d^2 numbers. Otherwise it is the
    number of features that wait until they are added to Lambda together.

    Attributes
    ----------
    Lambda, Lambda_inv : (G, *batch, d, d); Lambda without the features in `waiting`, see `settle`, or empty
    waiting : (G, *batch, delay, d) features not yet in Lambda; empty without Lambda
    u : (G, *batch, d) sum of phi r, the newest sample included
    pending : (G, *batch, d) phi not yet in Lambda; zero where there is none
    behind : (G, *batch) samples beside the pending one, or a reset, have not reached Lambda_inv
    empty : (G, *batch) there has been a reset, and no sample but the pending one since
    lam : (*batch) the ridge parameter
    absorbed, delayed : updates since the inverses were made afresh, and since Lambda was settled
    changed : 1 if lam is not the one that Lambda was made with
    """

    incremental: ClassVar = True
    """Whether it follows samples one at a time; otherwise every planning has fresh inverses."""
    exact: ClassVar = True
    """Whether Lambda is that of the samples; otherwise its `errors` are known: see `Sketched`."""
    _arrays: ClassVar = ("Lambda", "Lambda_inv", "u", "pending", "waiting", "behind", "empty", "lam")
    _counters: ClassVar = ("absorbed", "delayed", "changed")
    _saved_within: ClassVar = {
        "lam": (POSITIVE, np.inf),
        "absorbed": (0, np.inf),
        "delayed": (0, np.inf),
        "changed": (0, 1),
    }
    _derived: ClassVar = ("_lam_kept",)
    _run_axis: ClassVar = {"lam": 0}

    def __init__(
        self,
        G: int,
        d: int,
        lam: Any,
        *,
        batch: tuple[int, ...] = (),
        backend: Backend = NUMPY,
        delay: int = DELAY,
    ) -> None:
        self.lam, self._lam_kept = (backend.array(np.array(np.broadcast_to(lam, batch))) for _ in range(2))
        self.backend, self._d, self.keep_Lambda = backend, d, delay > 0
        kept = G * self.keep_Lambda
        self.Lambda = backend.zeros((kept, *batch, d, d))
        self.Lambda_inv = backend.zeros((G, *batch, d, d))
        self.u = backend.zeros((G, *batch, d))
        self.pending = backend.zeros((G, *batch, d))
        self.waiting = backend.zeros((kept, *batch, delay, d))
        self.behind, self.empty = np.zeros((G, *batch), dtype=np.bool_), np.zeros((G, *batch), dtype=np.bool_)
        self.absorbed = self.delayed = 0
        self.changed = 0
        if not imagining():
            everything = np.ones((G, *batch), dtype=np.bool_)
            self.drop(everything)
            self.restart(everything)

    def load_state_dict(self, state: Mapping[str, np.ndarray]) -> None:
        super().load_state_dict(state)
        check_gram("Lambda_inv", self.Lambda_inv)
        check_gram("Lambda", self.Lambda)
        check_range("delayed", self.delayed, 0, self.waiting.shape[-2])

    def working_bytes(self, samples: int) -> int:
        d, squares = self._d, 8 * self._d * self._d
        return 3 * squares + 48 * len(self.u) * d + min(BLOCK_BYTES + squares, len(self.u) * squares)

    def drop(self, mask: BoolArray) -> None:
        """Forget the samples of `mask`, (G, *batch). Lambda_inv, with which the old Q acts, stays."""
        eye = self.backend.array(np.eye(self._d))
        for g in masked_groups(mask):
            runs = runs_in(mask, g)
            self.u[g][runs] = 0.0
            self.pending[g][runs] = 0.0
            if self.keep_Lambda:
                self.Lambda[g][runs] = self._lam_kept[runs][..., None, None] * eye
                self.waiting[g][runs] = 0.0
        self.behind |= mask
        self.empty |= mask

    def restart(self, mask: BoolArray) -> None:
        """Let the next Q of `mask` start from nothing; its samples have been dropped."""
        eye = self.backend.array(np.eye(self._d))
        for g in masked_groups(mask):
            runs = runs_in(mask, g)
            self.Lambda_inv[g][runs] = eye / self.lam[runs][..., None, None]
        self.behind &= ~mask
        self.empty &= ~mask

    def fade(self, factor: float) -> None:
        """Let every sample count `factor` times as much; lam I stays whole. Lambda_inv, with which Q acts, stays."""
        self.settle()
        self.Lambda *= factor
        self.Lambda += (1 - factor) * self._lam_kept[..., None, None] * np.eye(self._d)
        self.u *= factor
        self.pending *= factor**0.5
        self.behind[:] = True

    def add(self, g: int, phi: Any, reward: Any) -> None:
        """One sample of regression g in each run: phi (*batch, d), reward a number or (B, 1). Zero is no sample.

        There must be none pending.
        """
        self.pending[g] += phi
        self.u[g] += phi * reward

    def add_together(self, g: int, phi: Any) -> None:
        """Samples of regression g whose phi, (n, B, d) of B runs, go into Lambda at once; u has them already."""
        phi = phi.swapaxes(0, 1)
        self.Lambda[g] += phi.swapaxes(-1, -2) @ phi

    def defer(self, mask: Any, where: BoolArray) -> None:
        """Put the pending samples of `mask` (G, *batch) aside, because others will come before they are planned.

        `where` is the mask on the host.
        """
        phi = self.pending if where.all() else self.pending * mask[..., None]
        self.keep(phi)
        self.pending -= phi
        self.behind |= where
        self.empty &= ~where

    def keep(self, phi: Any) -> None:
        """Let `phi` (G, *batch, d) wait for Lambda, if that is kept."""
        if not self.keep_Lambda:
            return
        if self.delayed == self.waiting.shape[-2]:
            self.settle()
        self.waiting[..., self.delayed, :] = phi
        self.delayed += 1

    def absorb(self, mask: Any, *, whole: bool) -> Any:
        """Bring the pending samples of `mask` (G, *batch) into Lambda_inv; v of `downdate`, zero elsewhere.

        `whole` says that the mask holds everywhere (the caller knows; looking would wait for the device).
        """
        if whole:
            v = downdate(self.Lambda_inv, self.pending)
            self.pending[:] = 0.0
            return v
        phi = self.pending * mask[..., None]
        v = self.backend.xp.zeros_like(phi)
        for g in range(len(phi)):
            if not self.backend.is_numpy or phi[g].any():
                v[g] = downdate(self.Lambda_inv[g], phi[g])
        self.pending -= phi
        return v

    def change_lam(self, lam: Any, runs: Any = ...) -> None:
        """Other ridge parameters (*batch) for those runs, from the next fresh inverse on."""
        self.lam[runs] = lam[runs]
        self.changed = 1
        self.behind[:, runs] = True

    @property
    def stale(self) -> bool:
        """Whether it is time for fresh inverses."""
        return self.absorbed >= REFACTOR_EVERY

    def settle(self) -> None:
        """Add the waiting features to Lambda."""
        if self.backend.is_numpy:
            for g in range(len(self.Lambda)):
                self.Lambda[g] += self.waiting[g].swapaxes(-1, -2) @ self.waiting[g]
        elif len(self.Lambda):
            waiting = self.waiting.flatten(0, -3)
            self.Lambda.flatten(0, -3).baddbmm_(waiting.swapaxes(-1, -2), waiting)
        self.waiting[:] = 0.0
        self.delayed = 0

    def refactor(self, mask: BoolArray, rebuild: Rebuild | None = None) -> None:
        """Invert Lambda afresh where `mask` says; what was derived from the old inverses has to follow."""
        for g, runs, Lambda in self._Lambdas(mask, rebuild):
            self.Lambda_inv[g][runs] = fresh_inverse(Lambda, self.backend)
        self.renewed(mask)

    def renewed(self, mask: BoolArray) -> None:
        """The inverses of `mask` are those of all samples but the pending ones."""
        self.behind &= ~mask
        self.empty &= ~mask

    def _Lambdas(self, mask: BoolArray, rebuild: Rebuild | None) -> Iterator[tuple[int, Any, Any]]:
        """Each g in `mask`, its runs and their Lambda_g, where that is kept or can be made again."""
        self.settle()
        for g in masked_groups(mask):
            runs = runs_in(mask, g)
            if self.keep_Lambda and self.changed:
                eye = self.backend.array(np.eye(self._d))
                yield g, runs, self.Lambda[g][runs] + self.shift[runs][..., None, None] * eye
            elif self.keep_Lambda:
                yield g, runs, self.Lambda[g][runs]
            elif rebuild is not None:
                yield g, runs, rebuild(g)

    def rebuilt(self, g: int, gram: Array) -> Array:
        """Lambda_g from sum phi phi' over all samples, without the pending one; for one agent."""
        phi = self.pending[g]
        return np.asarray(self.lam * np.eye(len(phi)) + gram - phi[:, None] * phi)

    @property
    def shift(self) -> Any:
        """What lam has changed by since Lambda was made, (*batch)."""
        return self.lam - self._lam_kept

    def inverse(self, g: int) -> Any:
        """Lambda_g^-1 of the last planning, (*batch, d, d)."""
        return self.Lambda_inv[g]

    def solve(self, g: int, z: Any) -> Any:
        """w = Lambda_g^-1 (u_g + z), (*batch, d)."""
        return matvec(self.Lambda_inv[g], self.u[g] + z)

    def fit(self, g: int, target: Any) -> Any:
        """Lambda_g^-1 target, (*batch, d)."""
        return matvec(self.Lambda_inv[g], target)

    def correlated(self, x: Any) -> Any:
        """Lambda^-1/2 x for independent x (levels, n, *batch, d)."""
        return matvec(np.linalg.cholesky(self.Lambda_inv)[:, None], x)

    def dof(self) -> Any:
        """Degrees of freedom of each regression, tr (Lambda - lam I) Lambda^-1, (G, *batch)."""
        return self._d - self.lam * self.Lambda_inv.diagonal(0, -2, -1).sum(-1)

    def penalty(self, w: Any) -> Any:
        """What the ridge adds to the squared residuals of w (*batch, d)."""
        return self.lam * dot(w, w)

    def drift(self, rebuild: Rebuild | None = None) -> Any:
        """max |Lambda Lambda^-1 - I| over all regressions that are not behind, (*batch)."""
        xp, eye = self.backend.xp, self.backend.array(np.eye(self._d))
        worst = xp.zeros_like(self.lam)
        for g, runs, Lambda in self._Lambdas(~self.behind, rebuild):
            off = xp.amax(abs(Lambda @ self.Lambda_inv[g][runs] - eye), (-1, -2))
            worst[runs] = xp.maximum(worst[runs], off)
        return worst


def fresh_inverse(Lambda: Any, backend: Backend = NUMPY) -> Any:
    """Lambda^-1, symmetric to the last bit."""
    inverse = backend.xp.linalg.inv(Lambda)
    return (inverse + inverse.swapaxes(-1, -2)) / 2
