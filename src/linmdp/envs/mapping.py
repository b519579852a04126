"""Feature maps by name for Gymnasium environments, `gym:ID,features=fourier,order=3`: scaling, warm-up, sizes."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from functools import partial
from typing import Any, overload

import gymnasium
import numpy as np

from linmdp.envs.observations import Reading, bounds, counted, numbers, unravelled
from linmdp.errors import InvalidParameter, check_choice, check_int, invalid, unknown
from linmdp.features.base import FeatureMap
from linmdp.features.basis import RBF, Fourier, RandomFourier, Tiles
from linmdp.features.onehot import OneHot, joined, largest_order
from linmdp.features.scaling import Scaling, bounded
from linmdp.features.tabular import TableFeatures, one_hot
from linmdp.plugins import Decorator, Maker, Names, check_maker, settable
from linmdp.types import Array, IntArray

ONE_HOT_LIMIT = 1024
"""Largest S * A for a one-hot table: it takes (S A)^2 numbers, and so does each matrix of an agent."""

Mapped = tuple[Reading, FeatureMap]


class EnvView:
    """What a feature map may use of an environment: its observations, their bounds, and a warm-up where needed."""

    def __init__(self, id: str, env: gymnasium.Env[Any, Any], A: int) -> None:
        self.id, self.env, self.A = id, env, A
        self.space: gymnasium.Space[Any] = env.observation_space

    def scaled(self, name: str, scaling: str, warmup: int, seed: int) -> tuple[Reading, Scaling]:
        """How observations become vectors, and their scaling: by bounds where there are some, else by a warm-up."""
        check_choice(name, "scaling", scaling, ("bounds", "data"))
        steps, seed = check_int(name, "warmup", warmup, low=1, high=10**7), check_int(name, "seed", seed, low=0)
        reading = numbers(self.id, self.space)
        low, high = bounds(self.space)
        if scaling == "data":
            low, high = np.full_like(low, -np.inf), np.full_like(high, np.inf)
        return reading, Scaling.fit(low, high, None if bounded(low, high).all() else self.warm_up(reading, steps, seed))

    def warm_up(self, reading: Reading, steps: int, seed: int) -> Array:
        """States that a random policy sees in that many steps, (steps, k)."""
        rng, first = np.random.default_rng(seed), int(getattr(self.env.action_space, "start", 0))
        states: list[Array] = []
        observation, _ = self.env.reset(seed=seed)
        while len(states) < steps:
            states.append(reading.read(observation))
            observation, _, terminated, truncated, _ = self.env.step(first + int(rng.integers(self.A)))
            if terminated or truncated:
                states.append(reading.read(observation))
                observation, _ = self.env.reset()
        return np.array(states[:steps], dtype=np.float64)


def fourier(
    view: EnvView, *, order: int = 3, coupling: int = 2, scaling: str = "bounds", warmup: int = 1000, seed: int = 0
) -> Mapped:
    """Fourier basis: cosines of order 0 to `order` that join at most `coupling` coordinates."""
    reading, scale = view.scaled("fourier", scaling, warmup, seed)
    return reading, Fourier(view.A, scale, order=order, coupling=coupling)


def tiles(
    view: EnvView,
    *,
    tilings: int = 8,
    tiles: int = 4,
    dim: int | None = None,
    scaling: str = "bounds",
    warmup: int = 1000,
    seed: int = 0,
) -> Mapped:
    """Tile coding, hashed where it would be too large."""
    reading, scale = view.scaled("tiles", scaling, warmup, seed)
    return reading, Tiles(view.A, scale, tilings=tilings, tiles=tiles, dim=dim)


def rbf(
    view: EnvView,
    *,
    centres: int = 50,
    bandwidth: float | None = None,
    scaling: str = "bounds",
    warmup: int = 1000,
    seed: int = 0,
) -> Mapped:
    """Normalised radial basis functions around states of the warm-up."""
    reading, scale = view.scaled("rbf", scaling, warmup, seed)
    states = view.warm_up(reading, int(warmup), int(seed))
    return reading, RBF.fit(view.A, scale, states, centres=centres, bandwidth=bandwidth)


def rff(
    view: EnvView,
    *,
    dim: int = 100,
    bandwidth: float | None = None,
    scaling: str = "bounds",
    warmup: int = 1000,
    seed: int = 0,
) -> Mapped:
    """Random Fourier features."""
    reading, scale = view.scaled("rff", scaling, warmup, seed)
    return reading, RandomFourier(view.A, scale, dim=dim, bandwidth=bandwidth, seed=seed)


def onehot(view: EnvView, *, order: int | None = None) -> Mapped:
    """One-hot: of the whole state while that is small, else of every `order` of its parts."""
    id, A = view.id, view.A
    reading = counted(id, view.space)
    if reading is None:
        raise InvalidParameter(f"Observations of '{id}' must be whole numbers for one-hot features. Got {view.space}.")
    sizes, decode = reading.sizes, reading.decode
    groups: tuple[tuple[int, ...], ...] | None = None
    if re.match(r"Taxi-v\d", id) and reading.S == 500:
        sizes, groups, decode = TAXI, ((0, 1, 4), (2, 3)), taxi_parts
    parts = len(sizes) if groups is None else len(sizes) - 1
    if order is None:
        if groups is None and reading.S is not None and reading.S * A <= ONE_HOT_LIMIT:
            return reading, one_hot(reading.S, A)
        if parts == 1:
            raise InvalidParameter(
                f"One-hot features of '{id}' must have d = S * A at most {ONE_HOT_LIMIT}. Got {sizes[0] * A}."
            )
        order = 0 if groups else largest_order(A, sizes, ONE_HOT_LIMIT)
    else:
        order = check_int("onehot", "order", order, low=1, high=parts)
    if order:
        groups = joined(parts, order)
    return reading, OneHot(A, sizes, groups=groups, decode=decode)


TAXI = (5, 5, 5, 4, 8)
"""Row, column, passenger, destination, and where to go next: to the passenger (4 places) or the destination (4)."""


def taxi_parts(states: np.ndarray) -> IntArray:
    """The parts of Taxi's states, (n, 5)."""
    parts = unravelled(states, TAXI[:4])
    passenger, destination = parts[:, 2], parts[:, 3]
    target = np.where(passenger < 4, passenger, 4 + destination)
    return np.concatenate((parts, target[:, None]), axis=1)


MAPS: Names[Callable[..., Any]] = Names(
    "feature map",
    "linmdp.features",
    {f.__name__: f for f in (onehot, fourier, tiles, rbf, rff)},
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


USUAL = {"CartPole": "rbf", "Acrobot": "rbf"}
"""Where states that matter are near those that a random policy sees, centres from data do better than a grid."""


def map_by_name(name: str | None, view: EnvView, given: dict[str, Any]) -> Mapped:
    """How observations are read, and their features; by default one-hot for whole numbers, else USUAL or Fourier."""
    if name is None:
        name = "onehot" if _whole(view.space) else USUAL.get(re.sub(r"-v\d+$", "", view.id), "fourier")
    if name not in MAPS:
        unknown("feature map", name, MAPS)
    known = map_parameters(name)
    for key, value in given.items():
        if key not in known:
            invalid(f"'{view.id}'", key, f"left out: features={name} has {', '.join(known)}", value)
    made = MAPS[name](view, **given)
    reading, phi = made if isinstance(made, tuple) else (_reading(view, made), made)
    if not isinstance(phi, FeatureMap) or phi.A != view.A:
        raise InvalidParameter(f"features={name} must make a FeatureMap for {view.A} actions. Got {phi!r:.80}.")
    return reading, phi


def map_parameters(name: Any) -> dict[str, inspect.Parameter]:
    """The parameters of a feature map; none if there is no such map."""
    return settable(MAPS[name]) if name in MAPS else {}


def _reading(view: EnvView, features: Any) -> Reading:
    """Numbered states for a table, flat vectors for any other map."""
    finite = counted(view.id, view.space) if isinstance(features, TableFeatures) else None
    if finite is not None and finite.S != features.S:
        raise InvalidParameter(f"A feature table of '{view.id}' must have {finite.S} states. Got {features.S}.")
    return finite or numbers(view.id, view.space)


def _whole(space: gymnasium.Space[Any]) -> bool:
    """Whether observations are whole numbers only."""
    if isinstance(space, gymnasium.spaces.Tuple | gymnasium.spaces.Dict):
        inner = space.spaces.values() if isinstance(space, gymnasium.spaces.Dict) else space.spaces
        return all(_whole(one) for one in inner)
    return isinstance(space, gymnasium.spaces.Discrete | gymnasium.spaces.MultiDiscrete | gymnasium.spaces.MultiBinary)
