"""LSVI-PHE (Ishfaq et al., 2021): perturbed weights in place of a bonus."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np

from linmdp.agents.backend import NUMPY, Backend, zeros
from linmdp.agents.exploration.base import Exploration
from linmdp.agents.lsvi import LSVIAgent
from linmdp.errors import check_int
from linmdp.types import Array, Task

ROWS = 256
"""States that are valued together, at most, where there is no table of them."""


class Perturbation(Exploration):
    """Q = min(max_m phi'w^m, cap_h), w^m = w + beta Lambda^{-1/2} g^m, with fresh g^m ~ N(0, I) at every planning.

    Each planning has random numbers of its own, the same alone and in lockstep.

    Attributes
    ----------
    W : (levels, draws, *batch, d) the weights w^m
    seeds : (*batch) one per run, taken from the generator of its agent
    plannings : so far
    """

    batched: ClassVar = True
    _arrays: ClassVar = ("seeds", "W")
    _counters: ClassVar = ("plannings",)
    _scratch: ClassVar[tuple[str, ...]] = ("_shift",)
    _run_axis: ClassVar = {"seeds": 0, "W": 2}

    def __init__(self, agent: LSVIAgent, beta: Any, draws: int, backend: Backend = NUMPY) -> None:
        super().__init__(agent.horizon, agent.caps, beta, backend)
        self.per_step, shape = draws, (self.horizon.levels, draws, *self.beta.shape[1:], agent.task.d)
        self.W, self._shift, self._task = zeros(shape), zeros(shape), agent.task
        self.seeds, self.plannings = np.zeros(self.beta.shape[1:] or 1, dtype=np.int64), 0

    def seed(self, generators: Sequence[np.random.Generator]) -> None:
        if not self.seeds.any():
            self.seeds[:] = [rng.integers(1, 2**62) for rng in generators]

    def working_bytes(self, samples: int) -> int:
        levels, draws, *_, d = self.W.shape
        return int(16 * (draws - 1) * (levels * d + self._task.A * max(self._task.S or 0, ROWS)))

    def normal(self, *shape: int) -> Array:
        """Standard normal numbers of this planning, (*shape[:-1], *batch, shape[-1])."""
        draws = [np.random.default_rng((seed, self.plannings)).standard_normal(shape) for seed in self.seeds]
        return np.stack(draws, axis=-2) if self.beta.ndim > 1 else draws[0]

    def begin(self) -> None:
        self.plannings += 1
        levels, draws, *_, d = self.W.shape
        self._shift[:] = self.ridge.correlated(self.normal(levels, draws, d))  # ~ N(0, Lambda^-1)

    def planned(self, h: int, mask: Any) -> None:
        level = self.horizon.level(h)
        new = self.w[level] + self.beta[h][..., None] * self._shift[level]
        self.W[level] = new if mask is None else np.where(mask[..., None], new, self.W[level])

    def vectors(self, h: int, v: Any = None) -> Any:
        return self.W[self.horizon.level(h)]

    def raised(self, h: int, products: Any, forms: Any) -> Any:
        return products.max(axis=0)


class LSVIPHE(LSVIAgent):
    """LSVI-PHE: the optimistic value is the largest of several perturbed regressions; there is no bonus.

    Parameters
    ----------
    draws : perturbed weight vectors per step, M of the paper
    common : the parameters of `LSVIUCB`; beta is the standard deviation of the perturbation
    """

    name, follows_evidence, own_weights, in_lockstep = "lsvi-phe", False, True, True
    test_parameters = (
        {},
        {"beta": 0.3, "draws": 2},
        {"storage": "features"},
        {"stationary": True, "discount": 0.9},
        {"lam": "auto"},
    )

    def __init__(self, task: Task, *, draws: int = 10, **common: Any) -> None:
        self.draws = draws
        super().__init__(task, **common)

    def make_exploration(self, beta: Any, backend: Backend = NUMPY) -> Exploration:
        return Perturbation(self, beta, check_int(self.name, "draws", self.draws, low=1, high=1000), backend)
