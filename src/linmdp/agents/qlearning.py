"""Tabular Q-learning, for finite states: no features, no planning, one table. What linear agents are read against."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from typing import TypedDict, Unpack

import numpy as np

from linmdp.agents.base import TIE, Agent, StateDict, load_array
from linmdp.agents.budget import OBJECTS, chosen_within
from linmdp.agents.held import check_range
from linmdp.agents.horizon import Horizon
from linmdp.errors import InvalidParameter, check_number, invalid
from linmdp.types import Array, BoolArray, IntArray, State, Task


class Tabular(TypedDict, total=False):
    """The parameters that both take; `QLearning` documents them."""

    stationary: bool
    discount: float | None
    max_bytes: int | str | None


class _QLearner(Agent):
    """A table Q (T, S, A), T = H or 1, that moves towards r + discount * V(s') with a step of its own.

    What an episode brings is learned when it is over: until then the policy stands, and its regret is exact.
    """

    def __init__(
        self,
        task: Task,
        *,
        stationary: bool = False,
        discount: float | None = None,
        max_bytes: int | str | None = None,
    ) -> None:
        super().__init__(task)
        self.stationary, self.discount, self.max_bytes = stationary, discount, max_bytes
        if task.S is None:
            raise InvalidParameter(f"{self.name} needs finite states: a table has a row for each. Got a task without.")
        if not isinstance(stationary, bool):
            invalid(self.name, "stationary", "true or false", stationary)
        if discount is None:
            discount = 1 - 1 / task.H if stationary else 1.0
        self._discount = check_number(self.name, "discount", discount, low=0.0, high=1.0)
        H, tables = task.H, 1 if stationary else task.H
        self._tops: Array = Horizon(H).caps("remaining", task.reward_range[1])  # the largest value of each step
        if stationary:
            self._tops = np.full(H, task.reward_range[1] * (self._discount ** np.arange(H)).sum())
        cells, dtypes = tables * task.S * task.A, ({"dtype": "float64"}, {"dtype": "float32"})
        self.chosen = chosen_within(
            self.name, max_bytes, dtypes, lambda c: cells * (np.dtype(c["dtype"]).itemsize + 4) + 40 * H + OBJECTS
        )
        self._Q = np.zeros((tables, task.S, task.A), dtype=self.chosen.get("dtype", "float64"))
        self._N = np.zeros((tables, task.S, task.A), dtype=np.int32)
        self._seen = np.zeros((H, 3), dtype=np.int64)  # state, action, next state; -1 where nothing follows
        self._paid = np.zeros(H)
        self._steps = 0

    _ARRAYS = ("_Q", "_N")
    _derived = (*Agent._derived, "_tops", "_seen", "_paid")  # the last two are of one episode

    @abstractmethod
    def _step_size(self, n: int) -> float:
        """How far the n-th visit of a pair moves its Q."""

    def _bonus(self, n: int) -> float:
        """What the n-th visit of a pair adds to its target."""
        return 0.0

    def begin_episode(self) -> None:
        self._steps = 0

    def observe(self, h: int, state: State, action: int, reward: float, next_state: State, terminated: bool) -> None:
        self._seen[h] = state, action, -1 if terminated or h == self.task.H - 1 else next_state
        self._paid[h] = reward
        self._steps = h + 1

    def end_episode(self) -> None:
        """The steps in their order; in one table backwards, so that news travels in one episode."""
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

    def _best(self, q: Array) -> BoolArray:
        best: BoolArray = q >= q.max(axis=-1, keepdims=True) - TIE
        return best

    def act(self, h: int, state: State) -> int:
        """One of the best actions, each with the same chance."""
        tied = self._best(self.q_values(h, state)).nonzero()[0]
        return int(tied[0] if len(tied) == 1 else self.rng.choice(tied))

    def q_values(self, h: int, state: State) -> Array:
        """min(Q_h(state, .), what the steps left can pay), (A,)."""
        q: Array = np.minimum(self._Q[self._table(h), state], self._tops[h])
        return q

    def policy(self, h: int) -> Array | IntArray:
        best = self._best(np.minimum(self._Q[self._table(h)], self._tops[h]))
        chances: Array = best / best.sum(axis=1, keepdims=True)
        return chances

    @property
    def nbytes(self) -> int:
        """Bytes of the tables, and of one episode."""
        own = (self._Q, self._N, self._seen, self._paid, self._tops)
        return sum(int(array.nbytes) for array in own)

    def state_dict(self) -> StateDict:
        return super().state_dict() | {name[1:]: getattr(self, name).copy() for name in self._ARRAYS}

    def _load(self, state: Mapping[str, np.ndarray]) -> None:
        super()._load(state)
        for name in self._ARRAYS:
            load_array(getattr(self, name), state, name[1:])
        check_range("N", self._N, 0, np.inf)


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
    max_bytes : the most memory, as a number of bytes or "20KiB"; the table is kept in half the precision if it must
    """

    name = "q-learning"

    def __init__(self, task: Task, *, c: float = 1e-4, **common: Unpack[Tabular]) -> None:
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

    def __init__(self, task: Task, *, epsilon: float = 0.1, alpha: float = 0.1, **common: Unpack[Tabular]) -> None:
        super().__init__(task, **common)
        self.epsilon, self.alpha = epsilon, alpha
        self._epsilon = check_number(self.name, "epsilon", epsilon, low=0.0, high=1.0)
        self._alpha = check_number(self.name, "alpha", alpha, low=0.0, high=1.0)

    def _step_size(self, n: int) -> float:
        return self._alpha or 1 / n

    def act(self, h: int, state: State) -> int:
        if self.rng.random() < self._epsilon:
            return int(self.rng.integers(self.task.A))
        return super().act(h, state)

    def policy(self, h: int) -> Array | IntArray:
        chances: Array = (1 - self._epsilon) * super().policy(h) + self._epsilon / self.task.A
        return chances
