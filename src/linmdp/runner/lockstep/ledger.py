"""What is noted of runs in lockstep, from which their results are made."""

from __future__ import annotations

from typing import Any

import numpy as np

from linmdp.errors import InvalidData
from linmdp.runner.curve_log import CurveLog
from linmdp.runner.diagnostics import probe_from, verdicts
from linmdp.runner.lockstep.engine import Lockstep
from linmdp.runner.measured import build_result
from linmdp.runner.progress import recent
from linmdp.runner.stopwatch import Stopwatch
from linmdp.types import BoolArray, IntArray, RunResult


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

    def planned(self, runs: IntArray, episodes: IntArray) -> None:
        """All steps of those runs (n,) are planned, each in its own episode (n,)."""
        H = self.engine.model.H
        self.updates[runs] += H
        self.switches[runs] += 1
        self.late[runs] += H * (episodes >= probe_from(self.episodes))

    def played(self, lost: Any, earned: Any) -> None:
        """Regret and reward of an episode, (B,) each; held where they are, since looking waits for a GPU."""
        self._held.append((lost, earned))

    def collect(self) -> None:
        """Bring in what is held."""
        if self._held:
            self.played_all(*(self.engine.backend.xp.stack(held) for held in zip(*self._held, strict=True)))
            self._held.clear()

    def played_all(self, lost: Any, earned: Any) -> None:
        """Regret and reward of some episodes, (n, B) each."""
        lost, earned = self.engine.backend.host(lost), self.engine.backend.host(earned)
        if not (finite := np.isfinite(lost).all(axis=1)).all():
            k = self.log.k + int(finite.argmin())
            raise InvalidData(f"Q is not a number in episode {k}: beta, lam or the features are too extreme.")
        for each in zip(earned, lost, strict=True):
            self.log.add(*each)

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
                interactions=self.episodes * engine.model.H,
                drift=float(drift[i]),
                warnings=verdicts(name, beta, self.episodes, saturated, ties, constant, int(acts[i]), idle),
            )
            found.append(result)
        return found
