"""The exact value of a policy as a GPU kernel (Triton). The same formula as in `engine.py`."""

# mypy: disable-error-code="no-untyped-def,untyped-decorator"

from __future__ import annotations

from typing import Any

import triton
import triton.language as tl

from linmdp.agents.kernels import padded

TILES = (16, 32, 4)
"""Runs and states that one program works on, and its warps."""


@triton.jit
def _optimistic(w, forms_ptr, at, here, F_ptr, columns, inside, beta, cap):
    """Q of a tile of runs and states for one action."""
    F = tl.load(F_ptr + columns, mask=inside, other=0.0).to(tl.float64)
    forms = tl.load(forms_ptr + at, mask=here, other=0.0).to(tl.float64)
    q = tl.dot(w, F, out_dtype=tl.float64) + beta[:, None] * tl.sqrt(forms)
    return tl.minimum(q, cap)


@triton.jit
def _value_kernel(
    w_ptr,
    forms_ptr,
    F_ptr,
    beta_ptr,
    cap_ptr,
    first_ptr,
    truth_ptr,
    rows_ptr,
    V_ptr,
    numbers_ptr,
    runs_ptr,
    n,
    S: tl.constexpr,
    A: tl.constexpr,
    D: tl.constexpr,
    D_PADDED: tl.constexpr,
    RUNS: tl.constexpr,
    STATES: tl.constexpr,
):
    place = tl.program_id(0) * RUNS + tl.arange(0, RUNS)
    runs = tl.load(runs_ptr + place, mask=place < n, other=-1)
    states = tl.program_id(1) * STATES + tl.arange(0, STATES)
    k = tl.arange(0, D_PADDED)
    run_ok, state_ok = runs >= 0, states < S
    here, inside = run_ok[:, None] & state_ok[None, :], (k < D)[:, None] & state_ok[None, :]
    vectors, there = runs[:, None] * D + k[None, :], run_ok[:, None] & (k < D)[None, :]
    w = tl.load(w_ptr + vectors, mask=there, other=0.0)
    truth = tl.load(truth_ptr + place[:, None] * D + k[None, :], mask=there, other=0.0)
    beta, cap = tl.load(beta_ptr + runs, mask=run_ok, other=0.0), tl.load(cap_ptr)
    first = tl.load(first_ptr + runs, mask=run_ok, other=0) != 0
    tie = tl.load(numbers_ptr + 3)
    at = runs[:, None].to(tl.int64) * (A * S) + states[None, :]
    columns = k[:, None] * (A * S) + states[None, :]
    top = tl.full((RUNS, STATES), float("-inf"), tl.float64)
    for a in range(A):
        q = _optimistic(w, forms_ptr, at + a * S, here, F_ptr, columns + a * S, inside, beta, cap)
        top = tl.maximum(top, q)
    count, total = tl.zeros((RUNS, STATES), tl.float64), tl.zeros((RUNS, STATES), tl.float64)
    for a in range(A):
        q = _optimistic(w, forms_ptr, at + a * S, here, F_ptr, columns + a * S, inside, beta, cap)
        rows = tl.load(rows_ptr + columns + a * S, mask=inside, other=0.0)
        exact = tl.dot(truth, rows, out_dtype=tl.float64)
        played = (q >= top - tie) & ((count == 0) | (first[:, None] == 0))
        total += tl.where(played, exact, 0.0)
        count += played.to(tl.float64)
    tl.store(V_ptr + runs[:, None] * S + states[None, :], total / count, mask=here)


def evaluate(engine: Any, h: int, truth: Any, V: Any, runs: Any) -> None:
    """V^pi of step h, (B, S), of the policies of `runs` (n,), from r + P V as weights of the features, `truth` (n, d).

    A run of -1 is none.
    """
    model, storage, explore = engine.model, engine.planner.storage, engine.exploration
    tile, states, warps = TILES
    _value_kernel[(triton.cdiv(len(runs), tile), triton.cdiv(model.S, states))](
        engine.planner.w[h],
        storage.forms[h],
        storage.columns,
        explore.beta[h],
        explore.caps[h],
        engine.first,
        truth,
        engine.columns,
        V,
        engine.numbers,
        runs,
        len(runs),
        model.S,
        model.A,
        model.d,
        padded(model.d),
        tile,
        states,
        num_warps=warps,
    )
