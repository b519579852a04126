"""A hash of whole numbers that is the same on every machine."""

from __future__ import annotations

import numpy as np

ODD = 0x9E3779B97F4A7C15


def scattered(code: np.ndarray) -> np.ndarray:
    """A fixed mixing of 64 bits: neighbours end up far apart, and the same code always in the same place."""
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        code = (code ^ (code >> np.uint64(shift))) * np.uint64(factor)
    mixed: np.ndarray = code ^ (code >> np.uint64(31))
    return mixed
