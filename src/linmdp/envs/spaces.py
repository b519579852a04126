"""Gymnasium's spaces, taken apart: their numbers, their choices, and the words in them that are left out."""

from __future__ import annotations

from typing import Any

import numpy as np
from gymnasium import spaces

from linmdp.errors import InvalidParameter
from linmdp.features.learned import Layout, width_of

LARGEST_WIDTH = 4096
"""Numbers in one observation: beyond it (pictures) a network of dense layers is the wrong tool."""


def layout_of(id: str, space: spaces.Space[Any]) -> Layout:
    """The parts of a flat observation of that space."""
    parts = tuple(_parts(id, space))
    width = width_of(parts)
    if not 0 < width <= LARGEST_WIDTH:
        hint = " (for Atari leave 'obs_type' out: the RAM)" if id.startswith("ALE/") else ""
        raise InvalidParameter(f"Observations of '{id}' must have 1 to {LARGEST_WIDTH} numbers{hint}. Got {width}.")
    return parts


def _parts(id: str, space: spaces.Space[Any]) -> list[tuple[str, int]]:
    if isinstance(space, spaces.Box | spaces.MultiBinary):
        return [("box", int(np.prod(space.shape)))]
    if isinstance(space, spaces.Discrete):
        return [("onehot", int(space.n))]
    if isinstance(space, spaces.MultiDiscrete):
        return [("onehot", int(n)) for n in space.nvec.ravel()]
    if isinstance(space, spaces.Dict | spaces.Tuple):
        return [part for one in inner_spaces(space).values() if not is_text(one) for part in _parts(id, one)]
    raise InvalidParameter(f"Observations of '{id}' must be Box, Discrete, or Dict or Tuple of those. Got {space}.")


def is_text(space: spaces.Space[Any]) -> bool:
    """Whether it is a space of words, which no map here can read: they are left out of a Dict or a Tuple."""
    return space.dtype is not None and space.dtype.kind == "U"


def inner_spaces(space: spaces.Space[Any]) -> dict[Any, spaces.Space[Any]]:
    """What a Dict or a Tuple is made of, by key or place; of any other space, nothing."""
    if isinstance(space, spaces.Dict):
        return dict(space.spaces)
    return dict(enumerate(space.spaces)) if isinstance(space, spaces.Tuple) else {}


def choices(space: spaces.Space[Any]) -> tuple[np.ndarray, np.ndarray] | None:
    """The first value and the number of values of each whole number, of a space that is made of them alone."""
    if isinstance(space, spaces.Discrete):
        return np.array(space.start), np.array(space.n)
    if isinstance(space, spaces.MultiDiscrete):
        return space.start, space.nvec
    if isinstance(space, spaces.MultiBinary):
        return np.zeros(space.shape, dtype=np.int64), np.full(space.shape, 2)
    return None


def leaves(space: spaces.Space[Any], name: str = "observation") -> dict[str, spaces.Space[Any]]:
    """The spaces that are no Dict and no Tuple, by name."""
    inner = inner_spaces(space)
    if not inner:
        return {name: space}
    return {path: leaf for key, one in inner.items() for path, leaf in leaves(one, str(key)).items()}


def text_notes(id: str, space: spaces.Space[Any]) -> list[str]:
    """What a user should hear of text in observations."""
    words = [name for name, part in leaves(space).items() if is_text(part)]
    return [f"Observations of '{id}' have text, which is left out: {', '.join(words)}."] if words else []


def flat(space: spaces.Space[Any], observation: Any) -> np.ndarray:
    """The numbers of an observation in one row; whole numbers count from 0, and words are left out."""
    if isinstance(space, spaces.Dict | spaces.Tuple):
        pieces = (flat(one, observation[key]) for key, one in inner_spaces(space).items() if not is_text(one))
        return np.concatenate([np.empty(0, np.bool_), *pieces])  # of one part, too, a new array
    numbers: np.ndarray = np.asarray(observation)
    if isinstance(space, spaces.Discrete | spaces.MultiDiscrete):
        numbers = np.asarray(numbers - space.start)
    return numbers.ravel()
