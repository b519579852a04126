"""Runs on a GPU that plan rarely: each plays on until it has to plan, and does not wait for the others.

In lockstep the host asks in every episode who plans, and all wait for those who do. But runs do not meet: here a kernel
plays up to ROUND episodes of each run, fewer where its schedule asks for a plan (the proxy moves within the kernel).
Then those that asked are planned together, and all go on. Runs may be up to CHUNK episodes apart; features wait as long
until they are added to Lambda. Each run plans in the episodes in which it would plan alone.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from linmdp.agents.ridge import DELAY
from linmdp.runner.diagnostics import probe_from
from linmdp.runner.lockstep.engine import CHUNK, Lockstep
from linmdp.runner.lockstep.ledger import Ledger
from linmdp.runner.lockstep.recorder import Recorder
from linmdp.runner.progress import Meter
from linmdp.types import IntArray

ROUND = 16
"""Episodes that a run plays at most before the host asks who has to plan."""

NEVER = 1 << 62


class Apart:
    """Where the runs are, and what they have earned.

    Attributes
    ----------
    progress : (3, B) episodes played of this chunk; 1 where the run has to plan; 1 where `V` was asked for
    clock : (5,) episodes before this chunk and in it, ROUND, the first episode of the diagnostics, eval_every
    V : (2, B, S) V^pi of the policy that acts, and of the one that acted in the last episode of regret before it
    lost, earned : (CHUNK, B) regret and reward of each episode
    """

    def __init__(self, engine: Lockstep, V_star: Any, episodes: int, eval_every: int) -> None:
        backend, B = engine.backend, engine.B
        self.engine, self.V_star = engine, V_star
        self.progress = backend.array(np.tile([[0], [1], [0]], (1, B)), "int64")
        look_from = probe_from(episodes) if engine.model.A > 1 else NEVER
        self.clock = backend.array([0, 0, ROUND, look_from, eval_every], "int64")
        self.V = backend.zeros((2, B, engine.model.S))
        self.lost, self.earned = backend.zeros((CHUNK, B)), backend.zeros((CHUNK, B))

    def begin(self, k: int, n: int) -> None:
        """The chunk of the n episodes from k on."""
        self.progress[0], self.clock[0], self.clock[1] = 0, k, n

    def plan(self, runs: IntArray, recorder: Recorder) -> None:
        """Plan all steps of those runs, and evaluate what they do from now on."""
        engine, planner, H = self.engine, self.engine.planner, self.engine.model.H
        mask = np.zeros((H, engine.B), dtype=np.bool_)
        mask[:, runs] = True
        planner.storage.kernels.renew(planner, engine.backend.array(np.flatnonzero(mask), "int64"))
        recorder.plan(engine.backend.array(mask, "bool"), runs, whole=False)
        there, shown = engine.backend.array(runs, "int64"), self.progress[2] == 1
        self.V[1] = engine.backend.xp.where(shown[:, None], self.V[0], self.V[1])
        self.V[0] = recorder.evaluate(runs)
        assert engine.joint is not None
        engine.joint.planned(there)
        self.progress[1:, there] = 0

    def finish(self) -> None:
        """All samples are in Lambda, and the room in which they waited is given back."""
        ridge = self.engine.planner.ridge
        ridge.waiting, ridge.behind = ridge.waiting[..., :DELAY, :], np.ones_like(ridge.behind)


def play_apart(
    engine: Lockstep, recorder: Recorder, ledger: Ledger, V_star: Any, eval_every: int, advance: Meter
) -> None:
    """All episodes of all runs."""
    from linmdp.runner.lockstep import kernels

    episodes, apart = ledger.episodes, Apart(engine, V_star, ledger.episodes, eval_every)
    for k in range(0, episodes, CHUNK):
        n = min(CHUNK, episodes - k)
        draws, starts = engine.draws(n, min(CHUNK, episodes - k - n)), engine.all_starts(n)
        apart.begin(k, n)
        while True:
            at, due, _ = engine.backend.host(apart.progress)
            if (at == n).all():
                break
            if len(runs := np.flatnonzero((due == 1) & (at < n))):
                ledger.planned(runs, k + at[runs])
                apart.plan(runs, recorder)
            kernels.play_on(engine, apart, draws, starts)
        engine.planner.ridge.settle()
        ledger.played_all(apart.lost[:n], apart.earned[:n])
        advance(n, ledger.recent)
    apart.finish()
