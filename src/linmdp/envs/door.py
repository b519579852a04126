"""What an observation must be before anything is made of it: of one form, without a mask, and within its space."""

from __future__ import annotations

from typing import Any

import numpy as np
from gymnasium import spaces

from linmdp.envs.guard import plain_array
from linmdp.envs.spaces import choices, is_text
from linmdp.errors import Fault
from linmdp.features.basis import bounded

FAR = 10.0
"""Ranges of a Box beyond which an observation is a fault, since features tell nothing apart there."""
ROUNDING = 1e-6
"""Of the range: a bound that is missed by less is kept."""


class Door:
    """Looks at every observation of an environment, and lets it pass or raises a `Fault`.

    Attributes
    ----------
    outside : what was seen outside its Box, in words; empty where nothing was
    """

    def __init__(self, space: spaces.Space[Any]) -> None:
        self.space, self.outside = space, ""
        self._forms = dict[str, tuple[Any, Any]]()
        self._bounds = dict[str, tuple[Any, ...] | None]()

    def __call__(self, observation: Any) -> Any:
        """The observation, if it is one of the space."""
        if isinstance(self.space, spaces.Discrete):  # one whole number: whoever counts the states looks at it
            return observation
        self._check(self.space, observation, "observation")
        return observation

    def _check(self, space: spaces.Space[Any], value: Any, name: str) -> None:
        if isinstance(space, spaces.Dict):
            for key, one in space.spaces.items():
                self._check(one, value[key], f"{name}[{key!r}]")
        elif isinstance(space, spaces.Tuple):
            for i, (one, part) in enumerate(zip(space.spaces, value, strict=True)):
                self._check(one, part, f"{name}[{i}]")
        elif isinstance(space, spaces.Box):
            self._box(space, value, name)
        elif (found := choices(space)) is not None:
            self._codes(space, *found, value, name)
        elif not is_text(space):
            self._of_one_form(value, name, value)

    def _of_one_form(self, array: np.ndarray, name: str, value: Any) -> None:
        found = np.shape(array), getattr(array, "dtype", type(array))
        if found != (form := self._forms.setdefault(name, found)):
            raise Fault(name, f"{form[1]} of shape {form[0]}, as the first one", value)

    def _box(self, space: spaces.Box, value: Any, name: str) -> None:
        array = plain_array(name, value)
        self._of_one_form(array, name, value)
        if array.dtype.kind == "f" and space.dtype.kind in "iu" and not (array == np.floor(array)).all():
            raise Fault(name, f"whole numbers, as {space} says", value)
        if name not in self._bounds:
            self._bounds[name] = _bounds_of(space, array)
        if (bounds := self._bounds[name]) is None:
            return
        (low, high, least, most), array = bounds, array.ravel()
        if ((array >= low) & (array <= high)).all() or not np.isfinite(array).all():  # who is not finite is told so
            return
        if len(wrong := np.flatnonzero((array < least) | (array > most))):
            raise Fault(name, f"within {FAR:g} ranges of its Box, {_range(space, wrong[0])}", value)
        at = int(np.flatnonzero((array < low) | (array > high))[0])
        found = float(array[at])
        self.outside = self.outside or f"number {at} of {name} was {found:g}, and the Box is {_range(space, at)}"

    def _codes(self, space: spaces.Space[Any], first: Any, sizes: Any, value: Any, name: str) -> None:
        """Whole numbers, each below the number of its values."""
        array = plain_array(name, value)
        if array.shape != np.shape(sizes):
            raise Fault(name, f"of shape {np.shape(sizes)}", value)
        if not ((array == np.floor(array)) & (array >= first) & (array < first + sizes)).all():
            raise Fault(name, f"whole numbers of {space}", value)


def _bounds_of(space: spaces.Box, array: np.ndarray) -> tuple[Any, ...] | None:
    """The bounds, and how far outside of them a number may be; None where nothing of that type can be outside."""
    if array.size != space.low.size:
        raise Fault("observation", f"of shape {space.shape}, as its space", array)
    low, high = space.low.ravel().astype(np.float64), space.high.ravel().astype(np.float64)
    if array.dtype.kind == "b":
        return None
    if array.dtype.kind in "iu":
        kind = np.iinfo(array.dtype)
        if (low <= kind.min).all() and (high >= kind.max).all():
            return None
    there, span = bounded(low, high), np.where(bounded(low, high), high - low, 0.0)
    if not there.any():
        return None
    slack = np.where(there, ROUNDING * np.maximum(span, 1.0), np.inf)
    far = np.where(there & (span > 0), FAR * span, np.inf)
    return low - slack, high + slack, low - far, high + far


def _range(space: spaces.Box, at: Any) -> str:
    return f"{float(space.low.ravel()[at]):g} to {float(space.high.ravel()[at]):g}"
