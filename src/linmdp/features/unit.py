"""Unit vectors without a table: phi(s, a) is the unit vector number `index(s)[a]`, in any number of dimensions."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

import numpy as np

from linmdp.errors import InvalidParameter, check_int
from linmdp.features.base import FeatureMap, Indexed
from linmdp.features.tabular import TableFeatures
from linmdp.types import Array, IntArray

LARGEST_DENSE = 1 << 14
"""The largest d for which `phi` and `batch` still write the vectors out."""
CODES = 1 << 40
"""Numbers that states are hashed to: with 1,024 actions, d is still well below 2^63."""


class UnitFeatures:
    """The tabular case as a linear one, d = S * A, in no memory: phi(s, a) is the unit vector of s * A + a.

    Parameters
    ----------
    S : number of states; states are whole numbers from 0 on
    A : number of actions
    sizes : how many values each of the whole numbers has that a state is made of, where it is made of several
    """

    S: int | None
    bound = 1.0
    nbytes = 0

    def __init__(self, S: int, A: int, sizes: Sequence[int] = ()) -> None:
        self.sizes = tuple(sizes)
        self.S, self.A = check_int("unit features", "S", S, low=1), check_int("unit features", "A", A, low=1)
        self.d = self.S * self.A

    def index(self, state: int) -> IntArray:
        """Which entry of phi(state, a) is 1, for every action, (A,)."""
        return int(state) * self.A + np.arange(self.A)

    def phi(self, state: int) -> Array:
        """Features of `state`, (A, d)."""
        phi: Array = self.batch(np.array([state]))[0]
        return phi

    def batch(self, states: np.ndarray) -> Array:
        """Features of n states, (n, A, d)."""
        if self.d > LARGEST_DENSE:
            raise InvalidParameter(
                f"Unit vectors can be written out up to d = {LARGEST_DENSE}; beyond, use storage=sparse. Got {self.d}."
            )
        rows, each = np.zeros((len(states), self.A, self.d)), np.arange(self.A)
        np.put_along_axis(rows, (np.asarray(states)[:, None] * self.A + each)[..., None], 1.0, axis=2)
        return rows


def unit_index(features: FeatureMap) -> IntArray | None:
    """Which entry of phi(s, a) is 1, (S, A), where a table has unit vectors only; else None."""
    if not isinstance(features, TableFeatures):
        return None
    columns = features.columns
    if not (((columns == 0) | (columns == 1)).all() and (columns.sum(axis=0) == 1).all()):
        return None
    return np.ascontiguousarray(columns.argmax(axis=0).reshape(features.A, features.S).T)


def is_unit(features: FeatureMap) -> bool:
    """Whether every phi(s, a) is a unit vector: a table of them, or a map that has `index` in place of a table."""
    return isinstance(features, Indexed) or unit_index(features) is not None


class HashedFeatures(UnitFeatures):
    """Unit vectors of states that are too many to be counted: `code_of` gives each of them one of 2^40 numbers.

    Two states share a number with a probability of n^2 / 2^41, if n are ever seen: 1 in 220 for 100,000.

    Parameters
    ----------
    A : number of actions
    """

    def __init__(self, A: int) -> None:
        super().__init__(CODES, A)
        self.S = None


def code_of(parts: np.ndarray) -> int:
    """The number of a state that is made of whole numbers, below 2^40: the same one in every process."""
    digest = hashlib.blake2b(parts.astype("<i8").tobytes(), digest_size=8).digest()
    return int.from_bytes(digest, "little") % CODES
