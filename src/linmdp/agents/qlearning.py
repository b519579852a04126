"""Tabular Q-learning, for finite states: no features, no planning, one table. What linear agents are read against."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

import numpy as np

from linmdp.agents.budget import held_within
from linmdp.agents.greedy import Falling, GreedyAgent
from linmdp.errors import check_number, invalid
from linmdp.types import Array, State, Task


class _QLearner(GreedyAgent):
    """A table Q (T, S, A), T = H or 1, that moves towards r + discount * V(s') with a step of its own.

    What an episode brings is learned when it is over: until then the policy stands, and its regret is exact.
    """

    _arrays = ("_Q", "_N")
    _times = ("_N",)
    _scratch = ("_tops", "_seen", "_paid")  # the last two are of one episode

    def __init__(
        self,
        task: Task,
        falling: Falling | None = None,
        *,
        stationary: bool = False,
        discount: float | None = None,
        max_bytes: int | str | None = None,
    ) -> None:
        super().__init__(task, falling)
        self.stationary, self.discount, self.max_bytes = stationary, discount, max_bytes
        if not isinstance(stationary, bool):
            invalid(self.name, "stationary", "true or false", stationary)
        if discount is None:
            discount = 1 - 1 / task.H if stationary else 1.0
        self._discount = check_number(self.name, "discount", discount, low=0.0, high=1.0)
        H, self._tops = task.H, self._caps_of_table()  # the largest value of each step
        if stationary:
            self._tops = np.full(H, task.reward_range[1] * (self._discount ** np.arange(H)).sum())
        self._Q = np.zeros((1 if stationary else H, task.S or 0, task.A))
        self._N = np.zeros(self._Q.shape, dtype=np.int32)
        self._seen = np.zeros((H, 3), dtype=np.int64)  # state, action, next state; -1 where nothing follows
        self._paid, self._steps = np.zeros(H), 0
        self.chosen = held_within(self.name, max_bytes, self.nbytes + 24 * H)

    @abstractmethod
    def _step_size(self, n: int) -> float:
        """How far the n-th visit of a pair moves its Q."""

    def _bonus(self, n: int) -> float:
        """What the n-th visit of a pair adds to its target."""
        return 0.0

    def observe(self, h: int, state: State, action: int, reward: float, next_state: State, terminated: bool) -> None:
        super().observe(h, state, action, reward, next_state, terminated)
        self._seen[h] = state, action, -1 if terminated or h == self.task.H - 1 else next_state
        self._paid[h] = reward
        self._steps = h + 1

    def end_episode(self) -> None:
        """The steps in their order; in one table backwards, so that news travels in one episode."""
        super().end_episode()
        order = range(self._steps)
        for h in reversed(order) if self.stationary else order:
            self._learn(h, *self._seen[h].tolist())
        self._steps = 0
        self.policy_version += 1

    def _learn(self, h: int, state: int, action: int, following: int) -> None:
        at = (self._table(h), state, action)
        self._N[at] += 1
        n = int(self._N[at])
        target = self._paid[h] + self._bonus(n)
        if following >= 0:
            target += self._discount * self.q_values(h + 1, following).max()
        self._Q[at] += self._step_size(n) * (target - self._Q[at])
        self.updates += 1

    def _table(self, h: int) -> int:
        return 0 if self.stationary else h

    def _q(self, h: int, states: Any) -> Array:
        """min(Q_h, what the steps left can pay)."""
        q: Array = np.minimum(self._Q[self._table(h), states], self._tops[h])
        return q


class QLearning(_QLearner):
    """Optimistic Q-learning (UCB-Hoeffding of Jin et al., 2018) on a table; finite states only.

    Q starts at the largest value that there is. The n-th visit moves it by (H + 1) / (H + n) towards
    r + V(s') + c R H sqrt(H / n), where R is the width of the reward's range. The logarithm in the paper's bonus is
    taken into `c`, so that K need not be known. The paper's c is above 1: nothing is learned with it at any K that
    anyone runs.

    Parameters
    ----------
    c : scale of the bonus
    stationary : one table for all steps instead of H, for tasks whose dynamics do not depend on h
    discount : of the value of the next state; default: 1, or 1 - 1/H where stationary
    max_bytes : the most memory; there is nothing to choose, so less than it needs is refused
    """

    name = "q-learning"

    def __init__(self, task: Task, *, c: float = 1e-4, **common: Any) -> None:
        super().__init__(task, **common)
        self.c = c
        low, high = task.reward_range
        self._scale = check_number(self.name, "c", c, low=0.0, high=1e6) * (high - low) * task.H**1.5
        self.caps = self._tops
        self._Q[:] = self._tops[: len(self._Q), None, None]

    def _step_size(self, n: int) -> float:
        return (self.task.H + 1) / (self.task.H + n)

    def _bonus(self, n: int) -> float:
        return float(self._scale / np.sqrt(n))


class QLearningGreedy(_QLearner):
    """Textbook Q-learning on a table: epsilon-greedy, Q starts at 0; finite states only.

    Parameters
    ----------
    epsilon : chance of a random action
    alpha : step size; 0 takes 1 / n at the n-th visit, which averages
    stationary, discount, max_bytes : as for q-learning
    """

    name = "q-learning-greedy"

    def __init__(self, task: Task, *, epsilon: float = 0.1, alpha: float = 0.1, **common: Any) -> None:
        super().__init__(task, Falling(check_number(self.name, "epsilon", epsilon, low=0.0, high=1.0)), **common)
        self.epsilon, self.alpha = epsilon, alpha
        self._alpha = check_number(self.name, "alpha", alpha, low=0.0, high=1.0)

    def _step_size(self, n: int) -> float:
        return self._alpha or 1 / n
