"""The actions of an environment as whole numbers from 0 on; several choices at once are numbered together."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from gymnasium import spaces

from linmdp.errors import InvalidParameter

MOST_ACTIONS = 1024
"""Combinations of choices that are still counted as actions, one by one."""


class Actions:
    """How the actions 0 to A-1 of an agent become those of an environment.

    Parameters
    ----------
    id : the environment's name, for errors
    space : Discrete, MultiDiscrete or MultiBinary
    """

    def __init__(self, id: str, space: spaces.Space[Any]) -> None:
        sizes: tuple[int, ...]
        if isinstance(space, spaces.Discrete):
            sizes, start = (int(space.n),), np.array([space.start])
        elif isinstance(space, spaces.MultiDiscrete):
            sizes, start = tuple(int(n) for n in space.nvec.ravel()), space.start.ravel()
        elif isinstance(space, spaces.MultiBinary):
            sizes = (2,) * int(np.prod(space.shape))
            start = np.zeros(len(sizes), dtype=np.int64)
        else:
            rule = "must be Discrete, MultiDiscrete or MultiBinary"
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
        return parts.reshape(self._shape).astype(self._dtype)
