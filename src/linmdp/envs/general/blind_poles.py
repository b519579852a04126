"""Poles on carts whose velocities are not seen: only where the cart is and how the pole leans.

Everything else is as in the family of poles, and so is the best known return: who remembers the last observation
knows the velocities, up to their noise.
"""

from __future__ import annotations

from itertools import compress

import numpy as np
from gymnasium import spaces

from linmdp.envs.general.base import Family
from linmdp.envs.general.physics import Numbers
from linmdp.envs.general.poles import FAMILY as POLES
from linmdp.envs.general.poles import Poles


class BlindPoles(Poles):
    """A cart with its pole, without velocities."""

    def __init__(self, rng: np.random.Generator) -> None:
        super().__init__(rng)
        self.seen = np.isfinite(self._high)
        self._low, self._high = self._low[self.seen], self._high[self.seen]
        self.observation_space = spaces.Box(self._low, self._high, dtype=np.float32)

    def observed(self, x: Numbers) -> Numbers:
        """What has bounds: place and angle."""
        return list(compress(super().observed(x), self.seen))


FAMILY = Family(name="blind_poles", half="memory", make=BlindPoles, H=POLES.H, episodes=POLES.episodes, best=POLES.best)
