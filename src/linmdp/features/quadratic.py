"""Polynomials of a state: its coordinates, their products two by two, and their sizes."""

from __future__ import annotations

import numpy as np

from linmdp.features.scaling import Scaling
from linmdp.types import Array

MOST = 100
"""The most numbers of a quadratic form: with more coordinates squares alone are used, and with still more none."""


class Quadratic:
    """(1, z, z_i z_j for i <= j) of z = scaling(s) - 1/2; z_i z_i alone, or only (1, z), where that is too long.

    Attributes
    ----------
    k, p : number of coordinates, and of all numbers
    first, second : (p - 1 - k,) the coordinates of each product
    """

    def __init__(self, scaling: Scaling) -> None:
        self.scaling, self.k = scaling, scaling.k
        every = np.arange(self.k)
        pairs = np.triu_indices(self.k), (every, every), (every[:0], every[:0])
        self.first, self.second = next(ij for ij in pairs if 1 + self.k + len(ij[0]) <= MOST or not len(ij[0]))
        self.p = 1 + self.k + len(self.first)

    def __call__(self, states: np.ndarray) -> Array:
        """(n, ...) -> (n, p)"""
        z = self.scaling(states) - 0.5
        found = np.empty((len(z), self.p))
        found[:, 0], found[:, 1 : 1 + self.k] = 1.0, z
        np.multiply(z[:, self.first], z[:, self.second], out=found[:, 1 + self.k :])
        return found
