"""Planning in tasks of a few real numbers, on a fine grid of them: exact but for the grid."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import product
from typing import Any

import numpy as np

from linmdp.envs.general.base import Policy
from linmdp.types import Array

Nodes = tuple[Array, Array]
"""Points (m, z) and weights (m,) of the quadrature that stands for the noise of a step."""

Step = Callable[[int, Array, int, Array], tuple[Array, Array]]
"""From the step, states (n, k), an action and noise (z,) or (z, n) to the next states (n, k) and rewards (n,)."""


def normal_nodes(dims: int, points: int = 5) -> Nodes:
    """Gauss-Hermite quadrature for independent standard normal noise."""
    x, w = np.polynomial.hermite_e.hermegauss(points)
    grid = np.array(list(product(x, repeat=dims)))
    weights = np.array([np.prod(ws) for ws in product(w / w.sum(), repeat=dims)])
    return grid, weights


class Grid:
    """Values on a grid, with multilinear interpolation between its points and clipping beyond them.

    Parameters
    ----------
    axes : k increasing, evenly spaced arrays
    """

    def __init__(self, axes: Sequence[Array]) -> None:
        self.low = np.array([axis[0] for axis in axes])
        self.unit = np.array([axis[1] - axis[0] for axis in axes])
        self.sizes = tuple(len(axis) for axis in axes)
        self.points = np.stack([m.ravel() for m in np.meshgrid(*axes, indexing="ij")], axis=1)

    def at(self, values: Array, states: Array) -> Array:
        """Values (points,) interpolated at states (n, k), (n,)."""
        place = np.clip((states - self.low) / self.unit, 0, np.array(self.sizes) - 1)
        corner = np.minimum(place.astype(np.int64), np.array(self.sizes) - 2)
        part = place - corner
        total = np.zeros(len(states))
        for side in product((0, 1), repeat=len(self.sizes)):
            weight = np.prod(np.where(side, part, 1 - part), axis=1)
            total += weight * values[np.ravel_multi_index(tuple((corner + side).T), self.sizes)]
        return total


class GridPlan:
    """The best policy of a task whose hidden state is k numbers; `step` knows how they move, at every step."""

    def __init__(self, axes: Sequence[Array], A: int, H: int, step: Step, nodes: Nodes) -> None:
        self.grid, self.A, self.step, self.nodes = Grid(axes), A, step, nodes
        self.V = np.zeros((H + 1, len(self.grid.points)))
        for h in reversed(range(H)):
            self.V[h] = self.q(h, self.grid.points).max(axis=0)

    def q(self, h: int, states: Array) -> Array:
        """Values of all actions in states (n, k), (A, n)."""
        Q = np.zeros((self.A, len(states)))
        for a in range(self.A):
            for z, weight in zip(*self.nodes, strict=True):
                after, reward = self.step(h, states, a, z)
                Q[a] += weight * (reward + self.grid.at(self.V[h + 1], after))
        return Q

    @property
    def policy(self) -> Policy:
        """Of an instance whose hidden state is its `x`, (k,)."""
        return lambda env: int(self.q(env.h, env.x[None])[:, 0].argmax())


def grid_best(env: Any, episodes: int = 2000) -> float:
    """The best return of an instance that has a `plan` and a hidden state `x`: the mean of many episodes at once."""
    env.reset(seed=0)
    x = np.array([(env.begin(), env.x)[1] for _ in range(episodes)])
    rng, total = np.random.default_rng(0), 0.0
    for h in range(env.H):
        chosen = env.plan.q(h, x).argmax(axis=0)
        noise = rng.standard_normal((env.plan.nodes[0].shape[1], episodes))
        for a in range(env.A):
            mine = chosen == a
            x[mine], reward = env.plan.step(h, x[mine], a, noise[:, mine])
            total += reward.sum()
    return float(total / episodes)
