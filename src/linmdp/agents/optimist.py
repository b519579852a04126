"""The optimist that insures another agent: LSVI-UCB at a width with a proof."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from linmdp.agents.backend import NUMPY, Backend
from linmdp.agents.exploration.base import Exploration
from linmdp.agents.exploration.bonus import Inflated
from linmdp.agents.schedules.rare_switch import LSVIUCBRareSwitch, RareSwitch
from linmdp.agents.widths import table_width, theorem_width
from linmdp.errors import InvalidParameter, check_choice, check_number, invalid
from linmdp.features.unit import is_unit
from linmdp.types import Array, IntArray, State, Task

WIDTHS = ("theory", "tables")


class Optimist(LSVIUCBRareSwitch):
    """LSVI-UCB with a fixed lambda and a width that makes it optimistic, clipped on both sides.

    Where several actions share the largest Q, as they do at the cap, it plays the one with the largest score before
    the cap: the one that least is known about.

    Parameters
    ----------
    width : "theory" (the theorem's), "tables" (for unit vectors: narrower, optimistic, but no bound of the regret), or
        a number, with which nothing is proved
    p : the chance that the width is too small
    delta : how far the task is from a linear one: the width grows by delta sqrt(samples)
    common : the parameters of `LSVIUCBRareSwitch`
    """

    name = "optimist"
    schedule: RareSwitch

    def __init__(
        self, task: Task, *, width: float | str = "theory", p: float = 0.05, delta: float = 0.0, **common: Any
    ) -> None:
        self.width, self.p, self.delta = width, p, delta
        super().__init__(task, **{"beta": 1.0, "lam": 1.0, "eta": 2.0, **common})
        check_number(self.name, "p", p, low=0.0, high=1.0, open_low=True)
        check_number(self.name, "delta", delta, low=0.0)
        check_number(self.name, "lam", self.lam, low=1.0)
        if isinstance(width, str):
            check_choice(self.name, "width", width, WIDTHS)
        else:
            check_number(self.name, "width", width, low=0.0)
        if width == "tables" and not (task.S is not None and is_unit(task.features)):
            raise InvalidParameter(
                f"With width='tables' {self.name} needs finite states whose features are unit vectors: "
                "give width='theory' or a number."
            )
        if width == "tables" and (self.inflate or self.horizon.shared):
            invalid(self.name, "width", "'theory' where memory is bounded or one regression serves all steps", width)
        self._doublings = 0
        self.prepare_for(1)

    def make_exploration(self, beta: Any, backend: Backend = NUMPY) -> Exploration:
        return Inflated(self.horizon, self.caps, beta, self.horizon.lows(self.task.reward_range[0]), self.inflate)

    @property
    def spans(self) -> Array:
        """How much the values of each step can differ, (H,)."""
        return np.asarray(self.caps - self.horizon.lows(self.task.reward_range[0]))

    def prepare_for(self, k: int, *, anew: bool = False) -> None:
        """The width of episode k. Where K is not known it is that of the next 2^j, with p / (j (j + 1)) for p.

        `anew`: for what was saved in that episode.
        """
        j = 1 if self._K is not None else max(1, (k - 1).bit_length())
        if anew or j != self._doublings:
            self._doublings = j
            K, p = (1 << j, self.p / (j * (j + 1))) if self._K is None else (self._K, self.p)
            beta = self.width_for(K, p)
            self._planner.change_beta(beta)  # type: ignore[arg-type]  # of each step
            self.beta_value = float(beta[0])
            self.schedule.grown[:] = np.finfo(np.float64).max  # plan before the next episode

    def width_for(self, K: int, p: float) -> Array:
        """The width of each step for K episodes, (H,)."""
        samples, lam, H = K * self.horizon.samples_per_episode, self.lam_value, self.task.H
        drift = self.delta * math.sqrt(samples)
        if self.width == "tables":
            return table_width(self.spans, d=self.task.d, K=samples, lam=lam, p=p) + drift
        beta = self.width
        if isinstance(beta, str):
            unit = float(self.spans[0]) / H or 1.0  # what rewards are measured in, where they are within [0, 1]
            beta = unit * theorem_width(d=self.task.d, H=H, K=samples, lam=lam, p=p, more=drift / unit)
        return np.full(H, beta + drift)

    def _tied(self, h: int, state: State) -> IntArray:
        """Those of largest score among the actions that share the largest Q."""
        return self._foremost(h, state, super()._tied(h, state))

    def policy(self, h: int) -> Array | IntArray:
        """(S, A) probabilities."""
        best: Array = np.array(self._planner.storage.best_table(self.horizon.acting(h)).T, dtype=np.float64)
        for state in np.flatnonzero(best.sum(axis=1) > 1):
            foremost = self._foremost(h, int(state), best[state].nonzero()[0])
            best[state] = 0.0
            best[state, foremost] = 1 / len(foremost)
        return best

    def _foremost(self, h: int, state: State, tied: IntArray) -> IntArray:
        """Those of the tied actions whose score before the cap is the largest."""
        if len(tied) == 1:
            return tied
        explore, storage = self._exploration, self._planner.storage
        capped, explore.caps = explore.caps, np.full_like(explore.caps, np.inf)
        try:
            scores = storage.q_values(self.horizon.acting(h), state)[tied]
        finally:
            explore.caps = capped
        foremost: IntArray = tied[scores >= scores.max() - explore.tie]
        return foremost
