"""The planning pass as one GPU kernel (Triton). The same formulas as `Counts.sweep`, which the tests compare.

Fused by hand because a profile said so: as a matrix product and two compiled kernels the pass took 92 us for 512 runs
at S=500, A=15, d=30 on one H200, most of it spent on writing phi'w and phi'v to memory and reading them back.
"""

from __future__ import annotations

from typing import Any

import triton
import triton.language as tl

TILES = (16, 32, 4)
"""Runs and states that one program works on, and its warps: the fastest of 36 that were tried."""


@triton.jit  # type: ignore[untyped-decorator]
def _sweep_kernel(  # type: ignore[no-untyped-def]  # a kernel's arguments are typed by Triton
    w_ptr,
    v_ptr,
    F_ptr,
    b_ptr,
    V_ptr,
    cap_ptr,
    beta_ptr,
    B,
    S,
    A: tl.constexpr,
    D: tl.constexpr,
    D_PADDED: tl.constexpr,
    RUNS: tl.constexpr,
    STATES: tl.constexpr,
):
    runs = tl.program_id(0) * RUNS + tl.arange(0, RUNS)
    states = tl.program_id(1) * STATES + tl.arange(0, STATES)
    k = tl.arange(0, D_PADDED)
    run_ok, state_ok, k_ok = runs < B, states < S, k < D
    here = run_ok[:, None] & state_ok[None, :]
    vectors = runs[:, None] * D + k[None, :]
    w = tl.load(w_ptr + vectors, mask=run_ok[:, None] & k_ok[None, :], other=0.0)
    v = tl.load(v_ptr + vectors, mask=run_ok[:, None] & k_ok[None, :], other=0.0)
    dtype: tl.constexpr = b_ptr.dtype.element_ty
    beta = tl.load(beta_ptr + runs, mask=run_ok, other=0.0).to(dtype)

    top = tl.full((RUNS, STATES), float("-inf"), dtype)
    for a in range(A):
        columns = k[:, None] * (A * S) + (a * S + states)[None, :]
        F = tl.load(F_ptr + columns, mask=k_ok[:, None] & state_ok[None, :], other=0.0)
        change = tl.dot(v, F, input_precision="ieee", out_dtype=dtype)
        at = runs[:, None].to(tl.int64) * (A * S) + (a * S + states)[None, :]
        b = tl.abs(tl.load(b_ptr + at, mask=here, other=0.0) - change * change)
        tl.store(b_ptr + at, b, mask=here)
        q = tl.dot(w, F, input_precision="ieee", out_dtype=dtype) + beta[:, None] * tl.sqrt(b)
        top = tl.maximum(top, q)
    top = tl.minimum(top, tl.load(cap_ptr).to(dtype))
    tl.store(V_ptr + runs[:, None] * S + states[None, :], top, mask=here)


def sweep(two: Any, columns: Any, b: Any, V: Any, cap: Any, beta: Any, tiles: tuple[int, int, int] = TILES) -> None:
    """Renew the forms b (B, A*S) and V (B, S) in place, from two = (w, v), (2, B, d), and the columns (d, A*S)."""
    (B, S), d = V.shape, columns.shape[0]
    A, (runs, states, warps) = columns.shape[1] // S, tiles
    grid = (triton.cdiv(B, runs), triton.cdiv(S, states))
    _sweep_kernel[grid](
        two[0],
        two[1],
        columns,
        b,
        V,
        cap,
        beta,
        B,
        S,
        A,
        d,
        max(16, triton.next_power_of_2(d)),
        runs,
        states,
        num_warps=warps,
    )
