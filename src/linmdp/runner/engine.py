"""B runs of LSVI on one model, as arrays with an axis for the runs; NumPy or torch."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from linmdp.agents.backend import NUMPY, Backend
from linmdp.agents.core import Core
from linmdp.agents.lsvi import LSVIUCB
from linmdp.agents.memory import Counts
from linmdp.agents.regression import Optimism, add_sample
from linmdp.agents.schedules import Always, Schedule
from linmdp.envs.base import Chance, LinearModel
from linmdp.envs.planning import backup
from linmdp.types import Array, BoolArray


class Setting(NamedTuple):
    """What sets one run apart from those beside it."""

    agent: str
    seed: int
    params: dict[str, Any]
    beta: float
    lam: float
    ties: str
    schedule: Schedule
    nbytes: int
    chosen: dict[str, Any]

    @classmethod
    def of(cls, agent: LSVIUCB, spec: str, seed: int) -> Setting:
        """Read off an agent that has not begun: its settings and a schedule of its own, not its arrays."""
        params, schedule, chosen = agent.get_params(), copy.deepcopy(agent.schedule), dict(agent.chosen)
        return cls(spec, seed, params, agent.beta_value, agent.lam, agent.ties, schedule, agent.nbytes, chosen)


class Lockstep:
    """B runs of LSVI with counts, as arrays with an axis for the runs."""

    def __init__(
        self, model: LinearModel, settings: Sequence[Setting], caps: Array, dtype: str, backend: Backend = NUMPY
    ) -> None:
        B, H = len(settings), model.H
        self.model, self.settings, self.backend, self.B = model, settings, backend, B
        self.schedules = [s.schedule for s in settings]
        self.always = all(isinstance(s, Always) for s in self.schedules)
        beta, lam = (np.array([getattr(s, name) for s in settings]) for name in ("beta", "lam"))
        self.optimism = Optimism(beta, caps, backend)
        self.core: Any = Core(
            H,
            model.d,
            lam=lam,
            optimism=self.optimism,
            make_memory=lambda ridge, w, optimism: Counts(
                H, model.features, ridge, w, optimism, dtype, batch=(B,), backend=backend
            ),
            batch=(B,),
            backend=backend,
        )
        self.columns, self.theta = backend.array(model.features.columns), backend.array(model.theta)
        self.mu, self.mu_cdf = backend.array(model.mu), backend.array(model.mu_cdf)
        self.first = backend.array([s.ties == "first" for s in settings], "bool")
        self.any_first = any(s.ties == "first" for s in settings)

        seeds = [np.random.SeedSequence(s.seed).spawn(2) for s in settings]
        self._chance = [Chance(np.random.default_rng(int(env.generate_state(1)[0]))) for env, _ in seeds]
        self._ties = [np.random.default_rng(agent) for _, agent in seeds]
        self._nobody, self._everything = np.zeros(B, dtype=np.bool_), np.ones((H, B), dtype=np.bool_)
        self._everything_there = backend.array(self._everything, "bool")
        self._zeros = backend.zeros((B,), "int64")
        self.runs = backend.array(np.arange(B), "int64")
        self._step = backend.fused(self._take_step)
        self.phi = backend.zeros((H, B, model.d))
        self.rewards = backend.zeros((B,))
        self.looked = backend.zeros((3, B))  # acts, values at the cap, ties
        self.extremes = backend.array(np.tile([[model.A], [-1]], (1, B)), "int64")  # least and largest action

    def draws(self, n: int) -> Any:
        """Noise, moves and tie-breaks of the next n episodes, (n, 3, H, B)."""
        H = self.model.H
        every = np.empty((self.B, 3, n, H))
        for mine, chance, ties in zip(every, self._chance, self._ties, strict=True):
            mine[0], mine[1] = chance.episodes(n, H)
            mine[2] = ties.random((n, H))
        if self.backend.is_numpy:
            return np.ascontiguousarray(every.transpose(2, 1, 3, 0))
        return self.backend.array(every).permute(2, 1, 3, 0)

    def decide(self) -> tuple[BoolArray, BoolArray]:
        """Which runs reset, (B,), and which steps of which runs learn, (H, B)."""
        if self.always:
            return self._nobody, self._everything
        decisions = [schedule.begin_episode() for schedule in self.schedules]
        return np.array([d.reset for d in decisions]), np.stack([d.learn for d in decisions], axis=1)

    def mask(self, learn: BoolArray) -> tuple[Any, bool]:
        """`learn` as an array of the backend, and whether it holds everywhere."""
        whole = bool(learn.all())
        return self._everything_there if whole else self.backend.array(learn, "bool"), whole

    def play(self, draws: Any, start: Any, learn: Any, *, whole: bool, look: bool) -> None:
        """H steps of all runs from the states `start`, (B,); `look` gathers the diagnostics of the last episodes."""
        model, state = self.model, start
        self.rewards[:] = 0.0
        ridge, memory = self.core.ridge, self.core.memory
        for h in range(model.H):
            samples = (ridge.pending[h], ridge.u[h], memory.N[h] if h < model.H - 1 else None)
            action, following = self._step(
                memory.values(h),
                samples,
                state,
                draws[:, h],
                self.theta[h],
                self.mu_cdf[h],
                None if whole else learn[h],
                self.phi[h],
                self.rewards,
            )
            if look:
                self._look(h, state, action)
            state = following

    def _take_step(
        self,
        values: Any,
        samples: Any,
        state: Any,
        draws: Any,
        theta: Any,
        mu_cdf: Any,
        learn: Any,
        phi_seen: Any,
        rewards: Any,
    ) -> tuple[Any, Any]:
        """Act, move and remember in every run: actions (B,) and next states (B,). Arrays in, so that a GPU can fuse it.

        Among the best actions it is number floor(u * count), or the first; the next state is where the distribution
        function of s', which is linear in phi, passes the number drawn for it.
        """
        model, xp, (noise, moves, ties) = self.model, self.backend.xp, draws
        memory, (pending, u, N) = self.core.memory, samples
        low, high = model.reward_range
        order = memory.best_of(*values, state).cumsum(-1)
        pick = xp.floor(ties * order[:, -1])
        pick = pick * ~self.first if self.any_first else pick
        action = (order <= pick[:, None]).sum(-1)
        phi = self.columns[:, action * model.S + state].T
        reward = xp.clip(phi @ theta + model.noise * noise, low, high)
        cdf = phi @ mu_cdf
        following = xp.clip((cdf <= (moves * cdf[:, -1])[:, None]).sum(-1), 0, model.S - 1)
        phi_seen[...] = phi
        rewards += reward
        learned = phi if learn is None else phi * learn[:, None]
        add_sample(pending, u, learned, reward[:, None])
        if N is not None:  # nothing follows the last step
            memory.count(N, learned, following)
        return action, following

    def _look(self, h: int, state: Any, action: Any) -> None:
        if self.model.A == 1:  # nothing to choose
            return
        xp, q = self.backend.xp, self.core.memory.q_values(h, state)
        self.looked[0] += 1
        self.looked[1] += (q >= self.optimism.caps[h] - self.optimism.tie).sum(-1)
        self.looked[2] += self.optimism.best(q, axis=-1).sum(-1) > 1
        self.extremes[0] = xp.minimum(self.extremes[0], action)
        self.extremes[1] = xp.maximum(self.extremes[1], action)

    def values(self) -> Any:
        """V^pi at the first step of the policy of each run, (B, S), exact."""
        V = self.backend.zeros((self.B, self.model.S))
        for h in reversed(range(self.model.H)):
            best = self.core.memory.best_table(h)
            if self.any_first:
                best = best & ((best.cumsum(-2) == 1) | ~self.first[:, None, None])
            q = backup(self.theta[h], self.mu[h], self.columns, V).reshape(best.shape)
            V = (q * best).sum(-2) / best.sum(-2)
        return V

    def watch(self) -> None:
        """Show this episode's features to the schedules that look at them."""
        if self.always:
            return
        phi = self.backend.host(self.phi)
        for i, schedule in enumerate(self.schedules):
            for h in range(self.model.H):
                schedule.watch(h, phi[h, i])
            schedule.end_episode()

    def starts(self, gap: Any) -> Any:
        """The first state of each run, (B,)."""
        if self.model.start == "uniform":
            states = [chance.start(self.model.S) for chance in self._chance]
        elif self.model.start == "adversarial":
            return gap.argmax(-1)
        else:
            return self._zeros
        return self.backend.array(states, "int64")
