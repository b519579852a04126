"""Feature maps for observations that are numbers. Each reads them through a `Scaling`, as x in [0, 1]^k."""

from __future__ import annotations

import itertools
import math
from typing import ClassVar

import numpy as np

from linmdp.errors import check_int, check_number
from linmdp.features.blocks import BlockFeatures
from linmdp.features.scaling import Scaling
from linmdp.types import Array


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


class RandomFourier(BlockFeatures):
    """psi(x) = (1, cos(<omega_1, x> + b_1), ...) / sqrt(p): omega is Gaussian, b uniform, both drawn once.

    Their products approach the kernel exp(-|x - y|^2 / (2 bandwidth^2)), up to a factor and the constant.

    Parameters
    ----------
    dim : p, the length of psi
    bandwidth : default: smooth enough for so many features to cover the box, and no wider than two random points of it
        are apart
    seed : seed of the draws
    """

    name: ClassVar = "auto"

    def __init__(
        self, A: int, scaling: Scaling, *, dim: int = 100, bandwidth: float | None = None, seed: int = 0
    ) -> None:
        dim, k = check_int(self.name, "dim", dim, low=2), scaling.k
        super().__init__(A, dim)
        if bandwidth is None:
            bandwidth = min(math.sqrt(k / 6), 2.5 * dim ** (-1 / k))
        self.bandwidth = check_number(self.name, "bandwidth", bandwidth, low=0.0, open_low=True)
        self.seed = check_int(self.name, "seed", seed, low=0)
        rng = np.random.default_rng(self.seed)
        self.scaling = scaling
        self._omega = np.zeros((k, self.p))
        self._b = np.zeros(self.p)  # the first entry keeps omega = 0 and b = 0: the constant
        self._omega[:, 1:] = rng.standard_normal((k, self.p - 1)) / self.bandwidth
        self._b[1:] = rng.uniform(0.0, 2 * np.pi, self.p - 1)

    def psi(self, states: np.ndarray) -> Array:
        """(n, p)"""
        angles: Array = self.scaling(states) @ self._omega
        angles += self._b
        return normalised_cosines(angles)
