"""Feature maps for observations that are numbers. Each reads them through a `Scaling`, as x in [0, 1]^k."""

from __future__ import annotations

import itertools
import math
from typing import ClassVar

import numpy as np

from linmdp.errors import InvalidParameter, check_int, check_number
from linmdp.features.blocks import LARGEST_D, BlockFeatures
from linmdp.features.scaling import Scaling
from linmdp.types import Array, IntArray

MOST_DATA = 4096
"""States among which centres are chosen; of more, an even choice is taken."""


class Fourier(BlockFeatures):
    """psi_c(x) = cos(pi <c, x>) / sqrt(p), for whole numbers c in {0, ..., order}^k.

    Parameters
    ----------
    order : the largest coefficient
    coupling : the most coordinates that one c may join; k joins all, and p is then (order + 1)^k
    """

    name: ClassVar = "fourier"

    def __init__(self, A: int, scaling: Scaling, *, order: int = 3, coupling: int | None = None) -> None:
        order = check_int(self.name, "order", order, low=1, high=100)
        k = scaling.k
        coupling = k if coupling is None else min(check_int(self.name, "coupling", coupling, low=1), k)
        super().__init__(A, sum(math.comb(k, j) * order**j for j in range(coupling + 1)))
        self.scaling, self.order, self.coupling = scaling, order, coupling
        self._c = coefficients(k, order, coupling)

    def psi(self, states: np.ndarray) -> Array:
        """(n, p)"""
        cosines: Array = np.cos(np.pi * (self.scaling(states) @ self._c))
        return cosines / math.sqrt(self.p)


def coefficients(k: int, order: int, coupling: int) -> Array:
    """Every c in {0, ..., order}^k with at most `coupling` entries that are not 0, (k, p); the first is 0."""
    columns = [np.zeros((k, 1))]
    for j in range(1, coupling + 1):
        values = np.array(list(itertools.product(range(1, order + 1), repeat=j)), dtype=np.float64).T
        for chosen in itertools.combinations(range(k), j):
            block = np.zeros((k, values.shape[1]))
            block[list(chosen)] = values
            columns.append(block)
    return np.concatenate(columns, axis=1)


class Tiles(BlockFeatures):
    """Tile coding: psi is 1 / sqrt(tilings) at the one tile of each tiling that holds x, and 0 elsewhere.

    Tiling t lays `tiles` tiles along each coordinate, tiles^k in all, and is shifted against the others by a fraction
    of a tile that differs from coordinate to coordinate.

    Parameters
    ----------
    dim : the most entries of psi; a tiling that has more than dim / tilings tiles is hashed into so many. Tiles
        of different tilings never share an entry, so that the norm is 1 all the same.
    """

    name: ClassVar = "tiles"

    def __init__(self, A: int, scaling: Scaling, *, tilings: int = 8, tiles: int = 4, dim: int | None = None) -> None:
        tilings = check_int(self.name, "tilings", tilings, low=1, high=LARGEST_D)
        tiles = check_int(self.name, "tiles", tiles, low=2, high=LARGEST_D)
        k = scaling.k
        cells = tiles**k
        if dim is None:
            dim = min(cells * tilings, max(LARGEST_D // 2 // A, tilings))
        size = check_int(self.name, "dim", dim, low=tilings) // tilings
        self.hashed = size < cells
        super().__init__(A, tilings * min(cells, size))
        self.scaling, self.tilings, self.tiles = scaling, tilings, tiles
        shifts = np.arange(tilings)[:, None] * (2 * np.arange(k) + 1)
        self._shift = shifts / tilings % 1.0
        self._strides = np.array([pow(tiles, i, 2**63) for i in range(k)], dtype=np.uint64)

    def psi(self, states: np.ndarray) -> Array:
        """(n, p)"""
        psi = np.zeros((len(states), self.p))
        np.put_along_axis(psi, self.active(states), 1 / math.sqrt(self.tilings), axis=1)
        return psi

    def active(self, states: np.ndarray) -> IntArray:
        """The entries of psi that are not 0, one of each tiling, (n, tilings)."""
        place = self.scaling(states)[:, None] * (self.tiles - 1) + self._shift
        tile = np.minimum(place, self.tiles - 1).astype(np.uint64)  # the last shift may round up to a whole tile
        code = (tile * self._strides).sum(axis=-1)
        size = self.p // self.tilings
        if self.hashed:
            code = _scattered(code + np.arange(self.tilings, dtype=np.uint64) * np.uint64(_ODD)) % np.uint64(size)
        entries: IntArray = code.astype(np.int64) + np.arange(self.tilings) * size
        return entries


_ODD = 0x9E3779B97F4A7C15


def _scattered(code: np.ndarray) -> np.ndarray:
    """A fixed mixing of 64 bits: neighbours end up far apart, and the same code always in the same place."""
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        code = (code ^ (code >> np.uint64(shift))) * np.uint64(factor)
    mixed: np.ndarray = code ^ (code >> np.uint64(31))
    return mixed


class RBF(BlockFeatures):
    """Normalised radial basis: psi_i = g_i / sum_j g_j, g_i = exp(-|x - c_i|^2 / (2 bandwidth^2)).

    psi lies on the simplex: a state is a mixture of the centres near it. `fit` chooses the centres from data.

    Parameters
    ----------
    centres : (p, k), in [0, 1]
    bandwidth : default: twice the mean distance from a centre to the one nearest to it
    """

    name: ClassVar = "rbf"

    def __init__(self, A: int, scaling: Scaling, *, centres: Array, bandwidth: float | None = None) -> None:
        super().__init__(A, len(centres))
        self.scaling, self.centres = scaling, np.ascontiguousarray(centres, dtype=np.float64)
        if self.centres.shape != (self.p, scaling.k):
            raise InvalidParameter(
                f"The 'centres' parameter of rbf must have shape (p, {scaling.k}). Got {self.centres.shape}."
            )
        if bandwidth is None:
            bandwidth = 2 * spacing(self.centres)
        self.bandwidth = check_number(self.name, "bandwidth", bandwidth, low=0.0, open_low=True)

    @classmethod
    def fit(cls, A: int, scaling: Scaling, states: Array, *, centres: int = 50, bandwidth: float | None = None) -> RBF:
        """With centres that cover the states (n, k): each is the state farthest from those before it."""
        count = check_int(cls.name, "centres", centres, low=1, high=LARGEST_D)
        data = np.unique(scaling(states), axis=0)
        if len(data) < count:
            raise InvalidParameter(
                f"The 'centres' parameter of rbf must be at most the number of different states seen. "
                f"Got {count}, seen {len(data)}."
            )
        chosen = farthest_points(data[:: -(-len(data) // MOST_DATA)] if len(data) > MOST_DATA else data, count)
        return cls(A, scaling, centres=chosen, bandwidth=bandwidth)

    def psi(self, states: np.ndarray) -> Array:
        """(n, p)"""
        exponent = squared_distances(self.scaling(states), self.centres) / (-2 * self.bandwidth**2)
        weights: Array = np.exp(exponent - exponent.max(axis=1, keepdims=True))  # the nearest centre has weight 1
        weights /= weights.sum(axis=1, keepdims=True)
        return weights


def squared_distances(x: Array, y: Array) -> Array:
    """|x_i - y_j|^2 of (n, k) and (m, k), (n, m)."""
    squares = (x * x).sum(axis=1)[:, None] - 2 * (x @ y.T) + (y * y).sum(axis=1)
    distances: Array = np.maximum(squares, 0.0)
    return distances


def farthest_points(data: Array, count: int) -> Array:
    """`count` of the rows (n, k): the one nearest to the mean, then always the one farthest from all chosen."""
    nearest = np.full(len(data), np.inf)
    at = int(((data - data.mean(axis=0)) ** 2).sum(axis=1).argmin())
    chosen = []
    for _ in range(count):
        chosen.append(at)
        nearest = np.minimum(nearest, ((data - data[at]) ** 2).sum(axis=1))
        at = int(nearest.argmax())
    return data[chosen]


def spacing(centres: Array) -> float:
    """The mean distance from a centre to the one nearest to it; 1 where there is only one."""
    if len(centres) < 2:
        return 1.0
    between = squared_distances(centres, centres)
    np.fill_diagonal(between, np.inf)
    return float(np.sqrt(between.min(axis=1)).mean())


class RandomFourier(BlockFeatures):
    """psi(x) = (1, cos(<omega_1, x> + b_1), ...) / sqrt(p): omega is Gaussian, b uniform, both drawn once.

    Their products approach the kernel exp(-|x - y|^2 / (2 bandwidth^2)), up to a factor and the constant.

    Parameters
    ----------
    dim : p, the length of psi
    bandwidth : default: half of sqrt(k / 6), which is about the distance of two random points of [0, 1]^k
    seed : seed of the draws
    """

    name: ClassVar = "rff"

    def __init__(
        self, A: int, scaling: Scaling, *, dim: int = 100, bandwidth: float | None = None, seed: int = 0
    ) -> None:
        super().__init__(A, check_int(self.name, "dim", dim, low=2))
        if bandwidth is None:
            bandwidth = 0.5 * math.sqrt(scaling.k / 6)
        self.bandwidth = check_number(self.name, "bandwidth", bandwidth, low=0.0, open_low=True)
        rng = np.random.default_rng(check_int(self.name, "seed", seed, low=0))
        self.scaling = scaling
        self._omega = np.zeros((scaling.k, self.p))
        self._b = np.zeros(self.p)  # the first entry keeps omega = 0 and b = 0: the constant
        self._omega[:, 1:] = rng.standard_normal((scaling.k, self.p - 1)) / self.bandwidth
        self._b[1:] = rng.uniform(0.0, 2 * np.pi, self.p - 1)

    def psi(self, states: np.ndarray) -> Array:
        """(n, p)"""
        cosines: Array = np.cos(self.scaling(states) @ self._omega + self._b)
        return cosines / math.sqrt(self.p)
