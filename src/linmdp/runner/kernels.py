"""An episode, and the exact value of a policy, as GPU kernels (Triton). The same formulas as in `engine.py`.

Runs do not meet while they play: one program plays all H steps of one run, so that an episode is one kernel.
"""

# mypy: disable-error-code="no-untyped-def,untyped-decorator"

from __future__ import annotations

import math
from typing import Any

import triton
import triton.language as tl

TILES = (16, 32, 4)
"""Runs and states that one program of `evaluate` works on, and its warps."""

WARPS = 1
"""Of a program that plays: its sums are short, and warps would have to wait for each other."""


@triton.jit
def _play_kernel(
    draws_ptr,
    start_ptr,
    store_ptr,
    theta_ptr,
    cdf_ptr,
    F_ptr,
    w_ptr,
    forms_ptr,
    caps_ptr,
    beta_ptr,
    first_ptr,
    pending_ptr,
    u_ptr,
    N_ptr,
    phi_ptr,
    rewards_ptr,
    looked_ptr,
    extremes_ptr,
    numbers_ptr,
    purpose_stride,
    step_stride,
    run_stride,
    B,
    S: tl.constexpr,
    H,
    A: tl.constexpr,
    D: tl.constexpr,
    A_PADDED: tl.constexpr,
    D_PADDED: tl.constexpr,
    BLOCK: tl.constexpr,
    BLOCKS_PADDED: tl.constexpr,
    LOOK: tl.constexpr,
):
    run = tl.program_id(0).to(tl.int64)
    k, a = tl.arange(0, D_PADDED), tl.arange(0, A_PADDED)
    k_ok, a_ok = k < D, a < A
    state, first = tl.load(start_ptr + run), tl.load(first_ptr + run)
    blocks, block = tl.arange(0, BLOCKS_PADDED), tl.arange(0, BLOCK)
    ends = tl.minimum(blocks * BLOCK + (BLOCK - 1), S - 1)
    noise, low = tl.load(numbers_ptr), tl.load(numbers_ptr + 1)
    high, tie = tl.load(numbers_ptr + 2), tl.load(numbers_ptr + 3)
    total, capped, ties = tl.full((), 0.0, tl.float64), 0, 0
    least, largest = tl.full((), A, tl.int32), tl.full((), -1, tl.int32)
    for h in range(H):
        entry = (h * B + run) * D + k
        draw = draws_ptr + h * step_stride + run * run_stride
        # whatever can be on its way before the state is known
        shock, level, tie_draw = tl.load(draw), tl.load(draw + purpose_stride), tl.load(draw + 2 * purpose_stride)
        theta = tl.load(theta_ptr + h * D + k, mask=k_ok, other=0.0)
        stored, beta = tl.load(store_ptr + h * B + run).to(tl.float64), tl.load(beta_ptr + h * B + run)
        columns = k[:, None] * (A * S) + a[None, :] * S + state
        cdf = cdf_ptr + (h * D + k).to(tl.int64) * S
        outline = tl.load(cdf[:, None] + ends[None, :], mask=k_ok[:, None], other=0.0)
        F = tl.load(F_ptr + columns, mask=k_ok[:, None] & a_ok[None, :], other=0.0).to(tl.float64)
        w = tl.load(w_ptr + entry, mask=k_ok, other=0.0)
        forms = tl.load(forms_ptr + (h * B + run) * (A * S) + a * S + state, mask=a_ok, other=0.0).to(tl.float64)
        cap = tl.load(caps_ptr + h)
        q = tl.minimum(tl.sum(F * w[:, None], 0) + beta * tl.sqrt(forms), cap)
        q = tl.where(a_ok, q, float("-inf"))
        best = (q >= tl.max(q, 0) - tie).to(tl.int32)
        count = tl.sum(best, 0)
        pick = tl.floor(tie_draw * count).to(tl.int32) * (first == 0).to(tl.int32)
        action = tl.sum((tl.cumsum(best, 0) <= pick).to(tl.int32), 0)
        phi = tl.sum(tl.where(a[None, :] == action, F, 0.0), 1)

        reward = tl.minimum(tl.maximum(tl.sum(phi * theta, 0) + noise * shock, low), high)
        # the next state is searched for among blocks of states first, then within one: see LinearModel.move
        outline = tl.sum(outline * phi[:, None], 0)
        level *= tl.sum(tl.where(blocks == (S - 1) // BLOCK, outline, 0.0), 0)
        passed = tl.sum(((outline <= level) & (blocks <= (S - 1) // BLOCK)).to(tl.int32), 0)
        states = tl.minimum(passed, (S - 1) // BLOCK) * BLOCK + block
        within = tl.load(cdf[:, None] + states[None, :], mask=k_ok[:, None] & (states < S)[None, :], other=0.0)
        within = tl.sum(within * phi[:, None], 0)
        passed = tl.sum(((within <= level) & (states < S)).to(tl.int32), 0)
        following = tl.minimum(tl.min(states, 0) + passed, S - 1)

        # nobody else writes there; but unlike a sum of what was loaded, nothing waits for these
        learned = phi * stored
        tl.store(phi_ptr + entry, phi, mask=k_ok)
        tl.atomic_add(pending_ptr + entry, learned, mask=k_ok, sem="relaxed")
        tl.atomic_add(u_ptr + entry, learned * reward, mask=k_ok, sem="relaxed")
        counted = learned.to(N_ptr.dtype.element_ty)
        tl.atomic_add(N_ptr + entry * S + following, counted, mask=k_ok & (h < H - 1), sem="relaxed")
        total += reward
        capped += tl.sum((a_ok & (q >= cap - tie)).to(tl.int32), 0)
        ties += (count > 1).to(tl.int32)
        least, largest = tl.minimum(least, action), tl.maximum(largest, action)
        state = following.to(tl.int64)
    tl.store(rewards_ptr + run, total)
    if LOOK:
        seen = looked_ptr + run
        tl.store(seen, tl.load(seen) + H)
        tl.store(seen + B, tl.load(seen + B) + capped)
        tl.store(seen + 2 * B, tl.load(seen + 2 * B) + ties)
        seen = extremes_ptr + run
        tl.store(seen, tl.minimum(tl.load(seen), least))
        tl.store(seen + B, tl.maximum(tl.load(seen + B), largest))


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
    B,
    S: tl.constexpr,
    A: tl.constexpr,
    D: tl.constexpr,
    D_PADDED: tl.constexpr,
    RUNS: tl.constexpr,
    STATES: tl.constexpr,
):
    runs = tl.program_id(0) * RUNS + tl.arange(0, RUNS)
    states = tl.program_id(1) * STATES + tl.arange(0, STATES)
    k = tl.arange(0, D_PADDED)
    run_ok, state_ok = runs < B, states < S
    here, inside = run_ok[:, None] & state_ok[None, :], (k < D)[:, None] & state_ok[None, :]
    vectors, there = runs[:, None] * D + k[None, :], run_ok[:, None] & (k < D)[None, :]
    w = tl.load(w_ptr + vectors, mask=there, other=0.0)
    truth = tl.load(truth_ptr + vectors, mask=there, other=0.0)
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


def _padded(n: int) -> int:
    return max(16, int(triton.next_power_of_2(n)))


def play(engine: Any, draws: Any, start: Any, store: Any, *, look: bool) -> None:
    """`Lockstep.play`: one episode of all runs, from draws (3, H, B), states (B,) and what is stored (H, B)."""
    model, planner, explore = engine.model, engine.planner, engine.exploration
    block = triton.next_power_of_2(math.isqrt(model.S - 1) + 1)
    _play_kernel[(engine.B,)](
        draws,
        start,
        store,
        engine.theta,
        engine.mu_cdf,
        planner.storage.columns,
        planner.w,
        planner.storage.forms,
        explore.caps,
        explore.beta,
        engine.first,
        planner.ridge.pending,
        planner.ridge.u,
        planner.storage.N,
        engine.phi,
        engine.rewards,
        engine.looked,
        engine.extremes,
        engine.numbers,
        *draws.stride(),
        engine.B,
        model.S,
        model.H,
        model.A,
        model.d,
        max(2, triton.next_power_of_2(model.A)),
        max(2, triton.next_power_of_2(model.d)),
        block,
        triton.next_power_of_2(triton.cdiv(model.S, block)),
        look and model.A > 1,
        num_warps=WARPS,
    )


def evaluate(engine: Any, h: int, truth: Any, V: Any) -> None:
    """V^pi of step h, (B, S), of the policies of all runs, from r + P V as weights of the features, `truth` (B, d)."""
    model, storage, explore = engine.model, engine.planner.storage, engine.exploration
    runs, states, warps = TILES
    _value_kernel[(triton.cdiv(engine.B, runs), triton.cdiv(model.S, states))](
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
        engine.B,
        model.S,
        model.A,
        model.d,
        _padded(model.d),
        runs,
        states,
        num_warps=warps,
    )
