"""Many runs on one model at once: every product over the features serves all of them.

B runs that may differ in seed, beta, lambda and schedule advance together, step by step, so that the trip over the
feature rows becomes a true matrix product. Each run sees the random numbers that it would see alone.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from linmdp.agents.backend import NUMPY, Backend
from linmdp.agents.lsvi import LSVIAgent
from linmdp.envs.base import LinearModel
from linmdp.envs.planning import optimum
from linmdp.runner.diagnostics import probe_from
from linmdp.runner.lockstep.apart import play_apart
from linmdp.runner.lockstep.engine import Lockstep, Run
from linmdp.runner.lockstep.ledger import Ledger
from linmdp.runner.lockstep.recorder import Recorder
from linmdp.runner.progress import Advance, Meter, progress_bar
from linmdp.runner.stopwatch import Stopwatch
from linmdp.types import RunResult

CHUNK = 64
"""Episodes whose random numbers are drawn at once, and after which a GPU is waited for."""


def run_lockstep(
    model: LinearModel,
    runs: Sequence[Run],
    *,
    env: str,
    episodes: int,
    eval_every: int = 1,
    backend: Backend = NUMPY,
    progress: bool | Advance = False,
    on_agent: Callable[[int, LSVIAgent], list[str]] | None = None,
) -> list[RunResult]:
    """All runs, each as `linmdp.run` would give it (to rounding); times are the batch's, shared equally.

    `on_agent` gets the agent of each run at its end, and returns warnings.
    """
    engine = Lockstep(model, runs, backend)
    recorder, ledger, clock = Recorder(engine), Ledger(engine, episodes), Stopwatch()
    V_star = backend.array(optimum(model).V[0])
    with clock, progress_bar("episodes", episodes, progress) as advance:
        if engine.apart:
            play_apart(engine, recorder, ledger, V_star, eval_every, advance)
        else:
            _play_together(engine, recorder, ledger, V_star, eval_every, clock, advance)
    results = ledger.results(env, eval_every, clock)
    if on_agent:
        for i, result in enumerate(results):
            result.warnings += on_agent(i, engine.agent(i, (result.switches, result.updates, result.resets)))
    return results


def _play_together(
    engine: Lockstep, recorder: Recorder, ledger: Ledger, V_star: Any, eval_every: int, clock: Stopwatch, advance: Meter
) -> None:
    """All episodes, each of all runs."""
    episodes, gap, replanned = ledger.episodes, engine.backend.zeros((engine.B, engine.model.S)), False
    for k in range(episodes):
        if k % CHUNK == 0:
            left = episodes - k  # drawn while a GPU still works on the chunk before
            draws = engine.draws(min(CHUNK, left), min(CHUNK, max(0, left - CHUNK)))
            ledger.collect()
        reset, plan, store = engine.decide()
        (there, whole), (stored, all_stored) = engine.mask(plan), engine.mask(store)
        ledger.decided(k, reset, plan)
        if reset.any():
            engine.planner.drop_samples(reset)
        if plan.any() or store.any():
            engine.planner.prepare(plan, store, there)
        if plan.any():
            recorder.plan(there, np.flatnonzero(plan.any(axis=0)), whole=whole)
        replanned |= bool(plan.any())
        if replanned and k % eval_every == 0:
            with clock.paused():
                gap, replanned = V_star - recorder.evaluate(), False
        start = engine.starts(gap)
        recorder.play(draws[k % CHUNK], start, stored, whole=all_stored, look=k >= probe_from(episodes))
        engine.watch()
        ledger.played(gap[engine.runs, start], engine.rewards + 0.0)
        advance(1, ledger.recent)
    ledger.collect()
