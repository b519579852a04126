"""The random numbers of the C library, for an agent in Python: see `linmdp_draws.h`, which says the same in C."""

from __future__ import annotations

import numpy as np

from linmdp.types import Array

_32 = 0xFFFFFFFF


def mixed(x: int) -> int:
    """A fixed mixing of 32 bits."""
    x = (x ^ (x >> 16)) * 0x7FEB352D & _32
    x = (x ^ (x >> 15)) * 0x846CA68B & _32
    return x ^ (x >> 16)


def draw(key: int, index: int) -> int:
    """Number `index` under a key, even over 32 bits."""
    return mixed((key + mixed((index + 0x9E3779B9) & _32)) & _32)


class DeviceDraws:
    """Stands in for the generator of an agent, so that it draws what the learner in C draws.

    Each call of a method is one use, with a key of its own.
    """

    def __init__(self, seed: int) -> None:
        self.seed, self.uses = seed & _32, 0

    def _key(self) -> int:
        key = draw(self.seed, self.uses)
        self.uses += 1
        return key

    def random(self, size: int) -> Array:
        """`size` numbers in [0, 1)."""
        key = self._key()
        return np.array([draw(key, i) / 2**32 for i in range(size)])
