"""Feature maps for observations that are numbers, scaled to [0, 1]^k: a block for each action."""

from __future__ import annotations

import itertools
import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np

from linmdp.errors import InvalidData, InvalidParameter, check_int, check_number
from linmdp.types import Array, BoolArray, State

LARGEST_BOUND = 1e10
"""A bound beyond this counts as none: some spaces use the largest float for "unbounded"."""

QUANTILE = 0.01
"""Of data, the lowest and the highest hundredth lie outside the range, and are clipped to it."""


def bounded(low: Array, high: Array) -> BoolArray:
    """Which coordinates have two bounds to scale by, (k,)."""
    return (np.abs(low) < LARGEST_BOUND) & (np.abs(high) < LARGEST_BOUND)


@dataclass(frozen=True, eq=False)
class Scaling:
    """x -> (x - low) / (high - low), clipped to [-margin, 1 + margin]; a coordinate whose range is empty becomes 0.

    Attributes
    ----------
    low, high : (k,)
    margin : how far beyond its range, in ranges, a coordinate is still told apart; (k,), or one number for all
    """

    low: Array
    high: Array
    margin: Array | float = 0.0

    def __post_init__(self) -> None:
        if not (np.isfinite(self.low).all() and np.isfinite(self.high).all() and (self.low <= self.high).all()):
            raise InvalidData("The bounds of a scaling must be finite, and each low at most its high.")

    @classmethod
    def fit(cls, low: Array, high: Array, states: Array | None = None, *, margin: float = 0.0) -> Scaling:
        """The bounds (k,) where both are finite; elsewhere quantiles of the states (n, k), with that margin."""
        finite = bounded(low, high)
        if finite.all():
            return cls(np.asarray(low, dtype=np.float64), np.asarray(high, dtype=np.float64))
        if states is None or not len(states):
            raise InvalidData("Coordinates without bounds need states to scale by. Got none.")
        seen = np.quantile(np.asarray(states, dtype=np.float64), (QUANTILE, 1 - QUANTILE), axis=0)
        wide: Array | float = np.where(finite, 0.0, margin) if margin else 0.0
        return cls(np.where(finite, low, seen[0]), np.where(finite, high, seen[1]), wide)

    @property
    def k(self) -> int:
        """Number of coordinates."""
        return len(self.low)

    @property
    def nbytes(self) -> int:
        """Bytes of the bounds."""
        return self.low.nbytes + self.high.nbytes + int(getattr(self.margin, "nbytes", 0))

    def __call__(self, states: np.ndarray) -> Array:
        """(n, ...) -> (n, k), in [-margin, 1 + margin]."""
        width, least, most = self._range
        part: Array = np.asarray(states, dtype=np.float64).reshape(len(states), -1) - self.low
        part /= width
        np.maximum(part, least, out=part)
        np.minimum(part, most, out=part)
        return part

    @cached_property
    def _range(self) -> tuple[Array, Array | float, Array | float]:
        """What to divide by, infinity where the range is empty, and the bounds of what comes of it."""
        width = np.where(self.high > self.low, self.high - self.low, np.inf)
        return width, -self.margin, 1 + self.margin


LARGEST_D = 2048
"""The largest d that is accepted: agents invert d x d matrices."""


class BlockFeatures(ABC):
    """phi(s, a) is psi(s), of norm at most 1, in the block of action a, and zero in the other blocks.

    Attributes
    ----------
    A, p, d : actions, length of psi, and d = A * p
    """

    name: ClassVar[str]
    bound = 1.0

    def __init__(self, A: int, p: int) -> None:
        if A * p > LARGEST_D:
            raise InvalidParameter(
                f"The features of {self.name} must have d = A * p at most {LARGEST_D}. Got {A} * {p} = {A * p}."
            )
        self.A, self.p, self.d = A, p, A * p

    @abstractmethod
    def psi(self, states: np.ndarray) -> Array:
        """The state part of n states, (n, p); each row has norm at most 1."""

    @property
    def nbytes(self) -> int:
        """Bytes of the arrays that the map holds, its scaling among them."""
        return sum(int(getattr(part, "nbytes", 0)) for part in vars(self).values())

    def phi(self, state: State) -> Array:
        """Features of `state`, (A, d)."""
        phi: Array = self.batch(np.asarray(state)[None])[0]
        return phi

    def batch(self, states: np.ndarray) -> Array:
        """Features of n states, (n, A, d)."""
        n, each = len(states), np.arange(self.A)
        blocks = np.zeros((n, self.A, self.A, self.p))
        blocks[:, each, each] = self.psi(states)[:, None]
        return blocks.reshape(n, self.A, self.d)


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
