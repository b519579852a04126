"""How observations become states: a whole number, its hash, or a flat vector in which an image is a few grey levels."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from gymnasium import spaces

from linmdp.envs.spaces import choices, flat, inner_spaces, is_text, layout_of, leaves
from linmdp.errors import InvalidParameter
from linmdp.features.unit import CODES, code_of
from linmdp.types import WHOLE, Array, State

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


MOST_STATES = 1 << 20
"""Combinations of whole numbers that are still counted as states, one by one."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Reading:
    """What is made of an observation.

    Attributes
    ----------
    read : from an observation to a state
    space : where states live; Discrete(S) if they are finite
    S : number of states, or None
    sizes : how many values each whole number in an observation has; empty if there are others
    """

    read: Callable[[Any], State]
    space: spaces.Space[Any]
    S: int | None = None
    sizes: tuple[int, ...] = ()


def _whole(observation: Any, first: int) -> State:
    """A whole number counted from 0; anything else as it is, for the run loop to refuse."""
    value = observation[()] if isinstance(observation, np.ndarray) and observation.ndim == 0 else observation
    return int(value) - first if isinstance(value, WHOLE) else value


def counted(id: str, space: spaces.Space[Any]) -> Reading | None:
    """States are numbered, if observations are whole numbers only; None if they are not."""
    if isinstance(space, spaces.Discrete):
        n, first = int(space.n), int(space.start)
        return Reading(read=partial(_whole, first=first), space=spaces.Discrete(n), S=n, sizes=(n,))
    if isinstance(space, spaces.MultiBinary):
        sizes = (2,) * int(np.prod(space.shape))
    else:
        layout = layout_of(id, space)
        if any(kind == "box" for kind, _ in layout):
            return None
        sizes = tuple(n for _, n in layout)
    if math.prod(sizes) > MOST_STATES:
        nvec = spaces.MultiDiscrete(np.array(sizes))
        return Reading(read=lambda o: flat(space, o).astype(np.int64), space=nvec, sizes=sizes)
    S = math.prod(sizes)
    return Reading(
        read=lambda o: int(np.ravel_multi_index(tuple(flat(space, o).astype(np.int64)), sizes)),
        space=spaces.Discrete(S),
        S=S,
        sizes=sizes,
    )


def hashed(id: str, space: spaces.Space[Any]) -> Reading:
    """States are numbers below 2^40, made of all whole numbers of an observation."""
    if not whole(space):
        raise InvalidParameter(f"Observations of '{id}' must be whole numbers for hashed features. Got {space}.")
    return Reading(read=lambda o: code_of(flat(space, o)), space=spaces.Discrete(CODES))


def numbers(id: str, space: spaces.Space[Any]) -> Reading:
    """States are flat vectors, whatever is in them; images are seen as grey levels."""
    plain, _ = _without_images(space)
    layout_of(id, plain)
    low, high = bounds(plain)
    dtype = plain.dtype if isinstance(plain, spaces.Box) else np.dtype(np.float64)
    return Reading(read=flattened(space), space=spaces.Box(low.astype(dtype), high.astype(dtype), dtype=dtype.type))


def flattened(space: spaces.Space[Any]) -> Callable[[Any], np.ndarray]:
    """From an observation to its numbers, grey levels for images, as a new array."""
    plain, simplified = _without_images(space)
    dtype = plain.dtype if isinstance(plain, spaces.Box) else np.dtype(np.float64)
    return lambda o: flat(plain, simplified(o)).astype(dtype)


def _without_images(space: spaces.Space[Any]) -> tuple[spaces.Space[Any], Callable[[Any], Any]]:
    """The space with grey levels for images, and how an observation gets there."""
    if is_image(space):
        assert isinstance(space, spaces.Box)
        grey = Grey(space)
        return grey.space, grey
    if not any(is_image(one) for one in leaves(space).values()):
        return space, lambda o: o
    inner = {key: _without_images(one) for key, one in inner_spaces(space).items()}
    plain = spaces.Dict({str(key): one for key, (one, _) in inner.items()})
    return plain, lambda o: {str(key): simplified(o[key]) for key, (_, simplified) in inner.items()}


def whole(space: spaces.Space[Any]) -> bool:
    """Whether observations are whole numbers only, and no image; text beside them does not count."""
    inner = [one for one in inner_spaces(space).values() if not is_text(one)]
    if inner:
        return all(whole(one) for one in inner)
    if isinstance(space, spaces.Box):
        return np.issubdtype(space.dtype, np.integer) and not is_image(space)
    return choices(space) is not None


def bounds(space: spaces.Space[Any]) -> tuple[Array, Array]:
    """The least and the largest value of each number in a flat observation, (k,) and (k,)."""
    if isinstance(space, spaces.Box):
        return space.low.ravel().astype(np.float64), space.high.ravel().astype(np.float64)
    if isinstance(space, spaces.Dict | spaces.Tuple):
        lows, highs = zip(*(bounds(one) for one in inner_spaces(space).values() if not is_text(one)), strict=True)
        return np.concatenate(lows), np.concatenate(highs)
    found = choices(space)
    high = np.ones(int(np.prod(space.shape or ()))) if found is None else found[1].ravel() - 1.0
    return np.zeros_like(high), high
