"""LSVI-UCB-Batch (Wang, Zhou, Gu, 2021): the episodes before which it plans are fixed in advance."""

from __future__ import annotations

import math
from typing import Any, ClassVar

from linmdp.agents.lsvi import LSVIAgent
from linmdp.agents.schedules.base import Decision, Schedule
from linmdp.errors import check_choice, check_int, invalid
from linmdp.types import Task

GRIDS = ("uniform", "geometric")


def grid_of(kind: str, K: int, batches: int) -> frozenset[int]:
    """The first episodes of at most that many batches: every floor(K/B) episodes, or ceil(K^(b/B))."""
    B = min(batches, K)
    if kind == "uniform":
        return frozenset(1 + b * (K // B) for b in range(B))
    return frozenset(math.ceil(round(math.pow(K, b / B), 9)) for b in range(B))


class Grid(Schedule):
    """Plan in the episodes of a grid; store always."""

    reads_features: ClassVar = False
    _counters: ClassVar = ("k",)

    def __init__(self, G: int, episodes: frozenset[int]) -> None:
        super().__init__(G)
        self.episodes, self.k = episodes, 0

    def begin_episode(self) -> Decision:
        self.k += 1
        return Decision(reset=False, plan=self._all if self.k in self.episodes else self._none, store=self._all)

    def plannings(self, episodes: int) -> int:
        return sum(k <= episodes for k in self.episodes)


class LSVIUCBBatch(LSVIAgent):
    """LSVI-UCB-Batch: LSVI-UCB that plans before the first episode of each of a few batches, and only then.

    Parameters
    ----------
    batches : how often it plans, at most
    grid : "uniform", batches of equal length (the paper's), or "geometric", each longer than the one before
    lam, common : the parameters of `LSVIUCB`; `episodes` (K) is needed
    """

    name, in_lockstep = "lsvi-ucb-batch", True
    test_parameters = ({}, {"batches": 5, "grid": "geometric", "beta": 0.1, "lam": 0.1}, {"storage": "features"})

    def __init__(
        self,
        task: Task,
        *,
        batches: int = 50,
        grid: str = "uniform",
        lam: float | str = "auto",
        **common: Any,
    ) -> None:
        self.batches, self.grid = batches, grid
        super().__init__(task, lam=lam, **common)

    def make_schedule(self) -> Schedule:
        check_choice(self.name, "grid", self.grid, GRIDS)
        if self._K is None:
            invalid(self.name, "episodes", "given: its grid depends on it", None)
        batches = check_int(self.name, "batches", self.batches, low=1)
        return Grid(self.horizon.groups, grid_of(self.grid, self._K, batches))
