"""OPT-WLSVI (Touati, Vincent, 2020): a sample counts less with each episode that passes, and is never dropped."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from linmdp.agents.backend import NUMPY, Backend, zeros
from linmdp.agents.exploration.base import Exploration
from linmdp.agents.exploration.bonus import Bonus
from linmdp.agents.horizon import Horizon
from linmdp.agents.lsvi import LSVIAgent
from linmdp.agents.memory.base import Sample
from linmdp.agents.memory.samples import LARGEST_BLOCK, faded_after
from linmdp.agents.schedules.base import Decision, Power, Schedule, episodes_at
from linmdp.agents.schedules.restart import window
from linmdp.types import Array, Task


class WeightedBonus(Bonus):
    """beta sqrt(phi' Lambda^-1 Lambda~ Lambda^-1 phi): Lambda~ has the squares of the weights of Lambda.

    Attributes
    ----------
    squared : (G, d, d) Lambda~ - lam I
    """

    batched: ClassVar = False
    incremental: ClassVar = False
    _arrays: ClassVar = ("squared", "narrow")

    def __init__(self, horizon: Horizon, d: int, caps: Array, beta: float) -> None:
        super().__init__(horizon, caps, beta)
        self.squared, self.narrow = zeros((horizon.groups, d, d)), zeros((horizon.groups, d, d))

    def seen(self, g: int, sample: Sample) -> None:
        self.squared[g] += sample.phi[:, None] * sample.phi

    def fade(self, factor: float) -> None:
        self.squared *= factor * factor

    def forget(self, runs: Any = ...) -> None:
        self.squared[:] = 0.0

    def renew(self) -> None:
        inverses = self.ridge.Lambda_inv
        self.narrow[:] = inverses @ (self.squared + float(self.ridge.lam) * np.eye(inverses.shape[-1])) @ inverses

    def metric(self, g: int) -> Any:
        return self.narrow[g]


class Forgetting(Schedule):
    """Plan and store in every episode; samples fade by `eta` = 1 - 1/W with each."""

    reads_features: ClassVar = False
    _counters: ClassVar = ("k",)

    def __init__(self, G: int, W: int | Power) -> None:
        super().__init__(G)
        self._W, self.k = W, 0

    @property
    def eta(self) -> float:
        """What the weight of every sample is multiplied by in the current episode."""
        return 1 - 1 / episodes_at(self._W, max(self.k, 1))

    def begin_episode(self) -> Decision:
        self.k += 1
        return self.learn(self._all)

    def most_samples(self, episodes: int) -> int:
        return min(episodes, faded_after(1 - 1 / episodes_at(self._W, episodes)) + LARGEST_BLOCK)


class OptWLSVI(LSVIAgent):
    """OPT-WLSVI: LSVI-UCB in which the weight of a sample falls by the factor 1 - 1/W with every episode.

    Parameters
    ----------
    W : the window: after W episodes a sample counts about 0.37 times as much as a new one; default: sqrt(dK/B)
    B : how much the task is thought to change (its variation budget), where W is not given
    lam, common : the parameters of `LSVIUCB`
    """

    name = "opt-wlsvi"
    test_parameters = ({}, {"W": 6, "beta": 0.1, "lam": 0.1}, {"W": 1, "beta": 0.1, "storage": "features"})

    def __init__(
        self, task: Task, *, W: int | None = None, B: float = 1.0, lam: float | str = "auto", **common: Any
    ) -> None:
        self.W, self.B = W, B
        super().__init__(task, lam=lam, **common)

    def usual_storage(self, *, table: bool, unit: bool) -> str:
        return "counts" if table else super().usual_storage(table=table, unit=unit)

    def make_schedule(self) -> Forgetting:
        return Forgetting(self.horizon.groups, window(self, self.W, self.B))

    def make_exploration(self, beta: Any, backend: Backend = NUMPY) -> Exploration:
        if self.auto or self._storing.compact:
            return super().make_exploration(beta, backend)  # Lambda^-1 alone: a wider bonus, as Lambda~ <= Lambda
        return WeightedBonus(self.horizon, self.task.d, self.caps, beta)

    def begin_episode(self) -> None:
        super().begin_episode()
        assert isinstance(self.schedule, Forgetting)
        self._planner.fade(self.schedule.eta)  # what was planned acts on; the samples to come count in full
