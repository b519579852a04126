"""Planning, written once: backwards over the steps, for one agent or for B runs in lockstep."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np

from linmdp.agents.backend import NUMPY, Backend
from linmdp.agents.base import Component
from linmdp.agents.exploration.base import Exploration
from linmdp.agents.horizon import SWEEPS, Horizon, fixed_point
from linmdp.agents.memory.base import Parts, Sample, Storage
from linmdp.agents.ridge import DELAY, Ridge, at_least, dot, matvec
from linmdp.agents.schedules.base import Schedule, Step
from linmdp.features.base import FeatureMap
from linmdp.features.tabular import phi_of
from linmdp.types import Array, BoolArray, IntArray

if TYPE_CHECKING:
    from linmdp.agents.lsvi import LSVIAgent

MakeStorage = Callable[[Parts], Storage]

EVERYWHERE: BoolArray = np.ones((), dtype=np.bool_)
"""A mask of all regressions."""


class LockstepSetting(NamedTuple):
    """What an agent hands over so that many seeds of it can run in lockstep."""

    agent: LSVIAgent
    beta: float
    lam: float
    ties: str
    schedule: Schedule


class Planner(Component):
    """The regressions, the samples and the weights, and the order in which they are renewed.

    Three independent choices meet here: the horizon (what the steps share), the storage (what is kept of the samples)
    and the exploration (how Q is made optimistic).

    Attributes
    ----------
    w : (levels, *batch, d)
    """

    _arrays: ClassVar = ("w",)
    _members: ClassVar = ("storage", "ridge", "exploration")

    def __init__(
        self,
        horizon: Horizon,
        d: int,
        *,
        lam: Any,
        exploration: Exploration,
        make_storage: MakeStorage,
        delay: int = DELAY,
        ridge: Any = None,
        batch: tuple[int, ...] = (),
        backend: Backend = NUMPY,
    ) -> None:
        self.horizon, self.exploration, self.backend = horizon, exploration, backend
        self.ridge: Any = ridge
        if ridge is None:
            self.ridge = Ridge(horizon.groups, d, lam, batch=batch, backend=backend, delay=delay)
        w = backend.zeros((horizon.levels, *batch, d))
        exploration.bind(self.ridge, w)
        plain = exploration.incremental and self.ridge.incremental
        self.incremental = plain and not (horizon.shared or exploration.adaptive)
        self.scaled = exploration.scaled = self.incremental and backend.is_numpy and exploration.plain
        self.storage = make_storage(Parts(horizon, self.ridge, w, exploration))
        self.incremental &= self.storage.incremental
        self.scaled = exploration.scaled = self.scaled and self.incremental

    @property
    def w(self) -> Any:
        """Those of the storage, which may have to make space for more."""
        return self.storage.w

    def drop_samples(self, runs: Any = ...) -> None:
        """Delete the working space (of some runs). The old Q acts on."""
        mask = np.zeros_like(self.ridge.behind)
        mask[:, runs] = True
        self.storage.clear(runs)
        self.ridge.drop(mask)
        self.exploration.forget(*((runs,) if self.exploration.adaptive else ()))

    def prepare(self, plan: BoolArray, store: BoolArray, there: Any) -> None:
        """Before planning, outside any recorded graph: restarts, fresh inverses, samples that wait for a later plan.

        `plan` and `store` (G, *batch) say which regressions are planned now, and which get samples before they are
        planned again; `there` is `plan` as an array of the backend.
        """
        ridge, storage = self.ridge, self.storage
        if self.exploration.adaptive and plan.any():
            runs = ... if plan.ndim == 1 else plan.any(axis=0)
            ridge.change_lam(self.exploration.lam, runs)
        if (started := ridge.empty & plan).any():
            ridge.restart(started)
            storage.restart(started)
        aside = (ridge.behind & plan) | (store & ~plan) if self.incremental else plan | store
        if aside.any():
            ridge.defer(None if aside.all() else self.backend.array(aside, "bool"), aside)
        fresh = ridge.behind & plan
        if ridge.stale:
            fresh |= ~ridge.behind
            ridge.absorbed = 0
        if fresh.any():
            self._renew_inverses(fresh)
        if self.incremental and plan.any():
            ridge.keep(ridge.pending if plan.all() else ridge.pending * there[..., None])
            ridge.absorbed += 1

    def _renew_inverses(self, fresh: BoolArray) -> None:
        ridge, storage = self.ridge, self.storage
        if storage.inverting is not None:
            storage.inverting.renew(self, self.backend.array(np.flatnonzero(fresh), "int64"))
            ridge.renewed(fresh)
            return
        ridge.refactor(fresh, self._rebuild)
        self.exploration.renew()
        storage.refresh(fresh)

    def plan(self, mask: Any, *, whole: bool, runs: Any = None) -> None:
        """Lines 4 to 11 of Algorithm 1 for the regressions (and runs) in `mask`, (G, *batch); `whole`: all of them.

        `runs` (n,): where they are, if they are few, for the kernels of a GPU.
        """
        horizon, storage, w = self.horizon, self.storage, self.w
        if storage.kernels is not None:
            storage.kernels.plan(self, mask, runs)
            return
        v = self.ridge.absorb(mask, whole=whole) if self.incremental else None  # line 5
        if v is not None and self.scaled:
            v *= self.exploration.beta[..., None]
        self.exploration.begin()
        storage.begin()
        if horizon.discounted:
            xp, largest = self.backend.xp, self.exploration.caps[0]
            w[0] = fixed_point(w[0] + 0.0, self._backup, largest, mask[0], SWEEPS, xp)
            self._renew()
        else:
            skip, explore, ridge = not whole and self.backend.is_numpy, self.exploration, self.ridge
            last, stride = horizon.H - 1, horizon.stride
            few = v if skip and mask.ndim > 1 and self.scaled else None  # a few runs in lockstep, and no others
            for h in reversed(range(horizon.H)):
                g = 0 if horizon.shared else h
                if skip and not mask[g].any():
                    continue
                if few is not None:
                    self._plan_runs(h, few[g], np.flatnonzero(mask[g]), last=h == last)
                    continue
                z = storage.target(h) if h < last or storage.compact else 0.0  # lines 7 and 8
                new = self._fit(h, z, None if whole else mask[g]) if explore.adaptive else ridge.solve(g, z)  # line 9
                i = h if stride == 1 else h // stride
                w[i] = new if whole else self.backend.xp.where(mask[g][..., None], new, w[i])
                if explore.inflate:
                    explore.widen(h, float((storage if ridge.exact else ridge).errors[h]))
                explore.planned(h, None if whole else mask[g])
                storage.sweep(h, None if v is None else v[g])  # lines 10 and 11
        storage.forget()
        if self.exploration.adaptive:
            self.exploration.end(True if whole else mask.any(0))

    def _plan_runs(self, h: int, v: Any, runs: IntArray, *, last: bool) -> None:
        """Lines 7 to 11 of step h for a few of the runs in lockstep; the others are not looked at."""
        counts: Any = self.storage  # runs in lockstep have no other
        which = slice(runs[0], runs[0] + 1) if len(runs) == 1 else runs  # of one run, its arrays themselves
        z = 0.0 if last else counts.followed_by(h, counts.V[h + 1][which], which)
        self.w[h][which] = matvec(self.ridge.inverse(h)[which], self.ridge.u[h][which] + z)
        counts.sweep_runs(h, v if v.any() else None, which)

    def _renew(self) -> None:
        """The weights of the one Q have changed."""
        self.exploration.planned(0, None)
        self.storage.sweep(0, None)

    def _solve(self, h: int, z: Any) -> Any:
        """w_h (line 9), (*batch, d)."""
        return self.ridge.solve(self.horizon.group(h), self.horizon.discount * z if self.horizon.discounted else z)

    def _backup(self, w: Any, going: Any = None) -> Any:
        """The weights that w (*batch, d), as those of the following step, leads to, in the runs in `going`."""
        self.w[0] = w
        self._renew()
        z = self.storage.target(0)
        return self._fit(0, z, None if w.ndim == 1 else going) if self.exploration.adaptive else self._solve(0, z)

    def _fit(self, h: int, z: Any, mask: Any = None) -> Any:
        """w_h, and the widths that an adaptive exploration reads off the fit, for the runs in `mask` (*batch)."""
        g, explore = self.horizon.group(h), self.exploration
        if not self.storage.compact:
            z = z + explore.ended_target(h)
        target = self.ridge.u[g] + self.horizon.discount * z
        new, moments = self.ridge.fit(g, target), self.storage.moments(h)
        rss = at_least(moments.squares - dot(new, target) - self.ridge.penalty(new), 0.0)
        explore.fitted(h, new, moments, rss, mask)
        return new

    def change_beta(self, beta: float) -> None:
        """Another width, for one agent, from the next planning of all steps on."""
        before = self.exploration.beta.copy()
        self.exploration.change_beta(beta)
        if self.scaled:
            self.storage.rescale((self.exploration.beta / before) ** 2)

    def greedy(self) -> Array:
        """Weights planned from the samples without exploration, (levels, d), for one agent."""
        horizon = self.horizon
        w: Array = self.w.copy()

        def backup(following: Array, h: int) -> Array:
            new: Array = self._solve(h, self.storage.greedy_target(h, following))
            return new

        if horizon.discounted:
            w[0] = fixed_point(w[0], lambda x, _: backup(x, 0), self.exploration.caps[0], np.True_, SWEEPS)
        else:
            following = w[0]
            for h in reversed(range(horizon.H)):
                following = backup(following, h) if horizon.leads_on(h) else self._solve(h, 0.0)
                w[horizon.level(h)] = following
        self.storage.forget()
        return w

    def add(self, h: int, sample: Sample, reward: float) -> None:
        """One sample of step h, for one agent."""
        g = self.horizon.group(h)
        self.storage.prepare(sample)
        phi = sample.phi
        if self.horizon.shared:  # several may come before the next planning
            self.put_aside()
        sample.reward = reward
        self.exploration.seen(g, sample)
        if sample.weight == 1 or self.storage.compact:
            self.ridge.add(g, phi, reward)
        else:
            root = sample.weight**0.5
            self.ridge.add(g, phi * root, reward * root)
        self.storage.add(h, sample)

    def add_step(self, step: Step, phi: Any) -> None:
        """One sample, for one agent: a step with the phi of its state and action, or None where the storage has it."""
        h, state, action, reward, next_state, terminated, times = step
        sample = Sample(phi, state, action, next_state, terminated, times)
        self.add(self.horizon.planned(h), sample, reward - self.exploration.offset)

    def recall(self, steps: Iterable[Step], features: FeatureMap) -> None:
        """Store steps again, after others were dropped."""
        for step in steps:
            self.put_aside()
            self.add_step(step, None if self.storage.compact else phi_of(features, step.state, step.action))

    def put_aside(self) -> None:
        """Let another sample of the same regression come before the next planning, for one agent."""
        self.ridge.defer(None, EVERYWHERE)

    def fade(self, factor: float) -> None:
        """Let every sample so far count `factor` times as much, for one agent. The old Q acts on."""
        for part in (self.ridge, self.storage, self.exploration):
            part.fade(factor)

    def drift(self) -> Any:
        """max |Lambda Lambda^-1 - I| over all regressions, (*batch)."""
        drift = self.ridge.drift(self._rebuild)
        self.storage.forget()
        return drift

    def _rebuild(self, g: int) -> Any:
        return self.ridge.rebuilt(g, self.storage.gram(g))
