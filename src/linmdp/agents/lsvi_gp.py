"""LSVI on raw states, with no parameter that a task has to choose: a Gaussian process whose shares the data choose.

Planning goes backwards over the steps left, g = 1, ..., L (Algorithm 1 with one regression for all steps):

    y_c   = mean reward of cell c + discount mean of V_(g-1) where it led to - top_g (shortfall: 0 is the best there is)
    w_g   = the smooth part fitted to y, v_g = what each cell has of its own
    Q_g   = top_g + phi'w_g + v_g + beta s_g (posterior deviation), at most cap_g, and then a share of what may be hoped
            for, at most of what is missing to cap_g,  V_g = max_a Q_g

between the least, low_g, that g steps have ever paid, and cap_g, the most, top_g, and what may be hoped for.
Shares are those of the evidence (`gaussian`), and s_g is the scale that makes the targets of step g most likely.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np

from linmdp.agents.base import TIE, Agent, Component, StateDict, check_step, prefixed, saved_array, under
from linmdp.agents.budget import Choice, chosen_within
from linmdp.agents.experience import Cells, Experience, code_of, coordinates, vectors
from linmdp.agents.gaussian import START, Data, Shares, Smooth, Weights, evidence, smooth, weights
from linmdp.agents.gp_plan import CHUNK, Plan, Sizes, no_plan, smaller
from linmdp.agents.held import check_range
from linmdp.agents.returns import REWARD, Returns
from linmdp.agents.scouts import Scouts
from linmdp.errors import InvalidData, check_choice, check_int, check_number
from linmdp.types import Array, BoolArray, IntArray, MorePossible, State, Task


class LSVIGP(Agent):
    """LSVI with a Gaussian process over raw states and actions: smooth, shared by the actions, and exact, as it fits.

    Parameters
    ----------
    task : states are numbers or arrays of numbers; nothing else of it is used but A and H
    beta : width of the bonus, in posterior deviations, over sqrt(H)
    states, features : states held, at most (transitions: four times as many), and smooth features of them
    length : of the kernel, in units of the range of coordinates, for three of them
    noise, exact : the least noise, and the least that states have of their own where they come again, as shares of
        the mean square of what is regressed (noise: of its root)
    levels, kept : steps planned ahead at most, and levels of them that are kept for acting
    discount : of rewards, for each step: what can be had now or later is had now
    replan : plan when the number of steps has grown by this fraction
    evidence : steps towards the most likely shares, at every planning
    scout, every, budget, settled : where states come again and the value of the start is within the share `settled` of
        the range of returns above what is earned, one in so many episodes at most is played by a plan with a bonus of
        `scout` times that range over the root of the visits, so seldom that such episodes lose about `budget` sqrt(k)
        of these ranges in k episodes
    dtype : of the numbers that planning computes with, "float32" or "float64"; matrices are always the latter
    max_bytes : the most memory, planning included: with fewer states, and features and kept levels to match
    """

    name = "lsvi-gp"
    _derived = (*Agent._derived, "_tie_draws")  # of one episode
    needs_features = False
    test_parameters = (
        {"features": 120},
        {"states": 24, "features": 8, "every": 2, "replan": 0.3},
        {"beta": 0.0, "features": 110},
    )

    def __init__(
        self,
        task: Task,
        *,
        beta: float = 2.0,
        states: int = 1024,
        features: int = 40,
        length: float = 0.8,
        noise: float = 0.02,
        exact: float = 1.0,
        levels: int = 200,
        kept: int = 50,
        discount: float = 0.99,
        replan: float = 0.1,
        evidence: int = 2,
        scout: float = 3.0,
        every: int = 4,
        budget: float = 1.0,
        settled: float = 0.05,
        dtype: str = "float32",
        max_bytes: int | str | None = None,
    ) -> None:
        super().__init__(task)
        self.beta, self.states, self.features, self.length, self.noise = beta, states, features, length, noise
        self.exact, self.levels, self.kept, self.replan, self.evidence = exact, levels, kept, replan, evidence
        self.scout, self.every, self.budget, self.settled, self.dtype = scout, every, budget, settled, dtype
        self.discount, self.max_bytes = discount, max_bytes
        for name in ("beta", "exact", "replan", "scout"):
            check_number(self.name, name, getattr(self, name), low=0.0)
        for name in ("length", "noise", "budget"):
            check_number(self.name, name, getattr(self, name), low=1e-6, high=1e3)
        for name, low in (("states", 8), ("features", 2), ("levels", 1), ("kept", 1), ("evidence", 1), ("every", 1)):
            check_int(self.name, name, getattr(self, name), low=low, high=10**6)
        check_number(self.name, "discount", discount, low=0.0, high=1.0)
        check_number(self.name, "settled", settled)
        check_choice(self.name, "dtype", dtype, ("float32", "float64"))
        self._k, self._L = coordinates(task), min(task.H, levels)
        whole: Choice = {"states": states, "features": features, "kept": min(kept, self._L)}
        self.chosen = chosen_within(self.name, max_bytes, smaller(whole), self._most_bytes)
        self.sizes: Choice = {name: self.chosen.get(name, size) for name, size in whole.items()}
        self.experience, self.returns = Experience(self._k, self.sizes["states"]), Returns(self._L, discount)
        self._plan, self._wide = no_plan(self._k, task.A, dtype), no_plan(self._k, task.A, dtype)
        self._shares, self._tie_draws = np.zeros(4), np.zeros(task.H)
        self._numbers = np.zeros(2)  # steps so far, and at the next planning
        self.scouts = Scouts(self._k, every=every, budget=budget, settled=settled, rate=0.1)
        self._rewards, self._end, self._next = list[float](), False, task.H
        self._allowed: BoolArray | None = None  # what may be done in the state that was last seen

    @property
    def _acting(self) -> Plan:
        return self._wide if self.scouts.sent else self._plan

    def q_values(self, h: int, state: State) -> Array:
        q: Array = self._q(h, vectors(self.task, h, [state]))[0]
        return q

    def _q(self, h: int, X: Array) -> Array:
        plan = self._acting
        if not len(plan.codes):
            return np.zeros((len(X), self.task.A))
        rows = plan.find(np.array([code_of(x) for x in X], dtype=np.int64))
        return plan.q(X, self.horizon - h, rows)

    @property
    def horizon(self) -> int:
        """Steps of an episode: where all were equally long so far, that many, else H."""
        return int(self.returns.lengths[1]) if self.returns.fixed else self.task.H

    def _best(self, q: Array) -> BoolArray:
        top = q.max(axis=-1, keepdims=True)
        best: BoolArray = q >= top - TIE * np.maximum(1.0, np.abs(top))
        return best

    def act(self, h: int, state: State) -> int:
        self._allowed = self.mask
        q = self.q_values(h, state)
        if h == 0:
            self.scouts.thinks(float(q.max()))
        best = self._best(q).nonzero()[0]
        return int(best[int(self._tie_draws[h] * len(best))])

    def policy(self, h: int) -> Array | IntArray:
        assert self.task.S is not None
        best = self._best(self._q(h, vectors(self.task, h, range(self.task.S))))
        chances: Array = best / best.sum(axis=1, keepdims=True)
        return chances

    # learning

    def begin_episode(self) -> None:
        self._rewards, self._end, self._next, self._allowed = [], False, 0, None
        self._tie_draws = self.rng.random(self.task.H)
        self._plan_if_due()
        again = self.scout > 0 and self.experience.come_again > 0.5
        if self.scouts.begin(float(np.ptp(self.returns.episode)) if again else 0.0):
            self._wide = self._planned(self.scout)
            self.policy_version += 1

    def observe(self, h: int, state: State, action: int, reward: float, next_state: State, terminated: bool) -> None:
        self._next = check_step(self.task, self._next, h, action, reward)
        self._rewards.append(float(reward))
        self._end = bool(terminated) and h < self.task.H - 1  # nothing would follow the last step anyway
        x, y = vectors(self.task, h, [state])[0], vectors(self.task, h + 1, [next_state])[0]
        if not (np.isfinite(x).all() and np.isfinite(y).all()):
            raise InvalidData(f"A state must be finite. Got {next_state!r:.120}.")
        if h == 0:
            self.scouts.started(x)
        self.returns.paid(reward)
        self.experience.add(x, action, float(reward), y, self._end, (self._allowed, self.mask))
        self._allowed = self.mask
        self._numbers[0] += 1
        explores = self.scouts.sent or self.returns.hope(0.0) > 0
        self._plan_if_due(explores and self.experience.doubled(x, action))

    def end_episode(self) -> None:
        earned = self.returns.ended(np.array(self._rewards), self._end)
        self.policy_version += self.scouts.sent  # the next episode is the plan's own again
        self.scouts.ended(earned, float(np.ptp(self.returns.episode)))
        self._wide, self._next, self._rewards = no_plan(self._k, self.task.A, self.dtype), self.task.H, []

    def _plan_if_due(self, news: bool = False) -> None:
        steps, due = self._numbers
        if self.scouts.sent and news:
            self._wide = self._planned(self.scout)
        elif steps and not self.scouts.sent and (news or steps >= due):
            self._plan = self._planned(0.0)
            self._numbers[1] = max(steps + 1, math.ceil(steps * (1 + self.replan)))
            self.updates += 1
        else:
            return
        self.policy_version += 1

    # planning

    def _planned(self, wide: float) -> Plan:
        """Lines 4 to 11 of Algorithm 1 on what is held; with `wide`, for a scout."""
        held, A = self.experience, self.task.A
        held.rescale()
        cells, centre, ranges = held.cells(A), held.centre, held.unit
        unit = ranges / (self.length * math.sqrt(max(int((ranges > 0).sum()), 1) / 3))  # the kernel has length 1
        over = np.zeros_like(cells.over) if self.returns.fixed else cells.over
        L = int(min(self._L, self.horizon)) if self.returns.lengths[1] else self._L
        top, low = self.returns.bounds()
        S = smooth((cells.X - centre) * unit, self.sizes["features"], self.dtype)
        phi = S.F[cells.state].astype(np.float64)
        if not wide:
            self._choose_shares(cells, over, S, phi, top, L)
        shares = Shares(*self._shares)
        data = Data(phi, S.left[cells.state], cells.action, cells.times, cells.stands, np.zeros(len(cells.times)), 0.0)
        omega = data.omega(shares)
        fit = weights(phi, cells.action, omega, A, shares)
        deviation, kept = self._deviations(cells, S, fit, shares, omega)
        hope, most = self._hopes(cells, deviation, shares, wide)
        reach = most * (np.arange(L + 1) if wide else np.ones(L + 1))  # a scout may find as much at every step
        beta = self.beta / math.sqrt(self.task.H)
        bonus = (beta * deviation).astype(self.dtype)
        stride = -(-L // min(self.sizes["kept"], L))
        levels = -(-L // stride)
        w, own = np.zeros((levels, phi.shape[1], A), self.dtype), np.zeros((levels, len(omega)), self.dtype)
        scale, V, T = np.zeros(levels), np.zeros(len(cells.X)), np.zeros((A, len(cells.X)), self.dtype)
        bonus, hope_g, there = bonus.T.copy(), hope.T.copy(), (cells.action, cells.state)
        F, part, going = S.F, kept.astype(self.dtype), ~over
        for g in range(1, L + 1):
            y = cells.reward - top[g]  # lines 7 and 8
            if g > 1:
                y += self.discount * cells.mean(V[cells.following] * going)
            T[there] = omega * y
            w_g = fit((T @ F).T.astype(np.float64))[0].astype(self.dtype)  # line 9
            Q = w_g.T @ F.T
            error = y - Q[there]
            s_g = math.sqrt(max(float((omega * y) @ error), 0.0) / len(y))
            Q[there] += part * error
            Q += T.dtype.type(s_g) * bonus  # lines 10 and 11
            np.minimum(Q, reach[g], out=Q)
            Q += hope_g * np.minimum(most, reach[g] - Q)
            if len(cells.closed):
                Q[cells.closed.T] = -np.inf
            V = np.maximum(Q.max(axis=0) + top[g], low[g])
            if g % stride == 0 or g == L:
                i = -(-g // stride) - 1
                w[i], own[i], scale[i] = w_g, part * error, s_g
        if not np.isfinite(w.sum() + own.sum() + deviation.sum()):  # finds NaN and infinity at little cost
            raise InvalidData(f"The weights of {self.name} are not finite after planning: rewards are too extreme.")
        at = np.append(np.arange(stride, L, stride), L)
        order = np.argsort(cells.codes, kind="stable")
        place = np.empty_like(order)
        place[order] = np.arange(len(order))
        sort = np.argsort(place[cells.state], kind="stable")
        return Plan(
            pivots=(cells.X[S.pivots] - centre) * unit,
            inverse=S.inverse,
            centre=centre.copy(),
            unit=unit,
            w=w,
            own=own[:, sort],
            inverses=fit.inverses,
            common=fit.common,
            scale=scale,
            top=top[at],
            cap=top[at] + reach[at],
            low=low[at],
            codes=cells.codes[order],
            deviation=deviation[order].astype(self.dtype),
            hope=hope[order],
            cells=np.stack([place[cells.state], cells.action])[:, sort].astype(np.int32),
            begins=np.searchsorted(place[cells.state][sort], np.arange(len(order) + 1)).astype(np.int32),
            numbers=np.array([beta, shares.own, shares.shared, shares.exact, most, held.come_again, stride, L]),
        )

    def _choose_shares(self, cells: Cells, over: BoolArray, S: Smooth, phi: Array, top: Array, L: int) -> None:
        """The evidence speaks on the targets of the first step, with the values of the plan before."""
        V = np.full(len(cells.X), top[L - 1])
        if len(self._plan.codes):
            rows = self._plan.find(cells.codes)
            for start in range(0, len(V), CHUNK):
                some = slice(start, start + CHUNK)
                V[some] = self._plan.q(cells.X[some], L - 1, rows[some]).max(axis=1)
        following = np.where(over, 0.0, self.discount * V[cells.following]) if L > 1 else np.zeros(len(over))
        mean = cells.mean(following)
        times, target = self.experience.times[: len(over)], self.experience.reward[: len(over)] + following
        scatter = float(times @ target**2 - cells.times @ (cells.reward + mean) ** 2)
        within = self.experience.within() + scatter
        y = cells.reward + mean - top[L]
        data = Data(phi, S.left[cells.state], cells.action, cells.times, cells.stands, y, max(within, 0.0))
        power, unit = data.power(), float(np.abs(self.returns.reward).max())
        if math.sqrt(power) <= 1e-10 * max(unit, 1e-300):  # all is as good as it can be: nothing to explain
            self._shares[:] = (1e-12, 1e-12, 1e-12, 1e-16)
            return
        if not self._shares.any() or self._shares[0] == 1e-12:
            self._shares[:] = np.array(START) * power
        floor, before = self.exact * self.experience.come_again, Shares(*self._shares)
        self._shares[:] = evidence(data, self.task.A, before, floor=floor, quiet=self.noise, steps=self.evidence)

    def _deviations(self, cells: Cells, S: Smooth, fit: Weights, shares: Shares, omega: Array) -> tuple[Array, Array]:
        """Posterior deviations (U, A), and the part of its error that a cell keeps as its own, (C,)."""
        U, A = len(cells.X), self.task.A
        variance = np.empty((U, A))
        for start in range(0, U, CHUNK):
            variance[start : start + CHUNK] = fit.variance(S.F[start : start + CHUNK].astype(np.float64))
        tau = shares.exact + (shares.shared + shares.own) * S.left
        kept = tau[cells.state] * omega / cells.stands
        tried = variance[cells.state, cells.action]
        variance += tau[:, None]
        variance[cells.state, cells.action] = (1 - kept) ** 2 * tried + tau[cells.state] * (1 - kept / cells.stands)
        return np.sqrt(variance), kept

    def _hopes(self, cells: Cells, deviation: Array, shares: Shares, wide: float) -> tuple[Array, float]:
        """The share of what may be hoped for that is left to each state and action, (U, A), and how much that is."""
        reach = self.returns.hope(wide)
        again = self.experience.come_again
        new = np.ones_like(deviation)
        new[cells.state, cells.action] = (1 + cells.times) ** (-0.5 if wide else -1.0)
        part = np.minimum(deviation**2 / (shares.shared + shares.own + shares.exact), 1.0)
        hope: Array = (again * new + (1 - again) * part).astype(self.dtype)
        return hope, reach

    # memory and files

    @property
    def nbytes(self) -> int:
        parts = (self.experience, self.returns, self.scouts, self._plan, self._wide)
        return sum(part.nbytes for part in parts) + self._shares.nbytes + self._numbers.nbytes + self._tie_draws.nbytes

    @property
    def planning_bytes(self) -> int:
        """The work, the rewards of the longest episode and, where a scout has been sent, its plan."""
        work = self._plan.work_bytes(self.experience.count, self.sizes["features"], self.experience.closed.shape[2] > 0)
        scout = self._plan.nbytes if self.scouts.numbers[5] > self.every else 0
        return work + scout + REWARD * int(self.returns.lengths[1])

    def bytes_after(self, episodes: int) -> int:
        """What is held when everything is as large as it can be by then."""
        return max(self.nbytes, self._held_bytes(self.sizes, episodes * self.task.H))

    def largest(self, sizes: Choice, steps: float = math.inf) -> Sizes:
        """The most that there is of everything after so many steps."""
        S = self.task.S if self.task.S and self.task.stationary else math.inf
        return Sizes.most(self._k, self.task.A, S, sizes, steps, np.dtype(self.dtype).itemsize)

    def _held_bytes(self, sizes: Choice, steps: float = math.inf) -> int:
        k, most, masks = self._k, self.largest(sizes, steps), -(-self.task.A // 8)
        others = 16 * (self._L + k + 64) + 8 * self.task.H
        return Experience.bytes_of(k, sizes["states"], most.rows, masks) + 2 * most.plan() + others

    def _most_bytes(self, sizes: Choice) -> int:
        """The most that is ever held, with what planning takes on top."""
        most = self.largest(sizes)
        return self._held_bytes(sizes) + most.work(sizes["features"], True, 2 * most.cells) + REWARD * self.task.H

    def more_possible(self) -> MorePossible | None:
        ended = self.returns.lengths[1] and self.horizon <= self._L  # a plan for fewer steps is not of an episode
        if not (self.updates and self.scout and ended):
            return None
        now, scales = (self._wide, self.scouts.sent), (self.experience.centre.copy(), self.experience.unit.copy())
        try:
            self._wide, self.scouts.sent = self._planned(self.scout), True
            return self.scouts.more_possible(lambda X: self._q(0, X).max(axis=1), self.returns.payable(self.task))
        except InvalidData:  # too extreme to plan with, which whoever plays is told
            return None
        finally:
            (self._wide, self.scouts.sent), (self.experience.centre[:], self.experience.unit[:]) = now, scales

    def diagnostics(self) -> dict[str, float]:
        """Shares of the evidence, and what the scouts have cost."""
        shares = self._shares[:3] / (self._shares[:3].sum() or 1.0)
        found = dict(zip(("shared share", "own share", "exact share"), shares.tolist(), strict=True))
        found["lost by scouts"] = float(self.scouts.numbers[1])
        return found | {"states that come again": self.experience.come_again}

    def _parts(self) -> dict[str, Component]:
        return {"experience": self.experience, "returns": self.returns, "scouts": self.scouts, "plan": self._plan}

    def state_dict(self) -> StateDict:
        state = super().state_dict() | {"shares": self._shares.copy(), "numbers": self._numbers.copy()}
        for name, part in self._parts().items():
            state |= prefixed(name, part.state_dict())
        return state

    def _load(self, state: Mapping[str, np.ndarray]) -> None:
        super()._load(state)
        for mine, name in ((self._shares, "shares"), (self._numbers, "numbers")):
            saved = saved_array(state, name)
            if saved.shape != mine.shape or not np.isfinite(saved).all():
                raise InvalidData(f"'{name}' of a saved agent must be {mine.shape[0]} finite numbers.")
            mine[:] = saved
        plan = no_plan(self._k, self.task.A, self.dtype)
        for name, part in {**self._parts(), "plan": plan}.items():
            found = under(name, state)
            if name == "plan" and not len(saved_array(found, "codes")):
                for array in plan._arrays:
                    saved_array(found, array)
                continue
            part.load_state_dict(found)
        check_range("action", self.experience.action[: self.experience.count], 0, self.task.A - 1)
        self._plan, self._wide = plan, no_plan(self._k, self.task.A, self.dtype)
