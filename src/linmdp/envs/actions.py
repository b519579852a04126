"""The actions of an environment as whole numbers from 0 on; several choices at once are numbered together."""

from __future__ import annotations

import math
from functools import reduce
from typing import Any

import numpy as np
from gymnasium import spaces

from linmdp.envs.spaces import choices
from linmdp.errors import Fault, InvalidParameter, check_int, invalid
from linmdp.types import BoolArray

MOST_ACTIONS = 1024
"""Combinations of choices that are still counted as actions, one by one."""

USUAL = 5
"""Values of each coordinate of a Box, where nobody says and that many combinations are not too many."""


class Actions:
    """How the actions 0 to A-1 of an agent become those of an environment.

    Parameters
    ----------
    id : the environment's name, for errors
    space : Discrete, MultiDiscrete or MultiBinary, or a Box with bounds, which is cut into a grid
    each : values of each coordinate of a Box, evenly spaced, its bounds among them
    masks : whether the environment is asked which actions may be taken

    Attributes
    ----------
    A : number of actions
    each : values of each coordinate of a Box; None where there is none
    space : as it was given
    """

    def __init__(self, id: str, space: spaces.Space[Any], each: int | None = None, *, masks: bool = True) -> None:
        self.space = space
        self._masks, self.each, self._grid = masks, None, None
        if each is not None and not isinstance(space, spaces.Box):
            invalid(f"'{id}'", "actions", "left out where actions are no Box", each)
        if (found := choices(space)) is not None:
            start, sizes = found[0].ravel(), tuple(int(n) for n in found[1].ravel())
        elif isinstance(space, spaces.Box):
            n = int(np.prod(space.shape))
            self.each = _values(id, n, each)
            self._grid = _grid(id, space, self.each)
            start, sizes = np.zeros(n, dtype=np.int64), (self.each,) * n
        else:
            rule = "must be Discrete, MultiDiscrete, MultiBinary or Box; make it MultiDiscrete with a TransformAction"
            raise InvalidParameter(f"The action space of '{id}' {rule}. Got {space}.")
        self.A = math.prod(sizes)
        self._single = isinstance(space, spaces.Discrete)
        if self.A > MOST_ACTIONS and not self._single:
            raise InvalidParameter(
                f"The actions of '{id}' must have at most {MOST_ACTIONS} combinations. Got {self.A}."
            )
        self._sizes, self._start, self._shape, self._dtype = sizes, start, space.shape, space.dtype

    def __call__(self, action: int) -> Any:
        """The environment's action of that number."""
        if self._single:
            return action + int(self._start[0])
        parts = np.array(np.unravel_index(action, self._sizes)) + self._start
        if self._grid is not None:
            parts = self._grid[parts, np.arange(len(parts))]
        return parts.reshape(self._shape).astype(self._dtype)

    def nearest(self, action: Any) -> int:
        """The number of the action that is the environment's `action`; of a Box the nearest one of the grid."""
        parts = np.asarray(action).ravel()
        if self._grid is not None:
            parts = np.abs(self._grid - parts).argmin(axis=0)
        parts = parts - self._start
        if len(parts) != len(self._sizes) or not ((parts >= 0) & (parts < self._sizes)).all():
            raise Fault("action", f"one of {self.A}", action)
        return int(np.ravel_multi_index(tuple(parts.astype(np.int64)), self._sizes))

    def mask(self, env: Any, info: Any) -> BoolArray | None:
        """Which actions may be taken now, (A,); None where the environment does not say, or is not asked.

        It says so in `info["action_mask"]` or in a method `action_masks()`: one flag for each action or, where an
        action is several choices, one for each value of each choice, one choice after the other.
        """
        if not self._masks:
            return None
        given = info.get("action_mask") if isinstance(info, dict) else None
        if given is None and env.has_wrapper_attr("action_masks"):
            given = env.get_wrapper_attr("action_masks")()
        return None if given is None else self.mask_of(given)

    def mask_of(self, given: Any) -> BoolArray:
        """What an environment says of its actions, as one flag for each, (A,)."""
        flags = np.concatenate(given) if isinstance(given, tuple) else np.asarray(given)
        flags = flags.ravel().astype(np.bool_)
        if len(flags) == (self.A if self._single else sum(self._sizes)):
            parts = np.split(flags, np.cumsum(self._sizes)[:-1])
            together: BoolArray = reduce(np.logical_and.outer, parts).ravel()
            return together
        if len(flags) != self.A:
            raise Fault("action mask", f"{self.A} flags", given)
        return flags


def _values(id: str, n: int, each: int | None) -> int:
    """How many values each of n coordinates has."""
    if each is not None:
        return check_int(f"'{id}'", "actions", each, low=2, high=MOST_ACTIONS)
    most = max((k for k in range(2, USUAL + 1) if k**n <= MOST_ACTIONS), default=None)
    if most is None:
        raise InvalidParameter(
            f"The actions of '{id}' must have at most 10 coordinates, of two values each: make fewer of them with a "
            f"TransformAction. Got {n}."
        )
    return most


def _grid(id: str, space: spaces.Box, each: int) -> Any:
    """The values of each coordinate, (each, n)."""
    low, high = space.low.ravel().astype(np.float64), space.high.ravel().astype(np.float64)
    if not (np.isfinite(low) & np.isfinite(high)).all():
        raise InvalidParameter(f"The Box of actions of '{id}' must have bounds: use RescaleAction. Got {space}.")
    grid = np.linspace(low, high, each)
    return np.round(grid) if space.dtype is not None and space.dtype.kind in "iu" else grid
