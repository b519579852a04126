"""Planning as GPU kernels (Triton). The same formulas as in `ridge.py`, `Counts` and `Bonus`, which the tests compare.

A step of a planning has to move N, the forms x' Lambda^-1 x (read and written) and Lambda^-1; everything else can stay
on the chip. So it is two kernels: `fit` reads N and Lambda^-1 once and leaves w and v, `sweep` reads and writes the
forms. Both take a mask: a run, or a tile of runs, that is not planned costs no memory traffic.
"""

# mypy: disable-error-code="no-untyped-def,untyped-decorator"

from __future__ import annotations

from collections.abc import Iterator
from contextlib import nullcontext
from typing import Any, NamedTuple

import numpy as np
import triton
import triton.language as tl


class Tiles(NamedTuple):
    """Runs and states that a program of `sweep` works on, its warps, and how many copies of a tile are on their way."""

    runs: int = 16
    states: int = 32
    warps: int = 4
    stages: int = 3


TILES = Tiles()
FIT = (64, 4, 3)
"""States that a program of `fit` reads at a time, its warps, and how many such tiles are on their way."""

CHAINS = 8
"""Parts of the runs that are planned side by side."""

ROWS = 64
"""Rows of features whose forms a program makes afresh."""

PRODUCTS_BYTES, TOGETHER = 1 << 28, 4096
"""Space for x_i x_j of all rows x, with which many forms are one product; matrices whose forms are one."""


@triton.jit
def _fit_kernel(
    Lambda_inv_ptr,
    pending_ptr,
    u_ptr,
    N_ptr,
    V_ptr,
    w_ptr,
    v_ptr,
    top_ptr,
    mask_ptr,
    runs_ptr,
    S: tl.constexpr,
    D: tl.constexpr,
    D_PADDED: tl.constexpr,
    STATES: tl.constexpr,
    STAGES: tl.constexpr,
    SPLIT: tl.constexpr,
    LAST: tl.constexpr,
):
    run = tl.load(runs_ptr + tl.program_id(0))
    k = tl.arange(0, D_PADDED)
    entry, ok = run * D + k, (k < D) & (run >= 0)
    if tl.load(mask_ptr + run, mask=run >= 0, other=0) != 0:
        at = run * D * D + k[:, None] * D + k[None, :]
        inside = ok[:, None] & ok[None, :]
        Lambda_inv = tl.load(Lambda_inv_ptr + at, mask=inside, other=0.0)
        phi = tl.load(pending_ptr + entry, mask=ok, other=0.0)
        target = tl.load(u_ptr + entry, mask=ok, other=0.0)
        if not LAST:  # nothing follows the last step
            products = tl.zeros((D_PADDED, STATES), tl.float64)
            for first in tl.range(0, S, STATES, num_stages=STAGES):
                states = first + tl.arange(0, STATES)
                here = states < S
                V = tl.load(V_ptr + run * S + states, mask=here, other=0.0).to(tl.float64)
                cells = run * D * S + k[:, None] * S + states[None, :]
                N = tl.load(N_ptr + cells, mask=ok[:, None] & here[None, :], other=0.0).to(tl.float64)
                products += N * V[None, :]
            target += tl.sum(products, 1)
        if SPLIT:  # where the largest Q is collected from programs that do not know of each other
            for first in range(0, S, STATES):
                states = first + tl.arange(0, STATES)
                lowest = tl.full((STATES,), float("-inf"), top_ptr.dtype.element_ty)
                tl.store(top_ptr + run * S + states, lowest, mask=states < S)
        # only now, so that Lambda^-1 was on its way with N
        x = tl.sum(Lambda_inv * phi[None, :], 1)
        v = x / tl.sqrt(1.0 + tl.sum(phi * x, 0))
        Lambda_inv -= v[:, None] * v[None, :]
        tl.store(Lambda_inv_ptr + at, Lambda_inv, mask=inside)
        tl.store(v_ptr + entry, v, mask=ok)
        tl.store(pending_ptr + entry, tl.zeros_like(phi), mask=ok)
        tl.store(w_ptr + entry, tl.sum(Lambda_inv * target[None, :], 1), mask=ok)
    else:
        tl.store(v_ptr + entry, tl.zeros((D_PADDED,), tl.float64), mask=ok)


@triton.jit
def _product(x, F):
    """x F in the precision of both; that of float32 in three products of shorter numbers, for which there are units."""
    if F.dtype == tl.float64:
        return tl.dot(x, F, out_dtype=tl.float64)
    return tl.dot(x, F, input_precision="tf32x3", out_dtype=tl.float32)


@triton.jit
def _sweep_kernel(
    w_ptr,
    v_ptr,
    F_ptr,
    forms_ptr,
    V_ptr,
    cap_ptr,
    beta_ptr,
    mask_ptr,
    runs_ptr,
    n,
    S: tl.constexpr,
    A: tl.constexpr,
    D: tl.constexpr,
    D_PADDED: tl.constexpr,
    RUNS: tl.constexpr,
    STATES: tl.constexpr,
    STAGES: tl.constexpr,
    SPLIT: tl.constexpr,
):
    place = tl.program_id(0) * RUNS + tl.arange(0, RUNS)
    runs = tl.load(runs_ptr + place, mask=place < n, other=-1)
    states = tl.program_id(1) * STATES + tl.arange(0, STATES)
    k = tl.arange(0, D_PADDED)
    run_ok, state_ok, k_ok = runs >= 0, states < S, k < D
    asked = tl.load(mask_ptr + runs, mask=run_ok, other=0).to(tl.int32)
    # no action of a tile that is not planned: a branch around the loop would keep Triton from loading ahead in it
    planned = tl.max(asked, 0)
    begin = tl.program_id(2)
    end = planned * (begin + 1 if SPLIT else A)
    dtype: tl.constexpr = forms_ptr.dtype.element_ty
    here = run_ok[:, None] & state_ok[None, :] & (planned != 0)
    vectors, there = runs[:, None] * D + k[None, :], run_ok[:, None] & k_ok[None, :]
    w = tl.load(w_ptr + vectors, mask=there, other=0.0).to(dtype)
    v = tl.load(v_ptr + vectors, mask=there, other=0.0).to(dtype)
    beta = tl.load(beta_ptr + runs, mask=run_ok, other=0.0).to(dtype)
    top = tl.full((RUNS, STATES), float("-inf"), dtype)
    at = runs[:, None] * (A * S) + states[None, :]
    for a in tl.range(begin, end, num_stages=STAGES):
        columns = k[:, None] * (A * S) + (a * S + states)[None, :]
        F = tl.load(F_ptr + columns, mask=k_ok[:, None] & state_ok[None, :], other=0.0)
        change = _product(v, F)
        forms = tl.load(forms_ptr + at + a * S, mask=here, other=0.0)
        forms = tl.abs(forms - change * change)
        tl.store(forms_ptr + at + a * S, forms, mask=here)
        q = _product(w, F) + beta[:, None] * tl.sqrt(forms)
        top = tl.maximum(top, q)
    top = tl.minimum(top, tl.load(cap_ptr).to(dtype))
    at = V_ptr + runs[:, None] * S + states[None, :]
    if SPLIT:
        tl.atomic_max(at, top, mask=here & (asked != 0)[:, None], sem="relaxed")
    else:
        tl.store(at, top, mask=here)


@triton.jit
def _downdate_kernel(Lambda_inv_ptr, phi_ptr, v_ptr, D: tl.constexpr, D_PADDED: tl.constexpr):
    one = tl.program_id(0).to(tl.int64)
    k = tl.arange(0, D_PADDED)
    ok, at = k < D, one * D * D + k[:, None] * D + k[None, :]
    inside = ok[:, None] & ok[None, :]
    Lambda_inv = tl.load(Lambda_inv_ptr + at, mask=inside, other=0.0)
    phi = tl.load(phi_ptr + one * D + k, mask=ok, other=0.0)
    x = tl.sum(Lambda_inv * phi[None, :], 1)
    v = x / tl.sqrt(1.0 + tl.sum(phi * x, 0))
    tl.store(v_ptr + one * D + k, v, mask=ok)
    tl.store(Lambda_inv_ptr + at, Lambda_inv - v[:, None] * v[None, :], mask=inside)


@triton.jit
def _inverse_kernel(
    Lambda_ptr, waiting_ptr, shift_ptr, which_ptr, inverse_ptr, B, DELAY, D: tl.constexpr, D_PADDED: tl.constexpr
):
    """Gauss and Jordan, in place; Lambda is positive definite, so that no pivot has to be looked for."""
    one = tl.load(which_ptr + tl.program_id(0))
    k = tl.arange(0, D_PADDED)
    ok, at = k < D, one * D * D + k[:, None] * D + k[None, :]
    inside = ok[:, None] & ok[None, :]
    M = tl.load(Lambda_ptr + at, mask=inside, other=0.0)
    M += tl.where(k[:, None] == k[None, :], tl.load(shift_ptr + one % B), 0.0)
    for i in range(DELAY):
        phi = tl.load(waiting_ptr + (one * DELAY + i) * D + k, mask=ok, other=0.0)
        M += phi[:, None] * phi[None, :]
    for j in range(D):
        row = tl.sum(tl.where(k[:, None] == j, M, 0.0), 0)
        column = tl.sum(tl.where(k[None, :] == j, M, 0.0), 1)
        pivot = tl.sum(tl.where(k == j, row, 0.0), 0)
        row = tl.where(k == j, 1.0, row) / pivot
        rest = tl.where(k[None, :] == j, 0.0, M) - column[:, None] * row[None, :]
        M = tl.where(k[:, None] == j, row[None, :] + tl.zeros_like(M), rest)
    tl.store(inverse_ptr + at, (M + tl.trans(M)) / 2, mask=inside)


@triton.jit
def _forms_kernel(
    Lambda_inv_ptr,
    F_ptr,
    which_ptr,
    forms_ptr,
    LENGTH: tl.constexpr,
    D: tl.constexpr,
    D_PADDED: tl.constexpr,
    ROWS: tl.constexpr,
):
    one = tl.load(which_ptr + tl.program_id(0))
    rows, k = tl.program_id(1) * ROWS + tl.arange(0, ROWS), tl.arange(0, D_PADDED)
    ok = k < D
    square = ok[:, None] & ok[None, :]
    M = tl.load(Lambda_inv_ptr + one * D * D + k[:, None] * D + k[None, :], mask=square, other=0.0)
    there = ok[:, None] & (rows < LENGTH)[None, :]
    F = tl.load(F_ptr + k[:, None] * LENGTH + rows[None, :], mask=there, other=0.0).to(tl.float64)
    forms = tl.abs(tl.sum(tl.dot(M, F, out_dtype=tl.float64) * F, 0))
    tl.store(forms_ptr + one * LENGTH + rows, forms.to(forms_ptr.dtype.element_ty), mask=rows < LENGTH)


def padded(d: int) -> int:
    """What a product of a kernel takes for a length of d."""
    return max(16, int(triton.next_power_of_2(d)))


def fit(planner: Any, h: int, v: Any, mask: Any, runs: Any, *, few: bool) -> None:
    """Lines 5 and 7 to 9 of Algorithm 1 at step h: Lambda^-1, v (B, d) and w, of `runs` (n,), as far as in `mask` (B,).

    Elsewhere v is 0. A run of -1 is none.
    """
    ridge, storage, d = planner.ridge, planner.storage, v.shape[-1]
    last = h == planner.horizon.H - 1
    _fit_kernel[(len(runs),)](
        ridge.Lambda_inv[h],
        ridge.pending[h],
        ridge.u[h],
        storage.V if last else storage.N[h],
        storage.V[h + 1],
        planner.w[h],
        v,
        storage.V[h],
        mask,
        runs,
        storage.V.shape[-1],
        d,
        padded(d),
        FIT[0],
        FIT[2],
        few,
        last,
        num_warps=FIT[1],
    )


def sweep(storage: Any, h: int, v: Any, mask: Any, runs: Any, *, few: bool, tiles: Tiles = TILES) -> None:
    """Lines 10 and 11: the forms (B, A*S) and V (B, S) of step h, in place, from w and v (B, d); runs as in `fit`.

    `few`: a program for each action, so that a planning of few runs is over sooner.
    """
    explore, S, (d, rows) = storage.exploration, storage.V.shape[-1], storage.columns.shape
    A, n = rows // S, len(runs)
    grid = (triton.cdiv(n, tiles.runs), triton.cdiv(S, tiles.states), A if few else 1)
    _sweep_kernel[grid](
        storage.w[h],
        v,
        storage.columns,
        storage.forms[h],
        storage.V[h],
        explore.caps[h],
        explore.beta[h],
        mask,
        runs,
        n,
        S,
        A,
        d,
        padded(d),
        tiles.runs,
        tiles.states,
        tiles.stages,
        few,
        num_warps=tiles.warps,
    )


def plan(planner: Any, mask: Any, runs: Any) -> None:
    """`Planner.plan` for `runs`, (n,), all or few of those that there are, as far as in `mask`, (H, B).

    They go in a few chains that do not wait for each other: while one reads N, another computes.
    """
    v = planner.ridge.u.new_empty(planner.ridge.u.shape[1:])
    for chain, part in _chains(planner.backend, len(runs)):
        with chain:
            for h in reversed(range(planner.horizon.H)):
                fit(planner, h, v, mask[h], runs[part], few=len(runs) < len(v))
                sweep(planner.storage, h, v, mask[h], runs[part], few=len(runs) < len(v))


def _chains(backend: Any, n: int) -> Iterator[tuple[Any, slice]]:
    """Streams of the device with the runs of each; the current one goes on when all have come to their ends."""
    if backend.device != "cuda" or n <= TILES.runs:
        yield nullcontext(), slice(None)
        return
    cuda = backend.xp.cuda
    size = TILES.runs * triton.cdiv(n, TILES.runs * CHAINS)
    streams = [cuda.Stream() for _ in range(0, n, size)]
    here = cuda.current_stream()
    for i, stream in enumerate(streams):
        stream.wait_stream(here)
        yield cuda.stream(stream), slice(i * size, (i + 1) * size)
    for stream in streams:
        here.wait_stream(stream)


def renew(planner: Any, which: Any) -> None:
    """Inverses afresh, and the forms that follow from them, of the pairs of step and run `which`, (n,) h B + run."""
    ridge, storage, d = planner.ridge, planner.storage, planner.w.shape[-1]
    delay, length = ridge.waiting.shape[-2], storage.columns.shape[1]
    Lambda, B = (ridge.Lambda, ridge.waiting, ridge.shift), len(ridge.lam)
    _inverse_kernel[(len(which),)](*Lambda, which, ridge.Lambda_inv, B, delay, d, padded(d))
    if len(which) >= d and d * (d + 1) // 2 * length * 8 <= PRODUCTS_BYTES:
        _forms_together(ridge.Lambda_inv, storage.columns, which, storage.forms)
        return
    grid = (len(which), triton.cdiv(length, ROWS))
    _forms_kernel[grid](ridge.Lambda_inv, storage.columns, which, storage.forms, length, d, padded(d), ROWS)


def _forms_together(Lambda_inv: Any, columns: Any, which: Any, forms: Any) -> None:
    """The forms of many matrices: the library's product of their entries with x_i x_j, i <= j, as in `Counts`."""
    d, length = columns.shape
    i, j = (which.new_tensor(index) for index in np.triu_indices(d))
    x = columns.double()
    pairs = x[i] * x[j] * (2.0 - (i == j).double())[:, None]
    entries, found = Lambda_inv.view(-1, d * d), forms.view(-1, length)
    for some in which.split(TOGETHER):
        found[some] = (entries[some][:, i * d + j] @ pairs).abs_().to(forms.dtype)


def downdate(Lambda_inv: Any, phi: Any) -> Any:
    """`ridge.downdate` of many matrices (..., d, d), in one pass over them."""
    d = phi.shape[-1]
    v = phi.new_empty(phi.shape)
    _downdate_kernel[(phi.numel() // d,)](Lambda_inv, phi, v, d, padded(d), num_warps=1)
    return v
