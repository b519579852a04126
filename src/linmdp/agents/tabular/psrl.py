"""PSRL (Osband, Russo, Van Roy, 2013): play what is optimal in a model drawn from the posterior."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from linmdp.agents.tabular.model import TabularModel
from linmdp.errors import check_number
from linmdp.types import Array, Task


class PSRL(TabularModel):
    """PSRL: each episode follows the optimal policy of one model, drawn from the posterior; finite states only.

    Parameters
    ----------
    prior : what the transitions of a state and action count before the first visit, spread over all states:
        Dirichlet(prior / S). Mean rewards, scaled to [0, 1], have the prior Beta(1, 1)
    stationary, episodes, max_bytes : as for ucbvi
    """

    name = "psrl"
    _sums: ClassVar = ("_N", "_R", "_C")
    test_parameters = ({"stationary": True, "prior": 3.0},)

    def __init__(self, task: Task, *, prior: float = 1.0, **common: Any) -> None:
        super().__init__(task, **common)
        self.prior = prior
        self._prior = check_number(self.name, "prior", prior, low=0.0, open_low=True) / self._Q.shape[1]
        self._drawn: list[tuple[Array, Array]] = []
        self._hold_to_limit()

    def _plan(self) -> None:
        self._drawn = [self._draw(t) for t in range(len(self._N))]
        super()._plan()
        self._drawn = []

    def _draw(self, t: int) -> tuple[Array, Array]:
        """Mean rewards (S, A) and transitions (S, A, S+1) of one table."""
        (low, high), N = self.task.reward_range, self._N[t]
        paid = np.clip((self._R[t] - low * N) / max(high - low, 1e-12), 0.0, N)
        r = low + (high - low) * self.rng.beta(1 + paid, 1 + N - paid)
        alpha = self._C[t].copy()
        alpha[..., :-1] += self._prior  # an end of the episode is expected only once it was seen
        P = self.rng.standard_gamma(alpha)
        P /= P.sum(axis=-1, keepdims=True)
        return r, P

    def _backup(self, h: int, V: Array) -> Array:
        r, P = self._drawn[self._table(h)]
        q: Array = r + P @ V
        return q
