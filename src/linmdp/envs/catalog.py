"""Every built-in linear MDP: a name and a function of keyword parameters that returns the model."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from linmdp.envs.base import LinearModel
from linmdp.envs.devices import inventory, sensor
from linmdp.envs.families import hypercube, lock, riverswim
from linmdp.envs.synthetic import synthetic
from linmdp.errors import unknown

FAMILIES: dict[str, Callable[..., LinearModel]] = {
    "synthetic": synthetic,
    "hypercube": hypercube,
    "lock": lock,
    "riverswim": riverswim,
    "sensor": sensor,
    "inventory": inventory,
}


def linear_model(family: str, **parameters: Any) -> LinearModel:
    """The model of a built-in family."""
    if family not in FAMILIES:
        unknown("environment", family, FAMILIES)
    return FAMILIES[family](**parameters)
