"""Feature maps by name for Gymnasium environments, `gym:ID,features=fourier,order=3`: scaling, warm-up, sizes."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from functools import partial
from itertools import count
from typing import Any, overload

import gymnasium
import numpy as np

from linmdp.envs import observations
from linmdp.envs.actions import Actions
from linmdp.envs.door import Door
from linmdp.envs.guard import Bare, Guard
from linmdp.envs.observations import Reading, counted, numbers, whole
from linmdp.errors import InvalidParameter, check_choice, check_int, invalid, unknown
from linmdp.features.base import FeatureMap
from linmdp.features.basis import LARGEST_D, Fourier, RandomFourier, Scaling, bounded
from linmdp.features.tabular import TableFeatures, one_hot
from linmdp.features.unit import HashedFeatures, UnitFeatures
from linmdp.plugins import Decorator, Maker, Names, check_maker, settable
from linmdp.types import Array

ONE_HOT_LIMIT = 1024
"""Largest S * A for a one-hot table: it takes (S A)^2 numbers, and so does each matrix of an agent."""
AUTO_DIM = 100
"""Length of psi where nothing is given; fewer where A of them would be too many."""
RECURRING = 1000
"""Steps of random play in which states that are hashed must come again: at most half of them may be new."""

MARGIN = 10.0
"""How far beyond what random play saw states are still told apart by `auto`, in ranges."""

Mapped = tuple[Reading, FeatureMap]


class EnvView:
    """What a feature map may use of an environment: its observations, their bounds, and a warm-up where needed."""

    def __init__(self, id: str, env: gymnasium.Env[Any, Any], actions: Actions, H: int, door: Door) -> None:
        self.id, self.env, self.actions, self.A, self.H = id, env, actions, actions.A, H
        self.space: gymnasium.Space[Any] = env.observation_space
        self._door, self._seen = door, dict[tuple[int, int], Array]()
        self.steps = 0
        """Steps that were played for features, so far."""

    def scaled(
        self, name: str, scaling: str, warmup: int, seed: int, *, margin: float = 0.0
    ) -> tuple[Reading, Scaling]:
        """How observations become vectors, and their scaling: by bounds where there are some, else by a warm-up.

        Coordinates that are scaled by a warm-up are cut `margin` ranges beyond what it saw.
        """
        check_choice(name, "scaling", scaling, ("bounds", "data"))
        steps, seed = check_int(name, "warmup", warmup, low=1, high=10**7), check_int(name, "seed", seed, low=0)
        reading = numbers(self.id, self.space)
        low, high = observations.bounds(reading.space)
        if scaling == "data":
            low, high = np.full_like(low, -np.inf), np.full_like(high, np.inf)
        states = None if bounded(low, high).all() else self.warm_up(steps, seed)
        return reading, Scaling.fit(low, high, states, margin=margin)

    def warm_up(self, steps: int, seed: int) -> Array:
        """The observations, as numbers, that a random policy sees in that many steps, (steps, k); they are played once.

        The last one of an episode is among them.
        """
        if known := [states for (n, first), states in self._seen.items() if first == seed and n >= steps]:
            return known[0][:steps]
        rng, states, read = np.random.default_rng(seed), list[Array](), observations.flattened(self.space)
        how: Any = {"read": lambda o: read(self._door(o)), "actions": self.actions, "during": " of the warm-up"}
        guard = Guard(self.env, Bare(self.A), **how)
        for k in count():
            for step in guard.random_episode(k, rng, seed=None if k else seed):
                states.append(step.state)
                if len(states) == steps:
                    break
            else:
                states.append(step.next_state)
            if len(states) >= steps:
                break
        self.steps += guard.steps
        self._seen[steps, seed] = found = np.array(states[:steps], dtype=np.float64)
        return found


def fourier(
    view: EnvView, *, order: int = 3, coupling: int = 2, scaling: str = "bounds", warmup: int = 1000, seed: int = 0
) -> Mapped:
    """Fourier basis: cosines of order 0 to `order` that join at most `coupling` coordinates."""
    reading, scale = view.scaled("fourier", scaling, warmup, seed)
    return reading, Fourier(view.A, scale, order=order, coupling=coupling)


def auto(
    view: EnvView, *, dim: int | None = None, bandwidth: float | None = None, warmup: int = 1000, seed: int = 0
) -> Mapped:
    """The default for numbers: random Fourier features, whose bandwidth follows from their number.

    A random policy does not see all that a good one will (the speeds of CartPole). States beyond its range stay apart,
    since a coordinate that is cut off no longer tells what follows.
    """
    reading, scale = view.scaled("auto", "bounds", warmup, seed, margin=MARGIN)
    if dim is None:
        dim = max(2, min(AUTO_DIM, LARGEST_D // view.A))
    return reading, RandomFourier(view.A, scale, dim=dim, bandwidth=bandwidth, seed=seed)


def onehot(view: EnvView) -> Mapped:
    """One-hot of the whole state, as a table while that is small."""
    reading = counted(view.id, view.space)
    if reading is None:
        rule = "must be whole numbers for one-hot features"
        raise InvalidParameter(f"Observations of '{view.id}' {rule}. Got {view.space}.")
    if reading.S is None:
        return hashed(view)
    make = one_hot if reading.S * view.A <= ONE_HOT_LIMIT else UnitFeatures
    return reading, make(reading.S, view.A, reading.sizes)


def hashed(view: EnvView) -> Mapped:
    """One-hot of a hash of all whole numbers in an observation, however many combinations there are."""
    return observations.hashed(view.id, view.space), HashedFeatures(view.A)


MAPS: Names[Callable[..., Any]] = Names(
    "feature map",
    "linmdp.features",
    {f.__name__: f for f in (onehot, hashed, fourier, auto)},
    partial(check_maker, "feature map", positional=1),
)


@overload
def register_features(name: str, maker: Maker) -> Maker: ...
@overload
def register_features(name: str) -> Decorator[Any]: ...
def register_features(name: str, maker: Any = None) -> Any:
    """Make a feature map available as `features=NAME`; without `maker`, a decorator of the function that makes it.

    `maker(view, **parameters)` returns a `FeatureMap`. `view.A` is the number of actions, `view.space` the observation
    space, and `view.scaled(name, "bounds", warmup=1000, seed=0)` returns how observations are read as vectors and
    their scaling to [0, 1]. A map of other states than flat vectors comes in a pair, after a `Reading`.
    """
    return MAPS.register(name, maker)


def usual_map(view: EnvView, given: Mapping[str, Any]) -> str:
    """The map where none is named: whole numbers are told apart one by one, others are seen through `auto`.

    Whole numbers that are too many to be counted are hashed if states come again in random play; if they do not,
    nothing learned of one would ever be used, and they are seen through `auto`.
    """
    if not whole(view.space):
        return "auto"
    finite = counted(view.id, view.space)
    if finite is not None and finite.S is not None:
        return "onehot"
    warmup = given.get("warmup")
    states = view.warm_up(max(RECURRING, warmup) if isinstance(warmup, int) else RECURRING, seed=0)[:RECURRING]
    if len(np.unique(states, axis=0)) <= RECURRING // 2:
        return "hashed"
    return "auto"


def map_by_name(name: str, view: EnvView, given: dict[str, Any]) -> Mapped:
    """How observations are read, and their features."""
    if name not in MAPS:
        unknown("feature map", name, MAPS)
    known = map_parameters(name)
    for key, value in given.items():
        if key not in known:
            invalid(f"'{view.id}'", key, f"left out: features={name} has {', '.join(known) or 'no parameters'}", value)
    made = MAPS[name](view, **given)
    if not isinstance(made, tuple):
        made = finite_reading(view, made) or numbers(view.id, view.space), made
    reading, phi = made
    if not isinstance(phi, FeatureMap) or phi.A != view.A:
        raise InvalidParameter(f"features={name} must make a FeatureMap for {view.A} actions. Got {phi!r:.80}.")
    return reading, phi


def map_parameters(name: Any) -> dict[str, inspect.Parameter]:
    """The parameters of a feature map; none if there is no such map."""
    return settable(MAPS[name]) if name in MAPS else {}


def finite_reading(view: EnvView, features: Any) -> Reading | None:
    """Numbered states for a table and for unit vectors, hashed ones for theirs; None for any other map."""
    if isinstance(features, HashedFeatures):
        return observations.hashed(view.id, view.space)
    if not isinstance(features, TableFeatures | UnitFeatures):
        return None
    finite = counted(view.id, view.space)
    if finite is None or finite.S != features.S:
        raise InvalidParameter(
            f"The feature table of '{view.id}' must be for the states of {view.space}. Got {features.S}."
        )
    return finite
