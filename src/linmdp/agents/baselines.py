"""Policies that learn nothing: the baselines beside which every learner is shown."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from linmdp.agents.base import TIE, Agent, StateDict, saved_array
from linmdp.agents.budget import held_within
from linmdp.errors import check_int
from linmdp.types import Array, IntArray, State, Task


class RandomAgent(Agent):
    """Plays every action with the same probability."""

    name = "random"
    needs_features = False

    def __init__(self, task: Task, *, max_bytes: int | str | None = None) -> None:
        super().__init__(task)
        self.max_bytes, self.chosen = max_bytes, held_within(self.name, max_bytes, 0)

    def act(self, h: int, state: State) -> int:
        return int(self.rng.integers(self.task.A))

    def q_values(self, h: int, state: State) -> Array:
        """Zero: it believes nothing."""
        return np.zeros(self.task.A)

    def policy(self, h: int) -> Array | IntArray:
        assert self.task.S is not None
        return np.full((self.task.S, self.task.A), 1 / self.task.A)


class ConstantAgent(Agent):
    """Plays one action always, as a saturated learner with the paper's argmax does.

    Parameters
    ----------
    action : the one that it plays
    """

    name = "constant"
    needs_features = False

    def __init__(self, task: Task, *, action: int = 0, max_bytes: int | str | None = None) -> None:
        super().__init__(task)
        self.max_bytes, self.chosen = max_bytes, held_within(self.name, max_bytes, 0)
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
    """Plays the optimal policy, which it is told: `Q` (H, S, A) comes from planning in the model.

    Where the model drifts, `Q` is a function of the episode k = 0, 1, ...
    """

    name = "optimal"
    needs_features = False
    supplied = ("Q",)
    _derived = (*Agent._derived, "_Q")

    def __init__(self, task: Task, *, Q: Array | Callable[[int], Array], max_bytes: int | str | None = None) -> None:
        super().__init__(task)
        self._k, self._of = -1, Q if callable(Q) else None
        self._Q = np.array(Q(0) if callable(Q) else Q, order="C")
        self.max_bytes, self.chosen = max_bytes, held_within(self.name, max_bytes, self._Q.nbytes)

    def begin_episode(self) -> None:
        self._k += 1
        self._follow()

    def _follow(self) -> None:
        if self._of is not None and not np.array_equal(self._Q, now := self._of(max(self._k, 0))):
            self._Q[:] = now
            self.policy_version += 1

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

    def state_dict(self) -> StateDict:
        return super().state_dict() | ({} if self._of is None else {"k": np.array(self._k)})

    def _load(self, state: Mapping[str, np.ndarray]) -> None:
        super()._load(state)
        if self._of is not None:
            self._k, version = int(saved_array(state, "k")), self.policy_version
            self._follow()
            self.policy_version = version
