"""Many runs on one model at once: every product over the features serves all of them.

B runs that may differ in seed, beta, lambda and schedule advance together, step by step, so that the trip over the
feature rows becomes a true matrix product. Each run sees the random numbers that it would see alone.

On a GPU, runs that plan rarely do not wait for each other: a kernel plays up to ROUND episodes of each, fewer where its
schedule asks for a plan (the proxy moves within the kernel). Then those that asked are planned together, and all go on.
Runs may be up to LEAD episodes apart; features wait as long until they are added to Lambda. Each run plans in the
episodes in which it would plan alone.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from linmdp.agents.backend import NUMPY, Backend
from linmdp.agents.lsvi import LSVIAgent
from linmdp.agents.ridge import DELAY
from linmdp.envs.base import LinearModel
from linmdp.envs.planning import optimum
from linmdp.errors import InvalidData
from linmdp.runner.lockstep.engine import LEAD, Lockstep, Replay, Run
from linmdp.runner.measured import CurveLog, Stopwatch, build_result, diagnosed, probe_from
from linmdp.runner.progress import Advance, Meter, progress_bar, recent
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
        (acts, capped, tied), (least, largest) = host(engine.probed), host(engine.extremes)
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
                warnings=diagnosed(name, beta, self.episodes, saturated, ties, constant, int(acts[i]), idle),
            )
            found.append(result)
        return found


ROUND = 16
"""Episodes that a run plays at most before the host asks who has to plan."""

NEVER = 1 << 62


class Rounds:
    """Where the runs are, and what they have earned.

    Attributes
    ----------
    progress : (3, B) episodes played of this chunk; 1 where the run has to plan; 1 where `V` was asked for
    clock : (5,) episodes before this chunk and in it, ROUND, the first episode of the diagnostics, eval_every
    V : (2, B, S) V^pi of the policy that acts, and of the one that acted in the last episode of regret before it
    lost, earned : (LEAD, B) regret and reward of each episode
    """

    def __init__(self, engine: Lockstep, V_star: Any, episodes: int, eval_every: int) -> None:
        backend, B = engine.backend, engine.B
        self.engine, self.V_star = engine, V_star
        self.progress = backend.array(np.tile([[0], [1], [0]], (1, B)), "int64")
        probed_from = probe_from(episodes) if engine.model.A > 1 else NEVER
        self.clock = backend.array([0, 0, ROUND, probed_from, eval_every], "int64")
        self.V = backend.zeros((2, B, engine.model.S))
        self.lost, self.earned = backend.zeros((LEAD, B)), backend.zeros((LEAD, B))

    def begin(self, k: int, n: int) -> None:
        """The chunk of the n episodes from k on."""
        self.progress[0], self.clock[0], self.clock[1] = 0, k, n

    def plan(self, runs: IntArray, replay: Replay) -> None:
        """Plan all steps of those runs, and evaluate what they do from now on."""
        engine, planner, H = self.engine, self.engine.planner, self.engine.model.H
        mask = np.zeros((H, engine.B), dtype=np.bool_)
        mask[:, runs] = True
        planner.storage.kernels.renew(planner, engine.backend.array(np.flatnonzero(mask), "int64"))
        replay.plan(engine.backend.array(mask, "bool"), runs, whole=False)
        there, shown = engine.backend.array(runs, "int64"), self.progress[2] == 1
        self.V[1] = engine.backend.xp.where(shown[:, None], self.V[0], self.V[1])
        self.V[0] = replay.evaluate(runs)
        assert engine.joint is not None
        engine.joint.planned(there)
        self.progress[1:, there] = 0

    def finish(self) -> None:
        """All samples are in Lambda, and the memory in which they waited is given back."""
        ridge = self.engine.planner.ridge
        ridge.waiting, ridge.behind = ridge.waiting[..., :DELAY, :], np.ones_like(ridge.behind)


def play_in_rounds(
    engine: Lockstep, replay: Replay, ledger: Ledger, V_star: Any, eval_every: int, advance: Meter
) -> None:
    """All episodes of all runs."""
    from linmdp.runner.lockstep import kernels

    episodes, rounds = ledger.episodes, Rounds(engine, V_star, ledger.episodes, eval_every)
    for k in range(0, episodes, LEAD):
        n = min(LEAD, episodes - k)
        draws, starts = engine.draws(n, min(LEAD, episodes - k - n)), engine.all_starts(n)
        rounds.begin(k, n)
        while True:
            at, due, _ = engine.backend.host(rounds.progress)
            if (at == n).all():
                break
            if len(runs := np.flatnonzero((due == 1) & (at < n))):
                ledger.planned(runs, k + at[runs])
                rounds.plan(runs, replay)
            kernels.play_on(engine, rounds, draws, starts)
        engine.planner.ridge.settle()
        ledger.played_all(rounds.lost[:n], rounds.earned[:n])
        advance(n, ledger.recent)
    rounds.finish()


DRAWN = 64
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
    replay, ledger, clock = Replay(engine), Ledger(engine, episodes), Stopwatch()
    V_star = backend.array(optimum(model).V[0])
    with clock, progress_bar("episodes", episodes, progress) as advance:
        if engine.in_rounds:
            play_in_rounds(engine, replay, ledger, V_star, eval_every, advance)
        else:
            _play_together(engine, replay, ledger, V_star, eval_every, clock, advance)
    results = ledger.results(env, eval_every, clock)
    if on_agent:
        for i, result in enumerate(results):
            result.warnings += on_agent(i, engine.agent(i, (result.switches, result.updates, result.resets)))
    return results


def _play_together(
    engine: Lockstep, replay: Replay, ledger: Ledger, V_star: Any, eval_every: int, clock: Stopwatch, advance: Meter
) -> None:
    """All episodes, each of all runs."""
    episodes, gap, replanned = ledger.episodes, engine.backend.zeros((engine.B, engine.model.S)), False
    for k in range(episodes):
        if k % DRAWN == 0:
            left = episodes - k  # drawn while a GPU still works on the chunk before
            draws = engine.draws(min(DRAWN, left), min(DRAWN, max(0, left - DRAWN)))
            ledger.collect()
        reset, plan, store = engine.decide()
        (there, whole), (stored, all_stored) = engine.mask(plan), engine.mask(store)
        ledger.decided(k, reset, plan)
        if reset.any():
            engine.planner.drop_samples(reset)
        if plan.any() or store.any():
            engine.planner.prepare(plan, store, there)
        if plan.any():
            replay.plan(there, np.flatnonzero(plan.any(axis=0)), whole=whole)
        replanned |= bool(plan.any())
        if replanned and k % eval_every == 0:
            with clock.paused():
                gap, replanned = V_star - replay.evaluate(), False
        start = engine.starts(gap)
        replay.play(draws[k % DRAWN], start, stored, whole=all_stored, probing=k >= probe_from(episodes))
        engine.watch()
        ledger.played(gap[engine.runs, start], engine.rewards + 0.0)
        advance(1, ledger.recent)
    ledger.collect()
