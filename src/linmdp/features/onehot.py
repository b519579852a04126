"""One-hot features of several whole numbers: of each alone, of each pair, or of any groups of them."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from typing import ClassVar

import numpy as np

from linmdp.errors import InvalidData
from linmdp.features.blocks import BlockFeatures
from linmdp.types import Array, IntArray

Decode = Callable[[np.ndarray], IntArray]
"""n states -> their parts, (n, k) whole numbers from 0 on."""


class OneHot(BlockFeatures):
    """psi has a unit vector for each group of parts, divided by the square root of the number of groups.

    One group of all parts is the tabular case. Groups of one part each make psi additive; groups of two, pairwise.

    Parameters
    ----------
    sizes : how many values each of the k parts has
    groups : which parts are joined in each group; default: all of them in one
    decode : from states to parts, where states are not already (n, k) parts
    """

    name: ClassVar = "onehot"

    def __init__(
        self,
        A: int,
        sizes: Sequence[int],
        *,
        groups: Sequence[tuple[int, ...]] | None = None,
        decode: Decode | None = None,
    ) -> None:
        self.sizes = tuple(int(n) for n in sizes)
        self.groups = tuple(groups) if groups is not None else (tuple(range(len(self.sizes))),)
        widths = [math.prod(self.sizes[i] for i in group) for group in self.groups]
        super().__init__(A, sum(widths))
        self.decode = decode
        self._strides = np.zeros((len(self.sizes), len(self.groups)), dtype=np.int64)
        for g, group in enumerate(self.groups):
            for place, i in enumerate(group):
                self._strides[i, g] = math.prod(self.sizes[j] for j in group[place + 1 :])
        self._first = np.cumsum([0, *widths[:-1]])

    def psi(self, states: np.ndarray) -> Array:
        """(n, p)"""
        psi = np.zeros((len(states), self.p))
        np.put_along_axis(psi, self.active(states), 1 / math.sqrt(len(self.groups)), axis=1)
        return psi

    def active(self, states: np.ndarray) -> IntArray:
        """The entries of psi that are not 0, one of each group, (n, groups)."""
        parts = self.decode(states) if self.decode else np.asarray(states).reshape(len(states), -1)
        if parts.size and not ((parts >= 0) & (parts < np.array(self.sizes))).all():
            raise InvalidData(f"The parts of a state must be whole numbers below {self.sizes}. Got another.")
        codes: IntArray = parts.astype(np.int64) @ self._strides + self._first
        return codes


def joined(k: int, order: int) -> tuple[tuple[int, ...], ...]:
    """Every group of `order` out of k parts."""
    return tuple(itertools.combinations(range(k), min(order, k)))
