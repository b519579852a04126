"""LMC-LSVI (Ishfaq et al., 2024): a few noisy gradient steps from the last weights, in place of a draw."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from linmdp.agents.backend import NUMPY, Backend, zeros
from linmdp.agents.exploration.base import Exploration
from linmdp.agents.exploration.perturbation import Perturbation
from linmdp.agents.exploration.randomised import refuse_blocks
from linmdp.agents.lsvi import LSVIAgent
from linmdp.errors import check_int
from linmdp.types import Task


class Langevin(Perturbation):
    """w~ <- w~ - 2 rho (Lambda w~ - u - z) + 2 beta sqrt(rho) g, J times, with rho = 1 / (4 lambda_max(Lambda)).

    For ever, that would draw from N(w, beta^2 Lambda^-1). Lambda w~ - u - z is Lambda (w~ - w), which is done in the
    basis in which Lambda^-1 is diagonal. W, (levels, 1, d), is w~.
    """

    batched: ClassVar = False
    _scratch: ClassVar = ("_shift", "_values", "_vectors")

    def __init__(self, agent: LSVIAgent, beta: Any, steps: int) -> None:
        super().__init__(agent, beta, 1)
        G, levels, d = agent.horizon.groups, agent.horizon.levels, agent.task.d
        self._shift = zeros((levels, steps, d))  # the g of this planning
        self._values, self._vectors = zeros((G, d)), zeros((G, d, d))

    def begin(self) -> None:
        self.plannings += 1
        self._shift[:] = self.normal(*self._shift.shape)
        self._values[:], self._vectors[:] = np.linalg.eigh(self.ridge.Lambda_inv)

    def planned(self, h: int, mask: Any) -> None:
        if mask is not None and not mask.any():
            return
        level, g = self.horizon.level(h), self.horizon.group(h)
        least, basis = self._values[g, 0], self._vectors[g]
        rho, shrink = least / 4, 1 - least / (2 * self._values[g])  # 1 - 2 rho / (eigenvalue of Lambda^-1)
        away = (self.W[level, 0] - self.w[level]) @ basis
        for noise in self._shift[level] @ basis:
            away = shrink * away + 2 * self.beta[h] * rho**0.5 * noise
        self.W[level, 0] = self.w[level] + basis @ away


class LMCLSVI(LSVIAgent):
    """LMC-LSVI: weights follow noisy gradient steps (Langevin Monte Carlo), warm-started from the last planning.

    Parameters
    ----------
    steps : gradient steps per planning, J of the paper
    common : the parameters of `LSVIUCB`; beta is the standard deviation that the steps tend to
    """

    name, follows_evidence, own_weights = "lmc-lsvi", False, True
    test_parameters = ({}, {"beta": 0.3, "steps": 3}, {"storage": "features"})

    def __init__(self, task: Task, *, steps: int = 20, **common: Any) -> None:
        self.steps = steps
        super().__init__(task, **common)

    def make_exploration(self, beta: Any, backend: Backend = NUMPY) -> Exploration:
        refuse_blocks(self)
        return Langevin(self, beta, check_int(self.name, "steps", self.steps, low=1, high=100_000))
