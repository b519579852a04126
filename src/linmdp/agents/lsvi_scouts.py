"""LSVI-UCB that is not stuck: where it thinks that it is done a scout looks elsewhere. Docs: insured.

On a loop without noise sigma^2 and lambda go to 0, and no datum ever says that more was possible. A scout plans on the
same data with a bonus that vanishes where much was tried and nowhere else (line 10 with the potential term):

    Q'_h = phi'w'_h + beta_h |phi| + scout range_h |phi|^2,   |phi|^2 = phi' Lambda_h^-1 phi.

What it may lose is what A, the agent itself, thinks that it loses, where nobody has looked by its mean alone:

    gap_h(s)  = max_a Q_h(s, a) - (phi'w_h - lam |phi'w_h| |phi|^2)    of the action a' of Q',
    cost_h(s) = gap_h(s) + E cost_{h+1}    with a', if that is at most the limit; else E cost_{h+1} with A's action,

E by the same regression. So a scout is a policy, deviates from A's where it can afford it, and costs at most the limit
from any state. It is sent if A is done (see `scouts`) and

    cost_1(start) <= budget k^(2/3) ranges of a reward - all that scouts have cost so far.

The limit is the right side, or one such range if that is more: one step off the way at a time would find nothing.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np

from linmdp.agents.algorithms import LSVIUCB
from linmdp.agents.backend import NUMPY, Backend
from linmdp.agents.exploration.base import Exploration
from linmdp.agents.exploration.bonus import Inflated
from linmdp.agents.held import check_range
from linmdp.agents.scouts import Scouts
from linmdp.errors import InvalidParameter, check_number
from linmdp.types import Array, IntArray, MorePossible, State, Task

RATE = 0.05
"""The weight of the last return in the usual one."""


class LSVIUCBScouts(LSVIUCB):
    """LSVI-UCB on finite states that sends a scout where it thinks that it is done.

    Parameters
    ----------
    scout : width of a scout's bonus, in ranges of what the steps left can pay; 0: none is sent
    budget : scouts cost at most this times k^(2/3) ranges of a reward in k episodes, as the agent itself reckons (but
        for a start that never came before)
    settled : it is done where the start is worth at most this share of the range more than it usually earns
    common : the parameters of `LSVIUCB`; storage must be "counts"

    Attributes
    ----------
    ways : (H, S) the action of a scout where it deviates; -1 where it does not
    cost : (S,) what an episode of it costs from there
    begun : (S,) whether an episode has begun there
    paid : () what scouts have cost
    """

    name = "lsvi-ucb-scouts"
    test_parameters: ClassVar[tuple[dict[str, Any], ...]] = (
        {},
        {"beta": 0.1, "budget": 10.0, "settled": 1.0},
        {"stationary": True, "budget": 10.0, "settled": 1.0},
        {"scout": 0.0},
    )
    _derived: ClassVar[tuple[str, ...]] = (*LSVIUCB._derived, "spans")
    _arrays: ClassVar[tuple[str, ...]] = (*LSVIUCB._arrays, "ways", "cost", "begun", "paid")
    _members: ClassVar[tuple[str, ...]] = (*LSVIUCB._members, "scouts")
    _saved_within: ClassVar = {"cost": (0, np.inf)}

    def __init__(
        self,
        task: Task,
        *,
        storage: str = "counts",
        scout: float = 1.0,
        budget: float = 0.035,
        settled: float = 0.03,
        **common: Any,
    ) -> None:
        self.scout, self.budget, self.settled = scout, budget, settled
        check_number(self.name, "scout", scout, low=0.0)
        check_number(self.name, "budget", budget, low=0.0)
        check_number(self.name, "settled", settled)
        H, S = task.H, task.S or 0
        self.scouts = Scouts(1, every=1, budget=np.inf, settled=settled, rate=RATE)
        self.ways, self.cost = np.full((H, S), -1, dtype=np.int16), np.zeros(S)
        self.begun, self.paid, self.spans = np.zeros(S, dtype=np.bool_), np.zeros(()), np.zeros(H)
        super().__init__(task, storage=storage, **common)
        horizon = self.horizon
        if self._storing.name != "counts" or horizon.discounted or horizon.H < task.H:
            raise InvalidParameter(
                f"{self.name} must plan all steps, with storage='counts' and discount=1: "
                f"use lsvi-ucb for anything else."
            )
        self.spans[:] = self.caps - horizon.lows(task.reward_range[0])

    def make_exploration(self, beta: Any, backend: Backend = NUMPY) -> Exploration:
        if self.auto:
            return super().make_exploration(beta, backend)
        return Inflated(self.horizon, self.caps, beta, self.horizon.lows(self.task.reward_range[0]), self.inflate)

    def working_bytes(self, held: int) -> int:
        """With the plan of a scout, and what is computed for one of its steps."""
        H, S, A = self.task.H, self.task.S or 0, self.task.A
        return super().working_bytes(held) + H * S * (self.ways.itemsize + 8 + 2 + A) + 80 * A * S

    @property
    def allowed(self) -> float:
        """What the next scout may cost."""
        k = self.scouts.numbers[0] + 1
        return float(self.budget * self.spans[-1] * k ** (2 / 3) - self.paid)

    # an episode

    def begin_episode(self) -> None:
        super().begin_episode()
        cost = float(self.cost[self.begun].max(initial=0.0))
        ready = 0 < cost <= self.allowed
        self.policy_version += self.scouts.begin(float(self.spans[0]) if ready else 0.0)

    def _do_plan(self) -> None:
        super()._do_plan()
        ready = self.scout > 0 and self.allowed > 0 and self.scouts.done(float(self.spans[0]))
        self.ways[:], self.cost[:] = -1, 0.0
        if ready:
            plan = Wide(self)
            self.ways[:], self.cost[:] = plan.ways(max(self.allowed, float(self.spans[-1])))

    def act(self, h: int, state: State) -> int:
        if self.scouts.sent and self.ways[h, state] >= 0:
            return int(self.ways[h, state])
        return super().act(h, state)

    def observe(self, h: int, state: State, action: int, reward: float, next_state: State, terminated: bool) -> None:
        if h == 0:
            self.begun[state] = True
            self.paid += self.scouts.sent * self.cost[state]
            self.scouts.started(np.array([state]))
            self.scouts.thinks(float(super().q_values(0, state).max()))
        super().observe(h, state, action, reward, next_state, terminated)

    def end_episode(self) -> None:
        self.policy_version += self.scouts.sent  # the next episode is the agent's own again
        self.scouts.ended(self._earned, float(self.spans[0]) or 1.0)
        super().end_episode()

    def q_values(self, h: int, state: State) -> Array:
        """Those of the agent; where a scout deviates its action comes first, and the others a hair behind."""
        q, action = super().q_values(h, state), int(self.ways[h, state])
        if not self.scouts.sent or action < 0:
            return q
        found: Array = np.minimum(q, q.max() - 2 * self._exploration.tie)
        found[action] = q.max()
        return found

    def policy(self, h: int) -> Array | IntArray:
        own = super().policy(h)
        if not self.scouts.sent:
            return own
        away = self.ways[h] >= 0
        if own.ndim == 1:
            return np.where(away, self.ways[h], own)
        found: Array = np.where(away[:, None], self.ways[h][:, None] == np.arange(self.task.A), own)
        return found

    # what is known of it

    def more_possible(self) -> MorePossible | None:
        """As a scout's plan thinks, made anew on a copy."""
        if not (self.updates and self.scout):
            return None
        aside = copy.deepcopy(self, {id(self.task): self.task})
        everything = np.ones_like(aside._plan)
        aside._planner.prepare(everything, everything, everything)
        aside._planner.plan(everything, whole=True)
        V = Wide(aside).values
        return self.scouts.more_possible(lambda X: V[X[:, 0].astype(int)], float(self.caps[0]))

    def diagnostics(self) -> dict[str, float]:
        """What scouts have cost: as reckoned, and as earned less than usual."""
        return super().diagnostics() | {"scouts": float(self.paid), "lost by scouts": float(self.scouts.numbers[1])}

    def _load(self, state: Mapping[str, np.ndarray]) -> None:
        super()._load(state)
        check_range("ways", self.ways, -1, self.task.A - 1)


class Wide:
    """A scout's plan beside that of its agent, which has just been made.

    Attributes
    ----------
    values : (S,) what the plan thinks that a start is worth
    gaps, actions : (H, S) what its action loses, as the agent thinks; 0 where it is one of the agent's
    best : (H, A, S) the agent's actions
    """

    def __init__(self, agent: LSVIUCBScouts) -> None:
        planner, horizon, (A, S) = agent._planner, agent.horizon, (agent.task.A, agent.task.S or 0)
        explore, ridge = planner.exploration, planner.ridge
        storage: Any = planner.storage  # counts
        self.horizon, self.ridge, self.storage, self.shape = horizon, ridge, storage, (A, S)
        self.gaps, self.actions = np.zeros((horizon.H, S)), np.zeros((horizon.H, S), dtype=np.int16)
        self.best = np.zeros((horizon.H, A, S), dtype=np.bool_)
        V: Array = np.zeros(S)
        for h in reversed(range(horizon.H)):
            g, forms = horizon.group(h), storage.forms[horizon.group(h)]
            z: Any = storage.followed_by(g, V) if horizon.leads_on(h) else 0.0
            z = z + explore.ended_target(h) if explore.adaptive else z
            own, wide = np.stack((planner.w[horizon.level(h)], ridge.fit(g, ridge.u[g] + z))) @ storage.columns
            top = float(explore.caps[h])  # the most, in the units of the regression
            least = np.maximum(own - float(ridge.lam) * abs(own) * forms, top - agent.spans[h]).reshape(A, S)
            q = explore.q(h, own[None], forms).reshape(A, S)
            wide += agent.scout * agent.spans[h] * forms
            wide = explore.q(h, wide[None], forms).reshape(A, S)
            V = wide.max(axis=0)
            least = np.where(explore.best(wide), least, -np.inf)
            action = least.argmax(axis=0)
            self.best[h], self.actions[h] = explore.best(q), action
            gap = q.max(axis=0) - np.take_along_axis(least, action[None], 0)[0]
            self.gaps[h] = np.where(np.take_along_axis(self.best[h], action[None], 0)[0], 0.0, np.maximum(gap, 0.0))
        self.values = V + float(agent.caps[0] - explore.caps[0])

    def ways(self, limit: float) -> tuple[IntArray, Array]:
        """Where a scout deviates that may cost `limit`: its actions (H, S), else -1, and its cost from each start."""
        horizon, (A, S) = self.horizon, self.shape
        ways, cost = np.full((horizon.H, S), -1, dtype=np.int16), np.zeros(S)
        for h in reversed(range(horizon.H)):
            g, after = horizon.group(h), np.zeros((A, S))
            if horizon.leads_on(h) and cost.any():
                w = self.ridge.fit(g, self.storage.followed_by(g, cost))
                after = np.maximum(w @ self.storage.columns, 0.0).reshape(A, S)
            stay = (after * self.best[h]).sum(axis=0) / self.best[h].sum(axis=0)
            there = self.gaps[h] + np.take_along_axis(after, self.actions[h][None].astype(int), 0)[0]
            away = (self.gaps[h] > 0) & (there <= limit)
            ways[h] = np.where(away, self.actions[h], -1)
            cost = np.where(away, there, np.minimum(stay, limit))
        return ways, cost
