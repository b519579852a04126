"""B runs of LSVI on one model, as arrays with an axis for the runs; NumPy or torch, whose episodes are CUDA graphs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, NamedTuple, cast

import numpy as np

from linmdp.agents.backend import NUMPY, Backend
from linmdp.agents.lsvi import LSVIAgent
from linmdp.agents.memory.table import Counts
from linmdp.agents.planner import LockstepSetting, Planner
from linmdp.agents.ridge import DELAY
from linmdp.agents.schedules.base import Always
from linmdp.envs.base import Chance, LinearModel
from linmdp.envs.planning import backup
from linmdp.features.tabular import TableFeatures
from linmdp.types import Array, BoolArray, IntArray

LEAD = 128
"""Episodes that runs which do not wait for each other may be apart: see `run.py`."""

THREADS = 4
"""Draw random numbers while a GPU works."""


class Run(NamedTuple):
    """One of the runs: what its agent hands over, the spec that it was made of, and its seed."""

    setting: LockstepSetting
    spec: str
    seed: int

    @property
    def agent(self) -> LSVIAgent:
        """An agent of this setting, which has not begun."""
        return self.setting.agent


class Lockstep:
    """B runs of LSVI with counts, as arrays with an axis for the runs."""

    def __init__(self, model: LinearModel, runs: Sequence[Run], backend: Backend = NUMPY) -> None:
        B, H, first = len(runs), model.H, runs[0].agent
        self.model, self.settings, self.backend, self.B, self.horizon = model, runs, backend, B, first.horizon
        self.schedules = [run.setting.schedule for run in runs]
        self.always = all(type(s) is Always for s in self.schedules)
        kind = type(self.schedules[0])
        alike = all(type(s) is kind for s in self.schedules) and not first.horizon.shared
        self.joint = kind.joined(self.schedules, backend) if alike and kind.joins else None
        beta, lam = (np.array([getattr(run.setting, name) for run in runs]) for name in ("beta", "lam"))
        self.exploration = first.make_exploration(np.tile(beta, (H, 1)), backend)
        # there are kernels, the schedule can be asked on the GPU, and no start depends on regret
        rounds = alike and kind.by_growth and self.exploration.plain and model.start != "adversarial"
        self.in_rounds = rounds and backend.kernels(model.d, model.A) is not None
        self.planner: Any = Planner(
            first.horizon,
            model.d,
            lam=lam,
            exploration=self.exploration,
            make_storage=lambda parts: Counts(
                parts, cast(TableFeatures, model.features), first.dtype, batch=(B,), backend=backend
            ),
            batch=(B,),
            backend=backend,
            delay=LEAD if self.in_rounds else DELAY,
        )
        self.columns, self.theta = backend.array(model.features.columns), backend.array(model.theta)
        self.mu, self.mu_cdf = backend.array(model.mu), backend.array(model.mu_cdf)
        self.low, self.high = (backend.array(bound) for bound in model.reward_range)
        self.first = backend.array([run.setting.ties == "first" for run in runs], "bool")
        self.any_first = any(run.setting.ties == "first" for run in runs)

        seeds = [np.random.SeedSequence(run.seed).spawn(2) for run in runs]
        self._chance = [Chance(np.random.default_rng(int(env.generate_state(1)[0]))) for env, _ in seeds]
        self._ties = [np.random.default_rng(agent) for _, agent in seeds]
        self.exploration.seed(self._ties)
        for schedule, rng in zip(self.schedules, self._ties, strict=True):
            schedule.seed(rng)
        self._side = ThreadPoolExecutor(THREADS)
        self._ahead: tuple[Any, list[Future[None]]] | None = None
        self._nobody, self._everything = np.zeros(B, dtype=np.bool_), np.ones((first.horizon.groups, B), dtype=np.bool_)
        self.everything_there = backend.array(self._everything, "bool")
        self._zeros = backend.zeros((B,), "int64")
        self.runs = backend.array(np.arange(B), "int64")
        self._step = backend.fused(self._take_step)
        self.phi, self.earned = backend.zeros((H, B, model.d)), backend.zeros((H, B))  # in the episode, step by step
        self.rewards, self.V = backend.zeros((B,)), backend.zeros((B, model.S))
        self.numbers = backend.array([model.noise, *model.reward_range, self.exploration.tie])
        self.probed = backend.zeros((3, B))  # acts, values at the cap, ties
        self.extremes = backend.array(np.tile([[model.A], [-1]], (1, B)), "int64")  # least and largest action

    def agent(self, i: int, counters: Sequence[int]) -> LSVIAgent:
        """The agent of run i after an episode, as it would be had it run alone."""
        if self.joint is not None:
            self.schedules[i].take_run(self.joint, i)
        plain, make = self.settings[i].agent, cast(Any, type(self.settings[i].agent))
        agent: LSVIAgent = make(plain.task, **plain.get_params())
        agent.become(self.planner, i, self.schedules[i], self._ties[i], counters)
        return agent

    def draws(self, n: int, following: int = 0) -> Any:
        """Noise, moves and tie-breaks of the next n episodes, (n, 3, H, B).

        Those of the `following` ones are drawn at the side, where this process does nothing but drive a GPU.
        """
        if self.backend.is_numpy:
            every = self.backend.staged((self.B, 3, n, self.model.H))
            self._draw(every, slice(None))
            return np.ascontiguousarray(every.transpose(2, 1, 3, 0))
        staged, drawn = self._ahead or self._drawn(n)
        for part in drawn:
            part.result()
        self._ahead = self._drawn(following) if following else None
        return self.backend.sent(staged).permute(2, 1, 3, 0)

    def _drawn(self, n: int) -> tuple[Any, list[Future[None]]]:
        """Space for the draws of n episodes, and the threads that fill it."""
        staged, size = self.backend.staged((self.B, 3, n, self.model.H)), -(-self.B // THREADS)
        parts = [slice(i, i + size) for i in range(0, self.B, size)]
        return staged, [self._side.submit(self._draw, staged.numpy(), part) for part in parts]

    def _draw(self, every: Array, part: slice) -> None:
        """Fill in the draws of some runs; each has generators of its own."""
        n, H = every.shape[-2:]
        for mine, chance, ties in zip(every[part], self._chance[part], self._ties[part], strict=True):
            mine[0], mine[1] = chance.episodes(n, H)
            mine[2] = ties.random((n, H))

    def decide(self) -> tuple[BoolArray, BoolArray, BoolArray]:
        """Which runs reset, (B,), and which regressions of which runs are planned and get samples, (G, B)."""
        if self.always:
            return self._nobody, self._everything, self._everything
        if self.joint is not None:
            reset, plan, store = self.joint.begin_episode()
            if (planned := plan.all(axis=0)).any():
                self.joint.planned(self.backend.array(np.flatnonzero(planned), "int64"))
            return reset, plan, store
        decisions = [schedule.begin_episode() for schedule in self.schedules]
        for schedule, decision in zip(self.schedules, decisions, strict=True):
            if decision.plan.all():
                schedule.planned()
        reset, plan, store = zip(*decisions, strict=True)
        return np.array(reset), np.stack(plan, axis=1), np.stack(store, axis=1)

    def mask(self, steps: BoolArray) -> tuple[Any, bool]:
        """`steps` as an array of the backend, and whether it holds everywhere."""
        whole = bool(steps.all())
        there = self.everything_there if whole else self.backend.array(np.ascontiguousarray(steps), "bool")
        return there, whole

    def play(self, draws: Any, start: Any, store: Any, *, whole: bool, probing: bool) -> None:
        """H steps of all runs from the states `start`, (B,); `probing` gathers the diagnostics of the last episodes."""
        model, state = self.model, start
        if self.planner.storage.kernels is not None:
            from linmdp.runner.lockstep import kernels

            kernels.play(self, draws, start, store, probing=probing)
            self._watch_together()
            return
        self.rewards[:] = 0.0
        explore, ridge, storage, shared = (
            self.exploration,
            self.planner.ridge,
            self.planner.storage,
            self.horizon.shared,
        )
        for h in range(model.H):
            g = self.horizon.group(h)
            action, following = self._step(
                explore.best(storage.q_values(h, state), axis=-1) if shared else storage.best[h],
                (None if shared else ridge.pending[g], ridge.u[g], storage.N[g] if g < len(storage.N) else None),
                state,
                draws[:, h],
                self.theta[h],
                self.mu_cdf[h],
                None if whole else store[g],
                self.phi[h],
                self.earned[h],
            )
            self.rewards += self.earned[h]
            if explore.adaptive:
                storage.followed(h, following, self.earned[h] - explore.offset, store[g] * 1.0)
            if probing:
                self._probe(h, state, action)
            state = following
        if shared:  # several samples of one regression
            ridge.add_together(0, self.phi if whole else self.phi * store[0][:, None])
        explore.seen_together(self.phi, self.earned, store)
        self._watch_together()

    def _watch_together(self) -> None:
        """Show this episode's features to a schedule that serves all runs, within what is recorded."""
        if self.joint is not None:
            self.joint.moved(self.phi)

    def _take_step(
        self,
        best: Any,
        samples: Any,
        state: Any,
        draws: Any,
        theta: Any,
        mu_cdf: Any,
        store: Any,
        phi_seen: Any,
        earned: Any,
    ) -> tuple[Any, Any]:
        """Act, move and remember in every run: actions (B,) and next states (B,). Arrays in, so that a GPU can fuse it.

        Among the best actions it is number floor(u * count), or the first; the next state is where the distribution
        function of s', which is linear in phi, passes the number drawn for it.
        """
        model, xp, (noise, moves, ties) = self.model, self.backend.xp, draws
        storage, (pending, u, N) = self.planner.storage, samples
        order = (best if best.ndim == 2 else best[self.runs, :, state]).cumsum(-1)
        pick = xp.floor(ties * order[:, -1])
        pick = pick * ~self.first if self.any_first else pick
        action = (order <= pick[:, None]).sum(-1)
        phi = self.columns[:, action * model.S + state].T
        reward = xp.minimum(xp.maximum(phi @ theta + model.noise * noise, self.low), self.high)  # faster than clip
        cdf = phi @ mu_cdf
        following = (cdf[:, :-1] <= (moves * cdf[:, -1])[:, None]).sum(-1)
        phi_seen[...], earned[...] = phi, reward
        learned = phi if store is None else phi * store[:, None]
        u += learned * (reward - self.exploration.offset)[:, None]
        if pending is not None:  # it is zero where a sample comes
            pending += learned
        if N is not None:  # nothing follows the last step
            storage.count(N, learned, following)
        return action, following

    def _probe(self, h: int, state: Any, action: Any) -> None:
        if self.model.A == 1:  # nothing to choose
            return
        xp, q = self.backend.xp, self.planner.storage.q_values(h, state)
        self.probed[0] += 1
        top = 0.0 if self.exploration.adaptive else self.exploration.caps[h]
        self.probed[1] += (q >= top - self.exploration.tie).sum(-1)
        self.probed[2] += self.exploration.best(q, axis=-1).sum(-1) > 1
        self.extremes[0] = xp.minimum(self.extremes[0], action)
        self.extremes[1] = xp.maximum(self.extremes[1], action)

    def evaluate(self, runs: Any = None) -> None:
        """Let V be V^pi at the first step of the policy of each run, (B, S), exact; kernels do it for `runs` (n,)."""
        if self.planner.storage.kernels is not None:
            self._evaluate_runs(self.runs if runs is None else runs)
            return
        self.V[:] = 0.0
        for h in reversed(range(self.model.H)):
            best = self.planner.storage.best_table(h)
            if self.any_first:
                best = best & ((best.cumsum(-2) == 1) | ~self.first[:, None, None])
            q = backup(self.theta[h], self.mu[h], self.columns, self.V).reshape(best.shape)
            self.V[:] = (q * best).sum(-2) / best.sum(-2)

    def _evaluate_runs(self, runs: Any) -> None:
        from linmdp.runner.lockstep.kernels import evaluate

        following = self.V.new_zeros((len(runs), self.model.S))
        for h in reversed(range(self.model.H)):
            evaluate(self, h, following @ self.mu[h].T + self.theta[h], self.V, runs)
            following = self.V[runs.clamp(0)]  # a run of -1 is none

    def watch(self) -> None:
        """Show this episode's features to the schedules that read them."""
        if self.always or self.joint is not None:
            return
        phi, earned = self.backend.host(self.phi), self.backend.host(self.rewards)
        for i, schedule in enumerate(self.schedules):
            schedule.watch_all(phi[:, i])
            schedule.end_episode(float(earned[i]))

    def all_starts(self, n: int) -> Any:
        """The first states of the next n episodes, (n, B), where they do not depend on what was learned."""
        return self.backend.xp.stack([self.starts(None) for _ in range(n)])

    def starts(self, gap: Any) -> Any:
        """The first state of each run, (B,)."""
        if self.model.start == "uniform":
            states = [chance.start(self.model.S) for chance in self._chance]
        elif self.model.start == "adversarial":
            return gap.argmax(-1)
        else:
            return self._zeros
        return self.backend.array(states, "int64")


FEW, MANY = 16, 4
"""Runs that are planned at once where they are few; more than MANY times as many are planned with all others."""


class Replay:
    """Planning and playing one episode; on a GPU recorded once as a graph and played again.

    A graph replays the same kernels on the same memory, without Python between them. What changes from episode to
    episode goes in through fixed tensors; resets and fresh inverses happen outside.
    """

    def __init__(self, engine: Lockstep) -> None:
        self.engine = engine
        self._graphs: dict[tuple[str, bool], Any] = {}
        self._fixed: dict[str, Any] = {}

    def plan(self, plan: Any, runs: IntArray, *, whole: bool) -> None:
        """Plan the steps and runs in `plan`, (H, B), those of `runs`: few at a time, or all that there are."""
        engine = self.engine
        if engine.horizon.discounted:  # the host looks on whether weights still move
            engine.planner.plan(plan, whole=whole)
            return
        if engine.planner.storage.kernels is None or len(runs) > MANY * FEW:
            self._run("plan", whole, lambda f: engine.planner.plan(f["plan"], whole=whole, runs=engine.runs), plan=plan)
            return
        name, there = self._listed(runs)
        body = lambda f: engine.planner.plan(f["plan"], whole=whole, runs=f[name])  # noqa: E731
        self._run(f"plan {name}", whole, body, plan=plan, **{name: there})

    def play(self, draws: Any, start: Any, store: Any, *, whole: bool, probing: bool) -> None:
        """Play one episode of all runs."""

        def body(f: dict[str, Any]) -> None:
            self.engine.play(f["draws"], f["start"], f["store"], whole=whole, probing=probing)

        self._run("probe" if probing else "play", whole, body, draws=draws, start=start, store=store)

    def evaluate(self, runs: IntArray | None = None) -> Any:
        """V^pi of the policies of all runs, or of some, (B, S); it stays so until the next evaluation."""
        if runs is None or len(runs) > MANY * FEW:
            self._run("evaluate", True, lambda _: self.engine.evaluate())
        else:
            name, there = self._listed(runs)
            self._run(f"evaluate {name}", True, lambda f: self.engine.evaluate(f[name]), **{name: there})
        return self.engine.V

    def _listed(self, runs: IntArray) -> tuple[str, Any]:
        """Few runs as a list of one of two lengths, filled up with -1, and its name."""
        some = np.full(FEW if len(runs) <= FEW else MANY * FEW, -1)
        some[: len(runs)] = runs
        return f"{len(some)} runs", self.engine.backend.array(some, "int64")

    def _run(self, name: str, whole: bool, body: Callable[[dict[str, Any]], None], **inputs: Any) -> None:
        if self.engine.backend.device != "cuda":
            body(inputs)
            return
        torch, key = self.engine.backend.xp, (name, whole)
        for what, value in inputs.items():
            if what in self._fixed:
                self._fixed[what].copy_(value)
            else:
                self._fixed[what] = value.clone()
        if key not in self._graphs:
            # the first time it just runs (and compiles); the second time it is recorded, which runs nothing
            self._graphs[key] = None
            body(self._fixed)
            return
        if self._graphs[key] is None:
            graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(graph):
                body(self._fixed)
            self._graphs[key] = graph
        self._graphs[key].replay()
