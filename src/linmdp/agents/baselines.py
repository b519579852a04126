"""Policies that learn nothing: the baselines beside which every learner is shown."""

from __future__ import annotations

import numpy as np

from linmdp.agents.base import TIE, Agent
from linmdp.agents.budget import as_it_is
from linmdp.errors import check_int
from linmdp.types import Array, IntArray, State, Task


class RandomAgent(Agent):
    """Plays every action with the same probability."""

    name = "random"

    def __init__(self, task: Task, *, max_bytes: int | str | None = None) -> None:
        super().__init__(task)
        self.max_bytes, self.chosen = max_bytes, as_it_is(self.name, max_bytes, 0)

    def act(self, h: int, state: State) -> int:
        return int(self.rng.integers(self.task.A))

    def q_values(self, h: int, state: State) -> Array:
        """Zero: it believes nothing."""
        return np.zeros(self.task.A)

    def policy(self, h: int) -> Array | IntArray:
        assert self.task.S is not None
        return np.full((self.task.S, self.task.A), 1 / self.task.A)


class ConstantAgent(Agent):
    """Plays one action always, as a saturated learner with the paper's argmax does."""

    name = "constant"

    def __init__(self, task: Task, *, action: int = 0, max_bytes: int | str | None = None) -> None:
        super().__init__(task)
        self.max_bytes, self.chosen = max_bytes, as_it_is(self.name, max_bytes, 0)
        self.action = action
        self._action = check_int(self.name, "action", action, low=0, high=task.A - 1)

    def act(self, h: int, state: State) -> int:
        return self._action

    def q_values(self, h: int, state: State) -> Array:
        """One for its action, zero for the others."""
        return np.where(np.arange(self.task.A) == self._action, 1.0, 0.0)

    def policy(self, h: int) -> Array | IntArray:
        assert self.task.S is not None
        return np.full(self.task.S, self._action)


class OptimalAgent(Agent):
    """Plays the optimal policy, which it is told: `Q` (H, S, A) comes from planning in the model."""

    name = "optimal"
    _derived = (*Agent._derived, "_Q")

    def __init__(self, task: Task, *, Q: Array, max_bytes: int | str | None = None) -> None:
        super().__init__(task)
        self.max_bytes, self.chosen = max_bytes, as_it_is(self.name, max_bytes, Q.nbytes)
        self._Q = np.ascontiguousarray(Q)

    def act(self, h: int, state: State) -> int:
        q = self._Q[h, state]
        return int((q >= q.max() - TIE).argmax())

    def q_values(self, h: int, state: State) -> Array:
        """Q*_h(state, .)."""
        q: Array = self._Q[h, state]
        return q

    def policy(self, h: int) -> Array | IntArray:
        q = self._Q[h]
        actions: IntArray = (q >= q.max(axis=1, keepdims=True) - TIE).argmax(axis=1)
        return actions

    @property
    def nbytes(self) -> int:
        """Bytes of Q*."""
        return self._Q.nbytes
