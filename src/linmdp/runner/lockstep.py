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
from linmdp.errors import InvalidData
from linmdp.runner.curve_log import CurveLog
from linmdp.runner.diagnostics import probe_from, verdicts
from linmdp.runner.engine import Lockstep, Run
from linmdp.runner.measured import build_result
from linmdp.runner.progress import Advance, progress_bar, recent
from linmdp.runner.recorder import Recorder
from linmdp.runner.stopwatch import Stopwatch
from linmdp.types import BoolArray, RunResult

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
    V_star, gap = backend.array(optimum(model).V[0]), backend.zeros((engine.B, model.S))
    replanned = False
    with clock, progress_bar("episodes", episodes, progress) as advance:
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
    results = ledger.results(env, eval_every, clock)
    if on_agent:
        for i, result in enumerate(results):
            result.warnings += on_agent(i, engine.agent(i, (result.switches, result.updates, result.resets)))
    return results


class Ledger:
    """What is noted of all runs: what they earned and lost, regressions solved, resets, plannings."""

    def __init__(self, engine: Lockstep, episodes: int) -> None:
        self.engine, self.episodes = engine, episodes
        self.log = CurveLog(episodes, (engine.B,))
        self.updates, self.resets, self.switches = np.zeros((3, engine.B), dtype=np.int64)
        self.late, self.late_resets = np.zeros((2, engine.B), dtype=np.int64)
        self._held: list[tuple[Any, Any]] = []

    def decided(self, k: int, reset: BoolArray, plan: BoolArray) -> None:
        """Which runs reset, (B,), and which regressions are planned, (G, B); `late` counts those of the last tenth."""
        self.resets += reset
        if k >= probe_from(self.episodes):
            self.late_resets += reset
        if not plan.any():
            return
        solved = plan.sum(axis=0) * (self.engine.model.H if self.engine.horizon.shared else 1)
        self.updates += solved
        self.switches += plan.any(axis=0)
        if k >= probe_from(self.episodes):
            self.late += solved

    def played(self, lost: Any, earned: Any) -> None:
        """Regret and reward of an episode, (B,) each; held where they are, since looking waits for a GPU."""
        self._held.append((lost, earned))

    def collect(self) -> None:
        """Bring in what is held."""
        if not self._held:
            return
        backend = self.engine.backend
        lost, earned = (backend.host(backend.xp.stack(held)) for held in zip(*self._held, strict=True))
        if not (finite := np.isfinite(lost).all(axis=1)).all():
            k = self.log.k + int(finite.argmin())
            raise InvalidData(f"Q is not a number in episode {k}: beta, lam or the features are too extreme.")
        for each in zip(earned, lost, strict=True):
            self.log.add(*each)
        self._held.clear()

    def recent(self) -> str:
        """How the last episodes went, for a progress bar; what a GPU still computes is not waited for."""
        if self.engine.backend.is_numpy:
            self.collect()
        return recent(*self.log.last())

    def results(self, env: str, eval_every: int, clock: Stopwatch) -> list[RunResult]:
        """One result per run."""
        engine, host = self.engine, self.engine.backend.host
        (acts, capped, tied), (least, largest) = host(engine.looked), host(engine.extremes)
        drift, A = host(engine.planner.ridge.drift()), engine.model.A
        found = []
        for i, s in enumerate(engine.settings):
            s.agent.note_choice(engine.planner, i)
            seen = max(acts[i], 1)
            saturated, ties = float(capped[i] / (seen * A)), float(tied[i] / seen)
            constant = int(least[i]) if least[i] == largest[i] and A > 1 else None
            name, beta = s.agent.name, s.agent.beta_value
            idle = s.agent.may_stop_learning and bool(
                self.late[i] == 0 and self.late_resets[i] < self.episodes - probe_from(self.episodes)
            )
            result = build_result(
                env=env,
                agent=s.spec,
                params=s.agent.get_params(),
                chosen=dict(s.agent.chosen),
                seed=s.seed,
                eval_every=eval_every,
                episodes=self.episodes,
                gaps=self.log.gaps[:, i],
                rewards=self.log.rewards[:, i].copy(),
                peak_bytes=s.agent.nbytes,
                feature_bytes=engine.model.features.nbytes,
                clock=clock,
                runs=engine.B,
                updates=int(self.updates[i]),
                resets=int(self.resets[i]),
                switches=int(self.switches[i]),
                saturated=saturated,
                tied=ties,
                drift=float(drift[i]),
                warnings=verdicts(name, beta, self.episodes, saturated, ties, constant, int(acts[i]), idle),
            )
            found.append(result)
        return found
