"""UCBVI (Azar, Osband, Munos, 2017): upper confidence bounds on the values of a counted model."""

from __future__ import annotations

import math
from typing import Any, ClassVar

import numpy as np

from linmdp.agents.tabular.model import TabularModel
from linmdp.errors import check_choice, check_number
from linmdp.types import Array, State, Task


class UCBVI(TabularModel):
    """UCBVI: value iteration in the counted model with a bonus on each state and action; finite states only.

    Parameters
    ----------
    bonus : "bernstein" (from the variance of the next value) or "hoeffding"
    c : what the bonus is multiplied by; 1 is the paper's
    delta : the chance with which the bounds of the paper may fail
    stationary : true: one table for all steps (the paper's), false: one for each; "auto": as the task says
    episodes : K, for the logarithm in the bonus; where it is not given, K is doubled whenever it is reached
    max_bytes : the most memory; there is nothing to choose, so less than it needs is refused
    """

    name = "ucbvi"
    test_parameters = ({}, {"bonus": "hoeffding", "c": 1.0, "stationary": True})
    _arrays: ClassVar = (*TabularModel._arrays, "_at")
    _sums: ClassVar = ("_N", "_R", "_C", "_at")

    def __init__(
        self,
        task: Task,
        *,
        bonus: str = "bernstein",
        c: float = 1e-3,
        delta: float = 0.1,
        **common: Any,
    ) -> None:
        super().__init__(task, **common)
        self.bonus, self.c, self.delta = bonus, c, delta
        check_choice(self.name, "bonus", bonus, ("bernstein", "hoeffding"))
        self._c = check_number(self.name, "c", c, low=0.0)
        self._delta = check_number(self.name, "delta", delta, low=0.0, high=1.0, open_low=True)
        self._width = task.reward_range[1] - task.reward_range[0]
        self._at = np.zeros((task.H, self._Q.shape[1]))  # N': visits of each state at each step
        self._hold_to_limit()

    def observe(self, h: int, state: State, action: int, reward: float, next_state: State, terminated: bool) -> None:
        super().observe(h, state, action, reward, next_state, terminated)
        self._at[h, state] += 1

    def _backup(self, h: int, V: Array) -> Array:
        n, r, P = self._means(h)
        q = r + P @ V + self._c * self._bonus(h, n, P, V)
        q[self._N[self._table(h)] == 0] = np.inf
        return np.asarray(np.minimum(q, self._Q[h]))  # Q never rises

    def _bonus(self, h: int, n: Array, P: Array, V: Array) -> Array:
        _, S, A = self._Q.shape
        H, L = self.task.H, math.log(5 * S * A * self._steps() / self._delta)
        if self.bonus == "hoeffding":  # Algorithm 3
            return np.asarray(7 * H * self._width * L / np.sqrt(n))
        variance = np.maximum(P @ (V * V) - (P @ V) ** 2, 0.0)  # Algorithm 4
        found: Array = np.sqrt(8 * L * variance / n) + 14 * H * self._width * L / (3 * n)
        if h < H - 1:
            unsure = np.minimum(1e4 * H**3 * S**2 * A * L**2 / np.maximum(self._at[h + 1], 1.0), H**2)
            found += self._width * np.sqrt(8 * (P[..., :-1] @ unsure) / n)
        return found
