"""Feature maps for observations that are numbers. Each reads them through a `Scaling`, as x in [0, 1]^k."""

from __future__ import annotations

import itertools
import math
from typing import ClassVar

import numpy as np

from linmdp.errors import InvalidParameter, check_int, check_number
from linmdp.features.blocks import LARGEST_D, BlockFeatures
from linmdp.features.hashing import ODD, scattered
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
        angles: Array = self.scaling(states) @ self._c
        angles *= np.pi
        return normalised_cosines(angles)


def normalised_cosines(angles: Array) -> Array:
    """cos / sqrt(p) of (n, p), in double precision; in place where they are."""
    np.cos(angles, out=angles)
    found: Array = angles.astype(np.float64, copy=False)
    found /= math.sqrt(angles.shape[1])
    return found


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


class Tilings:
    """Grids of `tiles` tiles along each coordinate, each shifted against the others by a fraction of a tile.

    Parameters
    ----------
    size : tiles of each tiling; where the grid has more, they are hashed
    """

    def __init__(self, scaling: Scaling, tilings: int, tiles: int, size: int) -> None:
        self.scaling, self.tilings, self.tiles, k = scaling, tilings, tiles, scaling.k
        self.hashed, self.size = size < tiles**k, min(tiles**k, size)
        self.shift = np.arange(tilings)[:, None] * (2 * np.arange(k) + 1) / tilings % 1.0
        self.strides = np.array([pow(tiles, i, 2**63) for i in range(k)], dtype=np.uint64)

    @property
    def nbytes(self) -> int:
        """Bytes of the arrays."""
        return self.scaling.nbytes + self.shift.nbytes + self.strides.nbytes

    def __call__(self, states: np.ndarray) -> IntArray:
        """The tile of each tiling that holds a state, counted from the first of the tiling, (n, tilings)."""
        place = self.scaling(states)[:, None] * (self.tiles - 1) + self.shift
        tile = np.minimum(place, self.tiles - 1).astype(np.uint64)  # the last shift may round up to a whole tile
        code = (tile * self.strides).sum(axis=-1)
        if self.hashed:
            shifted = code + np.arange(self.tilings, dtype=np.uint64) * np.uint64(ODD)
            code = scattered(shifted) % np.uint64(self.size)
        found: IntArray = code.astype(np.int64)
        return found


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
        super().__init__(A, tilings * min(cells, size))
        self.tilings_of = Tilings(scaling, tilings, tiles, size)
        self.scaling, self.tilings, self.tiles, self.hashed = scaling, tilings, tiles, self.tilings_of.hashed

    def psi(self, states: np.ndarray) -> Array:
        """(n, p)"""
        psi = np.zeros((len(states), self.p))
        np.put_along_axis(psi, self.active(states), 1 / math.sqrt(self.tilings), axis=1)
        return psi

    def active(self, states: np.ndarray) -> IntArray:
        """The entries of psi that are not 0, one of each tiling, (n, tilings)."""
        size = self.p // self.tilings
        entries: IntArray = self.tilings_of(states) + np.arange(self.tilings) * size
        return entries


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
    squares: Array = x @ y.T  # and the rest in place: there may be millions
    squares *= -2
    squares += (x * x).sum(axis=1)[:, None]
    squares += (y * y).sum(axis=1)
    np.maximum(squares, 0.0, out=squares)
    return squares


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


def usual_bandwidth(k: int) -> float:
    """Half of about the distance of two random points of [0, 1]^k."""
    return 0.5 * math.sqrt(k / 6)


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
            bandwidth = usual_bandwidth(scaling.k)
        self.bandwidth = check_number(self.name, "bandwidth", bandwidth, low=0.0, open_low=True)
        self.seed = check_int(self.name, "seed", seed, low=0)
        rng = np.random.default_rng(self.seed)
        self.scaling = scaling
        self._omega = np.zeros((scaling.k, self.p))
        self._b = np.zeros(self.p)  # the first entry keeps omega = 0 and b = 0: the constant
        self._omega[:, 1:] = rng.standard_normal((scaling.k, self.p - 1)) / self.bandwidth
        self._b[1:] = rng.uniform(0.0, 2 * np.pi, self.p - 1)

    def psi(self, states: np.ndarray) -> Array:
        """(n, p)"""
        angles: Array = self.scaling(states) @ self._omega
        angles += self._b
        return normalised_cosines(angles)
