"""Memory of one thing: what was seen at the start decides what is right at another time."""

from __future__ import annotations

from typing import Any

import numpy as np
from gymnasium import spaces

from linmdp.envs.general.base import Outcomes, TableInstance, explored, family, runs


@family("umbrella", "memory", H=15, episodes=runs(15))
class Umbrella(TableInstance):
    """Memory of one thing: what was seen at the start decides what is right at another time.

    In half of the instances, in the manner of bsuite's umbrella, the first observation is a forecast, and what is taken
    at the first step is carried until the last one, which pays if it fits the forecast and costs if not; nothing that
    is done in between matters. What is carried stays visible, the forecast does not. In the other half the fitting
    action is asked for at the last step, so that whoever forgets can only guess. Each step between pays a random coin.
    Shown are the forecast (only at the first step; else 0), what is carried, the steps that are left, and some coins
    that tell nothing.
    """

    def __init__(self, rng: np.random.Generator) -> None:
        H, A = int(rng.integers(3, 16)), int(rng.integers(2, 4))
        at = 0 if rng.random() < 0.5 else H - 1  # the step at which it is chosen
        won, order = float(rng.choice([1.0, 10.0])), rng.permutation(A) + 1
        lost = -won * float(rng.choice([0.0, 1.0]))

        def outcomes(state: tuple[int, int, int], action: int) -> Outcomes:
            h, forecast, carried = state
            if h == at:
                carried = int(order[action])
            if h < H - 1:
                return [(1.0, (h + 1, forecast, carried), 0.0)]
            return [(1.0, None, won if carried == forecast else lost)]

        model, self.states = explored({(0, f, 0): 1 / A for f in range(1, A + 1)}, A, H, outcomes)
        self.coins, self.coin = int(rng.integers(0, 5)), float(rng.choice([0.0, 0.1])) * won
        space = spaces.MultiDiscrete([A + 1, A + 1, H + 1, *[2] * self.coins])
        super().__init__(model, space=space)

    def move(self, action: int) -> tuple[float, bool]:
        reward, over = super().move(action)
        return reward if over else self.coin * float(1 - 2 * self.np_random.integers(2)), over

    def show(self) -> Any:
        h, forecast, carried = self.states[self.state]
        seen = [forecast if self.h == 0 else 0, carried, self.H - max(h, self.h)]
        return np.array([*seen, *self.np_random.integers(2, size=self.coins)])
