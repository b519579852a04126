"""Images as a few grey levels: averages over equal areas, whatever the size of the image."""

from __future__ import annotations

from typing import Any

import numpy as np
from gymnasium import spaces

from linmdp.types import Array

SIDE = 10
"""Grey levels along each side."""
SMALLEST = 16
"""A box is an image where both sides have that many points; a grid of codes, such as MiniGrid's 7 x 7, is none."""
LARGEST_GRID = 32
"""A table of numbers that are no bytes, with at most that many on each side, is seen as it is."""
COLOURS = 3


class Grey:
    """From an image (height, width), (height, width, channels) or (channels, height, width) to grey levels.

    Three channels are colours, and their mean is taken; of any other number, such as frames in a stack, each is kept.

    Parameters
    ----------
    space : the images
    """

    def __init__(self, space: spaces.Box) -> None:
        shape = space.shape
        self._axis = int(np.argmin(shape)) if len(shape) == 3 else None
        height, width = (n for axis, n in enumerate(shape) if axis != self._axis)
        self._rows, self._columns = _areas(height), _areas(width).T
        channels = 1 if self._axis is None else shape[self._axis]
        self._mean = channels == COLOURS
        levels = SIDE * SIDE * (1 if self._mean else channels)
        low, high = float(space.low.min()), float(space.high.max())
        self.space = spaces.Box(low, high, (levels,), np.float32)

    def __call__(self, image: Any) -> Array:
        """Grey levels, (levels,) float32."""
        pixels = np.asarray(image)
        if self._axis is not None:
            pixels = pixels.mean(self._axis) if self._mean else np.moveaxis(pixels, self._axis, 0)
        levels: Array = (self._rows @ pixels @ self._columns).astype(np.float32).ravel()
        return levels


def is_image(space: spaces.Space[Any]) -> bool:
    """Whether observations of that space are looked at as images."""
    if not isinstance(space, spaces.Box) or len(space.shape) not in (2, 3):
        return False
    grid = len(space.shape) == 2 and space.dtype != np.uint8 and max(space.shape) <= LARGEST_GRID
    return sorted(space.shape)[-2] >= SMALLEST and not grid


def _areas(n: int) -> Array:
    """The mean over each of SIDE equal stretches of n points, as a matrix (SIDE, n)."""
    edges = np.linspace(0, n, SIDE + 1)
    points = np.arange(n)
    shared = np.minimum(edges[1:, None], points + 1) - np.maximum(edges[:-1, None], points)
    areas: Array = np.maximum(shared, 0.0) * SIDE / n
    return areas
