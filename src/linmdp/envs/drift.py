"""Linear MDPs that change from one episode to the next, each of them linear in the same features.

The models of a few moments share phi, and between them theta and mu are mixed: a mixture of probabilities is one, so
every episode has a linear MDP of its own, with V* known exactly. An agent is told none of it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from inspect import signature
from typing import Any, NamedTuple

import numpy as np

from linmdp.envs.base import LinearModel
from linmdp.envs.linear import LinearMDPEnv
from linmdp.envs.linear_mdps import LINEAR_MDPS
from linmdp.envs.planning import Optimum, backed_up, optimum, policy_value, uniform_policy
from linmdp.errors import check_choice, check_int, check_number, invalid, unknown
from linmdp.types import Array

KINDS = ("switch", "drift", "season", "walk", "still")
PARTS = 100
"""Mixtures are taken in hundredths, so that few different models have to be planned in."""

KEPT = 8
"""Models that stay in memory, with their Q* and V*."""


class Place(NamedTuple):
    """Where on the way from one model to another: `parts` hundredths."""

    one: int
    two: int
    parts: int


class Path:
    """The way through the J models, which closes: its position t in episode k stands between models floor(t) and after.

    "switch": t = floor(k / every). "drift": t = k / every. "season": t swings between 0 and 1 with period `every`.
    "walk": t is a random walk with steps of standard deviation 1 / sqrt(every). "still": t = 0.
    """

    def __init__(self, kind: str, every: int, J: int, seed: int) -> None:
        self.kind, self.every, self.J, self.seed = kind, every, J, seed
        self._rng, self._walk = np.random.default_rng([seed, 1]), np.zeros(1)

    def place(self, k: int) -> Place:
        """Where episode k is."""
        t = self._position(k)
        one, parts = math.floor(t), round(PARTS * (t - math.floor(t)))
        one, parts = (one + 1, 0) if parts == PARTS else (one, parts)
        return Place(one % self.J, (one + 1) % self.J if parts else one % self.J, parts)

    def _position(self, k: int) -> float:
        if self.kind == "switch":
            return k // self.every
        if self.kind == "drift":
            return k / self.every
        if self.kind == "season":
            return (1 - math.cos(2 * math.pi * k / self.every)) / 2
        while self.kind == "walk" and k >= len(self._walk):
            steps = self._rng.standard_normal(1024) / math.sqrt(self.every)
            self._walk = np.append(self._walk, self._walk[-1] + steps.cumsum())
        return float(self._walk[k]) if self.kind == "walk" else 0.0


class Simulator(NamedTuple):
    """A model that agents may look into, as one of the base models of a task."""

    model: LinearModel

    def q(self, h: int, V: Array) -> Array:
        """r_h + P_h V for all state-action pairs, (A, S)."""
        return backed_up(self.model, h, V)

    def value(self, h: int, state: int, action: int, V: Array) -> float:
        """The same for one of them."""
        m = self.model
        return float(m.features.row(state, action) @ (m.theta[h] + m.mu[h] @ V))


class DriftingEnv(LinearMDPEnv):
    """An environment whose model depends on the episode; `reset` with a seed starts at the first one again.

    Attributes
    ----------
    models : those between which the path leads, all with the same features; agents that want them find them in
        `task.base_models`, but neither the path nor where on it an episode is
    k : the current episode, from 0 on; `model` and `optimum` are those of it
    """

    def __init__(self, models: Sequence[LinearModel], path: Path) -> None:
        super().__init__(models[0])
        self.task = replace(self.task, base_models=tuple(map(Simulator, models)))
        self.models, self.path, self.k = tuple(models), path, 0
        self._kept: dict[Place, tuple[LinearModel, Optimum]] = {}
        self.model = self.model_of(0)

    def model_of(self, k: int) -> LinearModel:
        """The model of episode k."""
        return self._known(k)[0]

    def optimum_of(self, k: int) -> Optimum:
        """Q* and V* of episode k."""
        return self._known(k)[1]

    def q_of(self, k: int) -> Array:
        """Q* of episode k, (H, S, A)."""
        return self.optimum_of(k).Q

    def _known(self, k: int) -> tuple[LinearModel, Optimum]:
        place = self.path.place(k)
        if place not in self._kept:
            if len(self._kept) >= KEPT:
                del self._kept[next(iter(self._kept))]  # the oldest
            model = self._mixture(place)
            self._kept[place] = model, optimum(model)
        return self._kept[place]

    @property
    def optimum(self) -> Optimum:
        """Q* and V* of the current episode."""
        return self.optimum_of(self.k)

    @property
    def _worst_for_random(self) -> int:
        return int((self.optimum.V[0] - policy_value(self.model, uniform_policy(self.model))[0]).argmax())

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[int, dict[str, Any]]:
        self.k = 0 if seed is not None or self._chance is None else self.k + 1
        self.model = self.model_of(self.k)
        return super().reset(seed=seed, options=options)

    def random_state(self) -> list[Any]:
        state = super().random_state()
        return [*state, self.k] if state else []

    def restore_random_state(self, state: list[Any]) -> None:
        super().restore_random_state(state[:-1])
        self.k = check_int("a saved state", "k", state[-1], low=0) if state else 0
        self.model = self.model_of(self.k)

    def changes(self, episodes: int) -> list[int]:
        """The episodes k >= 1 whose model is not that of the episode before."""
        places = [self.path.place(k) for k in range(episodes)]
        return [k for k in range(1, episodes) if places[k] != places[k - 1]]

    def variation(self, episodes: int) -> tuple[float, float]:
        """B_theta and B_mu: how far theta (2-norm) and mu (2-norm of total variations) move, over all h and k."""
        known: dict[tuple[Place, Place], Array] = {}
        total = np.zeros(2)
        for k in self.changes(episodes):
            step = self.path.place(k - 1), self.path.place(k)
            if step not in known:
                one, two = (self._mixture(place) for place in step)
                moved = two.theta - one.theta, np.abs(two.mu - one.mu).sum(axis=-1)
                known[step] = np.array([np.linalg.norm(parts, axis=-1).sum() for parts in moved])
            total += known[step]
        return float(total[0]), float(total[1])

    def _mixture(self, place: Place) -> LinearModel:
        return mixture(self.models[place.one], self.models[place.two], place.parts / PARTS)


def mixture(one: LinearModel, two: LinearModel, share: float) -> LinearModel:
    """(1 - share) times the first model and share times the second."""
    if one is two or share == 0:
        return one
    return replace(one, theta=_mixed(one.theta, two.theta, share), mu=_mixed(one.mu, two.mu, share))


def _mixed(x: Array, y: Array, share: float) -> Array:
    if x.strides[0] == y.strides[0] == 0:  # all steps are the same
        return np.broadcast_to((1 - share) * x[0] + share * y[0], x.shape)
    mixed: Array = (1 - share) * x + share * y
    return mixed


def drift(
    *,
    base: str = "synthetic",
    kind: str = "switch",
    every: int = 500,
    models: int = 2,
    far: float | None = None,
    seed: int = 0,
    **parameters: Any,
) -> DriftingEnv:
    """A linear MDP that changes between episodes; features, and what else an agent may know, stay as they are.

    Between its `models`, and from the last one to the first, theta and mu are mixed linearly. V* of every episode is
    known, so regret is exact: the sum of V*_k - V^pi_k, with the model of each episode.

    Parameters
    ----------
    base : synthetic (other rewards and measures), lock (another code), riverswim (the two banks exchange their
        rewards), sensor (the chance of a harvest in bright weather) or inventory (the mean demand)
    kind : switch (to the next model, at once), drift (evenly), season (to the second model and back, as a cosine),
        walk (at random), still (the first model for ever)
    every : episodes from one model to the next; of season, the period; a walk takes about so many
    models : of that many different kinds; riverswim and season have 2
    far : the chance of a harvest or the mean demand of the last model; by default 0.2 and 0.5
    seed : of the base, and of the walk
    parameters : those of the base
    """
    check_choice("drift", "base", base, tuple(BASES))
    check_choice("drift", "kind", kind, KINDS)
    every = check_int("drift", "every", every, low=1)
    J = check_int("drift", "models", models, low=2, high=100)
    seed = check_int("drift", "seed", seed, low=0)
    own, given = signature(drift).parameters, signature(LINEAR_MDPS[base]).parameters
    for name in parameters:
        if name not in given:
            unknown("parameter of drift", name, (*own, *given))
    if J != 2 and (base == "riverswim" or kind == "season"):
        invalid("drift", "models", f"2 with {'base=riverswim' if base == 'riverswim' else 'kind=season'}", models)
    if far is not None and base not in ("sensor", "inventory"):
        invalid("drift", "far", "left out unless base is sensor or inventory", far)
    first = LINEAR_MDPS[base](seed=seed, **parameters)
    others = (BASES[base](j, J, seed, far, parameters) for j in range(1, J))
    shared = [first, *(replace(other, features=first.features) for other in others)]
    return DriftingEnv([replace(model, name="drift") for model in shared], Path(kind, every, J, seed))


Maker = Callable[[int, int, int, float | None, dict[str, Any]], LinearModel]
"""The model number j of J, from seed, far, and the parameters of the base."""


def _reseeded(base: str) -> Maker:
    return lambda j, J, seed, far, parameters: LINEAR_MDPS[base](seed=seed + j, **parameters)


def _moved(base: str, rate: str, usual: float) -> Maker:
    """One parameter of the base, `rate`, goes evenly from what is given to `far`."""

    def make(j: int, J: int, seed: int, far: float | None, parameters: dict[str, Any]) -> LinearModel:
        start = parameters.get(rate, signature(LINEAR_MDPS[base]).parameters[rate].default)
        end = usual if far is None else check_number("drift", "far", far)
        return LINEAR_MDPS[base](seed=seed, **parameters | {rate: start + (end - start) * j / (J - 1)})

    return make


def _other_bank(j: int, J: int, seed: int, far: float | None, parameters: dict[str, Any]) -> LinearModel:
    model = LINEAR_MDPS["riverswim"](seed=seed, **parameters)
    theta = model.theta[0][::-1]  # of (bank, left) and (far end, right)
    return replace(model, theta=np.broadcast_to(theta, model.theta.shape))


BASES: dict[str, Maker] = {
    "synthetic": _reseeded("synthetic"),
    "lock": _reseeded("lock"),
    "riverswim": _other_bank,
    "sensor": _moved("sensor", "bright", 0.2),
    "inventory": _moved("inventory", "demand", 0.5),
}
