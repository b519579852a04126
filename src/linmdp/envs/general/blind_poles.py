"""Poles on carts whose velocities are not seen: only where the cart is and how the pole leans.

Everything else is as in the family of poles, and so is the best known return: who remembers the last observation
knows the velocities, up to their noise.
"""

from __future__ import annotations

import numpy as np
from gymnasium import spaces

from linmdp.envs.general.base import Family
from linmdp.envs.general.poles import FAMILY as POLES
from linmdp.envs.general.poles import Poles
from linmdp.types import Array


class BlindPoles(Poles):
    """A cart with its pole, without speeds."""

    def __init__(self, rng: np.random.Generator) -> None:
        super().__init__(rng)
        full = self.observation_space
        assert isinstance(full, spaces.Box)
        self.seen = np.isfinite(full.high)
        self.observation_space = spaces.Box(full.low[self.seen], full.high[self.seen], dtype=np.float32)

    def observed(self, x: Array) -> Array:
        """What has bounds: place and angle."""
        return super().observed(x)[self.seen]


FAMILY = Family(name="blind_poles", half="memory", make=BlindPoles, H=POLES.H, episodes=POLES.episodes, best=POLES.best)
