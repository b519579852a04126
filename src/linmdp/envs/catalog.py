"""Every built-in linear MDP: a name and a function of keyword parameters that returns the model."""

from __future__ import annotations

from collections.abc import Callable

from linmdp.envs.base import LinearModel
from linmdp.envs.catalogue import catalogue
from linmdp.envs.devices import inventory, sensor
from linmdp.envs.families import hypercube, lock, riverswim
from linmdp.envs.synthetic import synthetic

FAMILIES: dict[str, Callable[..., LinearModel]] = {
    "synthetic": synthetic,
    "hypercube": hypercube,
    "lock": lock,
    "riverswim": riverswim,
    "sensor": sensor,
    "inventory": inventory,
    "catalogue": catalogue,
}
