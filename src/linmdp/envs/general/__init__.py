"""The general suite: families of tasks, each a generator whose instances are drawn from their seeds."""

from __future__ import annotations

import pkgutil
import zlib
from importlib import import_module
from importlib.util import find_spec
from typing import Any

import gymnasium
import numpy as np
from gymnasium.envs.registration import EnvSpec

from linmdp.envs.general.base import FAMILIES, Instance
from linmdp.envs.general.perturb import perturbed
from linmdp.errors import InvalidParameter, check_int, unknown

__all__ = ["FAMILIES", "NAMES", "PACKAGES", "general", "instance"]
for _module in pkgutil.iter_modules(__path__):  # each adds its families
    import_module(f"{__name__}.{_module.name}")
NAMES = tuple(sorted(FAMILIES))
PACKAGES = {"box2d": "Box2D", "minigrid": "minigrid", "linearize": "ale_py"}
"""What the optional dependencies of families are imported as."""


def instance(name: str, seed: int) -> Instance:
    """The instance of a family that is drawn from this seed; always the same one."""
    if name not in FAMILIES:
        unknown("family of the general suite", str(name), NAMES)
    seed = check_int("general", "instance", seed, low=0)
    family = FAMILIES[name]
    # looked for and not imported: Box2D's import is the business of `make_gym`
    if family.extra is not None and find_spec(PACKAGES[family.extra]) is None:
        package, fix = PACKAGES[family.extra], f"pip install 'linmdp[{family.extra}]'"
        raise InvalidParameter(f"The family '{name}' needs {package}, which is not installed: {fix}.")
    env = family.make(np.random.default_rng([zlib.crc32(name.encode()), seed]))
    env.spec = EnvSpec(
        id=f"general/{name}-{seed}",
        entry_point="linmdp.envs.general:instance",
        kwargs={"name": name, "seed": seed},
        max_episode_steps=env.H,
    )
    return env


_instance = instance  # `general` has a parameter of that name


def general(*, family: str = "poles", instance: int = 0, perturb: str | None = None) -> gymnasium.Env[Any, Any]:
    """A task of the general suite.

    Parameters
    ----------
    family : its name
    instance : the seed that the task is drawn from
    perturb : a change that must not matter, such as noise, rotated or onehot (docs, general suite)
    """
    made = _instance(family, instance)
    return made if perturb is None else perturbed(made, perturb, instance)
