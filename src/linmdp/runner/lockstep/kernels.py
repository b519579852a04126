"""Episodes, and the exact values of policies, as GPU kernels (Triton). The same formulas as in `engine.py`.

Runs do not meet while they play: one program plays all H steps of one run, so that an episode is one kernel.
Kernels take tuples: `plans` is what an episode is played with (`_plans`), and SIZES are `_sizes`.
"""

# mypy: disable-error-code="no-untyped-def,untyped-decorator"

from __future__ import annotations

import math
from typing import Any

import triton
import triton.language as tl

from linmdp.agents.kernels import padded

WARPS = 1
"""Of a program that plays: its sums are short, and warps would have to wait for each other."""


@triton.jit
def _episode(
    run, state, draws_ptr, phi_ptr, phi_stride, proxy, plans, purpose_stride, step_stride, B, H, SIZES: tl.constexpr,
    WATCHED: tl.constexpr,
):  # fmt: skip
    """H steps of one run from `state`: the sum of rewards, Q at the cap, ties, least and largest action.

    WATCHED: the `proxy` of a schedule follows, too (L^-1, and what its determinant has grown by), and the last number
    is the most of that; otherwise features go into `pending`, which stands in its place.
    """
    theta_ptr, cdf_ptr, F_ptr, w_ptr, forms_ptr, caps_ptr, beta_ptr, first_ptr, u_ptr, N_ptr, numbers_ptr, store_ptr = (
        plans
    )
    pending_ptr, L_inv_ptr, grown_ptr = proxy[0], proxy[0], proxy[1]
    S: tl.constexpr = SIZES[0]
    A: tl.constexpr = SIZES[1]
    D: tl.constexpr = SIZES[2]
    A_PADDED: tl.constexpr = SIZES[3]
    D_PADDED: tl.constexpr = SIZES[4]
    BLOCK: tl.constexpr = SIZES[5]
    BLOCKS_PADDED: tl.constexpr = SIZES[6]
    k, a = tl.arange(0, D_PADDED), tl.arange(0, A_PADDED)
    k_ok, a_ok = k < D, a < A
    first = tl.load(first_ptr + run)
    blocks, block = tl.arange(0, BLOCKS_PADDED), tl.arange(0, BLOCK)
    ends = tl.minimum(blocks * BLOCK + (BLOCK - 1), S - 1)
    noise, low = tl.load(numbers_ptr), tl.load(numbers_ptr + 1)
    high, tie = tl.load(numbers_ptr + 2), tl.load(numbers_ptr + 3)
    total, capped, ties = tl.full((), 0.0, tl.float64), 0, 0
    least, largest = tl.full((), A, tl.int32), tl.full((), -1, tl.int32)
    most = tl.full((), 0.0, tl.float64)
    for h in range(H):
        at = h * B + run
        entry, draw = at * D + k, draws_ptr + h * step_stride
        # whatever can be on its way before the state is known
        shock, level, tie_draw = tl.load(draw), tl.load(draw + purpose_stride), tl.load(draw + 2 * purpose_stride)
        theta = tl.load(theta_ptr + h * D + k, mask=k_ok, other=0.0)
        stored, beta = tl.load(store_ptr + at).to(tl.float64), tl.load(beta_ptr + at)
        if WATCHED:
            cells, square = at * D * D + k[:, None] * D + k[None, :], k_ok[:, None] & k_ok[None, :]
            L_inv = tl.load(L_inv_ptr + cells, mask=square, other=0.0)
            grown = tl.load(grown_ptr + at)
        columns = k[:, None] * (A * S) + a[None, :] * S + state
        cdf = cdf_ptr + (h * D + k).to(tl.int64) * S
        outline = tl.load(cdf[:, None] + ends[None, :], mask=k_ok[:, None], other=0.0)
        F = tl.load(F_ptr + columns, mask=k_ok[:, None] & a_ok[None, :], other=0.0).to(tl.float64)
        w = tl.load(w_ptr + entry, mask=k_ok, other=0.0)
        forms = tl.load(forms_ptr + at * (A * S) + a * S + state, mask=a_ok, other=0.0).to(tl.float64)
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
        tl.store(phi_ptr + at * phi_stride + k, phi, mask=k_ok)
        tl.atomic_add(u_ptr + entry, learned * reward, mask=k_ok, sem="relaxed")
        counted = learned.to(N_ptr.dtype.element_ty)
        tl.atomic_add(N_ptr + entry * S + following, counted, mask=k_ok & (h < H - 1), sem="relaxed")
        if WATCHED:  # det L grows by c: see RareSwitch
            x = tl.sum(L_inv * phi[None, :], 1)
            c = 1.0 + tl.sum(phi * x, 0)
            v = x / tl.sqrt(c)
            tl.store(L_inv_ptr + cells, L_inv - v[:, None] * v[None, :], mask=square)
            grown += tl.log(c)
            tl.store(grown_ptr + at, grown)
            most = tl.maximum(most, grown)
        else:
            tl.atomic_add(pending_ptr + entry, learned, mask=k_ok, sem="relaxed")
        total += reward
        capped += tl.sum((a_ok & (q >= cap - tie)).to(tl.int32), 0)
        ties += (count > 1).to(tl.int32)
        least, largest = tl.minimum(least, action), tl.maximum(largest, action)
        state = following.to(tl.int64)
    return total, capped, ties, least, largest, most


@triton.jit
def _looked(seen, run, B, acts, capped, ties, least, largest):
    """Add to the diagnostics of a run: acts, Q at the cap and ties; least and largest action."""
    probed, extremes = seen[0] + run, seen[1] + run
    tl.store(probed, tl.load(probed) + acts)
    tl.store(probed + B, tl.load(probed + B) + capped)
    tl.store(probed + 2 * B, tl.load(probed + 2 * B) + ties)
    tl.store(extremes, tl.minimum(tl.load(extremes), least))
    tl.store(extremes + B, tl.maximum(tl.load(extremes + B), largest))


@triton.jit
def _play_kernel(
    start_ptr, rewards_ptr, seen, draws_ptr, strides, phi_ptr, proxy, plans, B, H, SIZES: tl.constexpr,
    PROBING: tl.constexpr,
):  # fmt: skip
    run = tl.program_id(0).to(tl.int64)
    purpose_stride, step_stride, run_stride = strides
    total, capped, ties, least, largest, _ = _episode(
        run, tl.load(start_ptr + run), draws_ptr + run * run_stride, phi_ptr, SIZES[2], proxy, plans,
        purpose_stride, step_stride, B, H, SIZES, False,
    )  # fmt: skip
    tl.store(rewards_ptr + run, total)
    if PROBING:
        _looked(seen, run, B, H, capped, ties, least, largest)


@triton.jit(do_not_specialize=["episode_stride", "run_stride", "purpose_stride", "step_stride"])
def _play_on_kernel(
    rounds, start_ptr, seen, draws_ptr, episode_stride, purpose_stride, step_stride, run_stride, waiting_ptr, SLOTS,
    proxy, plans, B, H, SIZES: tl.constexpr,
):  # fmt: skip
    """`rounds` is what `play_on` gives: where runs are, the values that they lose against, and what they earn."""
    progress_ptr, clock_ptr, log_eta_ptr, V_star_ptr, V_ptr, lost_ptr, rewards_ptr = rounds
    S: tl.constexpr = SIZES[0]
    A: tl.constexpr = SIZES[1]
    D: tl.constexpr = SIZES[2]
    run = tl.program_id(0).to(tl.int64)
    at, due = tl.load(progress_ptr + run), tl.load(progress_ptr + B + run)
    shown = tl.load(progress_ptr + 2 * B + run)
    base, n, longest = tl.load(clock_ptr), tl.load(clock_ptr + 1), tl.load(clock_ptr + 2)
    probed_from, eval_every = tl.load(clock_ptr + 3), tl.load(clock_ptr + 4)
    log_eta, end = tl.load(log_eta_ptr + run), tl.minimum(n, at + longest)
    acts, all_capped, all_ties = 0, 0, 0
    first_action, last_action = tl.full((), A, tl.int32), tl.full((), -1, tl.int32)
    while (at < end) & (due == 0):
        state, place = tl.load(start_ptr + at * B + run), at * B + run
        shown = tl.where((base + at) % eval_every == 0, 1, shown)
        value = tl.load(V_ptr + ((1 - shown) * B + run) * S + state)
        tl.store(lost_ptr + place, tl.load(V_star_ptr + state) - value)
        draws = draws_ptr + at * episode_stride + run * run_stride
        total, capped, ties, least, largest, most = _episode(
            run, state, draws, waiting_ptr + at * D, SLOTS * D, proxy, plans, purpose_stride, step_stride, B, H, SIZES,
            True,
        )  # fmt: skip
        tl.store(rewards_ptr + place, total)
        probing = base + at >= probed_from
        acts += tl.where(probing, H, 0)
        all_capped += tl.where(probing, capped, 0)
        all_ties += tl.where(probing, ties, 0)
        first_action = tl.where(probing, tl.minimum(first_action, least), first_action)
        last_action = tl.where(probing, tl.maximum(last_action, largest), last_action)
        due = (most > log_eta).to(tl.int64)
        at += 1
        tl.debug_barrier()  # the next episode reads what this one wrote of the proxy
    _looked(seen, run, B, acts, all_capped, all_ties, first_action, last_action)
    tl.store(progress_ptr + run, at)
    tl.store(progress_ptr + B + run, due)
    tl.store(progress_ptr + 2 * B + run, shown)


def _plans(engine: Any, store: Any) -> tuple[Any, ...]:
    """The model, the plans that an episode is played with, the sums that it adds to, and what is stored, (H, B)."""
    planner, explore = engine.planner, engine.exploration
    plans = (planner.storage.columns, planner.w, planner.storage.forms, explore.caps, explore.beta, engine.first)
    return engine.theta, engine.mu_cdf, *plans, planner.ridge.u, planner.storage.N, engine.numbers, store


def _sizes(model: Any) -> tuple[int, ...]:
    """S, A, d, and what they are padded to."""
    block = triton.next_power_of_2(math.isqrt(model.S - 1) + 1)
    padded = (max(2, triton.next_power_of_2(n)) for n in (model.A, model.d))
    return model.S, model.A, model.d, *padded, block, triton.next_power_of_2(triton.cdiv(model.S, block))


def play(engine: Any, draws: Any, start: Any, store: Any, *, probing: bool) -> None:
    """`Lockstep.play`: one episode of all runs, from draws (3, H, B), states (B,) and what is stored (H, B)."""
    model, pending = engine.model, engine.planner.ridge.pending
    seen, plans, probing = (engine.probed, engine.extremes), _plans(engine, store), probing and model.A > 1
    out = start, engine.rewards, seen, draws, draws.stride(), engine.phi, (pending, pending), plans
    _play_kernel[(engine.B,)](*out, engine.B, model.H, _sizes(model), probing, num_warps=WARPS)


def play_on(engine: Any, rounds: Any, draws: Any, start: Any) -> None:
    """Some episodes of each run, up to the one before which it has to plan: see `run.py`.

    From draws (n, 3, H, B) and states (n, B).
    """
    model, waiting, schedule = engine.model, engine.planner.ridge.waiting, engine.joint
    values = rounds.V_star, rounds.V, rounds.lost, rounds.earned
    runs = (rounds.progress, rounds.clock, schedule.log_eta, *values), start, (engine.probed, engine.extremes)
    fixed = waiting, waiting.shape[-2], (schedule.L_inv, schedule.grown), _plans(engine, engine.everything_there)
    _play_on_kernel[(engine.B,)](
        *runs, draws, *draws.stride(), *fixed, engine.B, model.H, _sizes(model), num_warps=WARPS
    )


VALUE_TILES = (16, 32, 4)
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
    plans, truth_ptr, rows_ptr, V_ptr, runs_ptr, n, SIZES: tl.constexpr, RUNS: tl.constexpr, STATES: tl.constexpr
):
    """V^pi of a tile of `runs` and states, from r + P V as weights of the features; `plans` are those of one step."""
    w_ptr, forms_ptr, F_ptr, beta_ptr, cap_ptr, first_ptr, numbers_ptr = plans
    S: tl.constexpr = SIZES[0]
    A: tl.constexpr = SIZES[1]
    D: tl.constexpr = SIZES[2]
    D_PADDED: tl.constexpr = SIZES[3]
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
    own = engine.planner.w[h], storage.forms[h], storage.columns, explore.beta[h], explore.caps[h]
    plans, sizes = (*own, engine.first, engine.numbers), (model.S, model.A, model.d, padded(model.d))
    tile, states, warps = VALUE_TILES
    grid = triton.cdiv(len(runs), tile), triton.cdiv(model.S, states)
    _value_kernel[grid](plans, truth, engine.columns, V, runs, len(runs), sizes, tile, states, num_warps=warps)
