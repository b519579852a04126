"""Explore, then commit, over constant policies: what one action, played always, can earn."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from linmdp.agents.base import Component
from linmdp.agents.greedy import USUAL_EPISODES, GreedyAgent
from linmdp.errors import check_int
from linmdp.types import Array, State, Task


class Returns(Component):
    """Episodes in which each action was played, and the sums of their returns; that of the current one is `now`."""

    _arrays = ("plays", "sums", "now")

    def __init__(self, A: int) -> None:
        self.plays, self.sums, self.now = np.zeros(A), np.zeros(A), np.zeros(1)

    @property
    def means(self) -> Array:
        """Mean return of each action, 0 before it is played."""
        found: Array = self.sums / np.maximum(self.plays, 1.0)
        return found


class BestConstant(GreedyAgent):
    """Plays each action always for `rounds` episodes, in turn, then the one with the best mean return to the end.

    What it tries out is part of its run, and of its regret. It looks at no state.

    Parameters
    ----------
    rounds : episodes of each action; default: K^(2/3) / A, at least 1, the order that is best for explore-then-commit
    episodes : K, for rounds; 100 where it is not given
    """

    name = "best-constant"
    needs_features = False
    test_parameters = ({}, {"rounds": 2})
    _members = ("_returns",)

    def __init__(self, task: Task, *, rounds: int | None = None, episodes: int | None = None) -> None:
        super().__init__(task)
        self.rounds, self.episodes = rounds, episodes
        K = USUAL_EPISODES if episodes is None else check_int(self.name, "episodes", episodes, low=1)
        usual = max(1, math.floor(K ** (2 / 3) / task.A))
        self._rounds = usual if rounds is None else check_int(self.name, "rounds", rounds, low=1)
        self._returns = Returns(task.A)

    def _action(self) -> int:
        """The one that is least played, the first of these; once all had their rounds, the best."""
        plays = self._returns.plays
        return int(plays.argmin()) if plays.min() < self._rounds else int(self._returns.means.argmax())

    def begin_episode(self) -> None:
        super().begin_episode()
        self._returns.now[:] = 0.0

    def observe(self, h: int, state: State, action: int, reward: float, next_state: State, terminated: bool) -> None:
        super().observe(h, state, action, reward, next_state, terminated)
        self._returns.now += reward

    def end_episode(self) -> None:
        super().end_episode()
        returns, before = self._returns, self._action()
        if returns.plays.min() < self._rounds:  # what is earned after that is not needed
            returns.plays[before] += 1
            returns.sums[before] += returns.now[0]
        if self._action() != before:
            self._planned()

    def _q(self, h: int, states: Sequence[State]) -> Array:
        """One for its action, zero for the others."""
        return np.tile(np.eye(self.task.A)[self._action()], (len(states), 1))
