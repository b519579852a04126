"""Fitted Q iteration with extremely randomised trees (Ernst, Geurts, Wehenkel, 2005)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from linmdp.agents.greedy import USUAL_EPISODES
from linmdp.agents.neighbours.base import EpsilonGreedy, Growth
from linmdp.agents.neighbours.forest import Forest
from linmdp.agents.neighbours.inputs import Inputs, RecentTransitions
from linmdp.errors import check_int
from linmdp.types import Array, State, Task


class FQITrees(EpsilonGreedy):
    """Fitted Q iteration: Q_n is a forest fitted to r + discount max_a Q_(n-1)(s', a) on all transitions, Q_0 = 0.

    A row is the state and the number of the action. Differences: data come from epsilon-greedy play, and Q is fitted
    anew when they have grown by a fraction; of a long run only the last transitions are kept; trees are grown anew at
    iterations 1, 2, 4, 8, ..., and in between they stay while the values of their leaves follow, which Ernst et al.
    have for the last iterations, so that these converge; fewer trees, and larger leaves.

    Parameters
    ----------
    trees : in the forest; the paper's: 50
    n_min : rows that a node must have to be split; the paper's: 2
    iterations : of each fit
    most : transitions kept, at most
    replan : fit when the number of steps has grown by this fraction
    """

    name = "fqi-trees"
    test_parameters = ({"trees": 3, "iterations": 9, "most": 300}, {"trees": 2, "n_min": 2, "replan": 1.0, "most": 50})
    _members = ("_data", "_forest", "_growth")

    def __init__(
        self,
        task: Task,
        *,
        trees: int = 10,
        n_min: int = 5,
        iterations: int = 50,
        most: int = 10_000,
        replan: float = 0.5,
        **common: Any,
    ) -> None:
        super().__init__(task, **common)
        self.trees, self.n_min, self.iterations, self.most, self.replan = trees, n_min, iterations, most, replan
        self.inputs = Inputs(self.name, task)
        self._iterations = check_int(self.name, "iterations", iterations, low=1)
        steps = task.H * (USUAL_EPISODES if self.episodes is None else self.episodes)
        most_kept = min(check_int(self.name, "most", most, low=1), max(steps, 1))
        smallest = check_int(self.name, "n_min", n_min, low=2)
        self._data = RecentTransitions(self.inputs.size, most_kept)
        self._forest = Forest(check_int(self.name, "trees", trees, low=1), most_kept, smallest)
        self._growth = Growth(self.name, replan)

    def begin_episode(self) -> None:
        super().begin_episode()
        if self._growth.due():
            self._fit()
            self._planned()

    def _rows(self, X: Array) -> Array:
        """A row for each state and action, (n A, size + 1)."""
        A = self.task.A
        return np.column_stack([np.repeat(X, A, axis=0), np.tile(np.arange(A), len(X))]).astype(np.float32)

    def _fit(self) -> None:
        data, forest, n = self._data, self._forest, len(self._data)
        rows = np.column_stack([data.X[:n], data.action[:n]]).astype(np.float32)
        reward, goes_on = data.reward[:n], ~data.ended[:n]
        later = self._rows(data.Y[:n][goes_on])
        y = reward.copy()
        for i in range(1, self._iterations + 1):
            if i & (i - 1) == 0:  # 1, 2, 4, 8, ...
                forest.grow(rows, y, self.rng)
                here, there = forest.leaves(rows), forest.leaves(later)
            else:
                forest.refresh(here, y)
            y = reward.copy()
            y[goes_on] += self._discount * forest.value[there].mean(axis=0).reshape(-1, self.task.A).max(axis=1)

    def _q(self, h: int, states: Sequence[State]) -> Array:
        return self._forest.predict(self._rows(self.inputs(h, states))).reshape(-1, self.task.A)

    def observe(self, h: int, state: State, action: int, reward: float, next_state: State, terminated: bool) -> None:
        super().observe(h, state, action, reward, next_state, terminated)
        x, y = self.inputs(h, [state])[0], self.inputs(h + 1, [next_state])[0]
        self._data.add(x, action, reward, y, terminated)
        self._growth.steps += 1
