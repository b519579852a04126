"""What acting needs of a planning with a Gaussian process: features, weights and deviations, level by level."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import ClassVar, NamedTuple, Self

import numpy as np
import numpy.typing as npt

from linmdp.agents.base import Component, saved_array
from linmdp.agents.budget import Choice, descending
from linmdp.agents.gaussian import Weights, distances, kernel
from linmdp.errors import InvalidData
from linmdp.types import Array, IntArray

CHUNK = 128
"""States whose deviations are computed together, so that planning takes little memory."""

NUMBERS = ("beta", "own", "shared", "exact", "hope", "come again", "stride", "L")
"""Of a plan: width, shares, what may be hoped for, the share of states that come again, and which levels are kept."""

LEAST_STATES = 8

SMALL = 16384
"""What arrays of a few numbers take together, and the objects around them."""


class Sizes(NamedTuple):
    """What decides how many bytes a plan takes, and the planning that makes it."""

    coordinates: int
    actions: int
    states: int
    cells: int
    rows: int  # transitions
    features: int
    levels: int
    itemsize: int

    @classmethod
    def most(cls, k: int, A: int, S: float, sizes: Choice, steps: float, itemsize: int) -> Self:
        """With so many states, features and kept levels, after so many steps; there are S states in all."""
        N, p, levels = sizes["states"], sizes["features"], sizes["kept"]
        rows = int(min(4 * N + 1, steps + 1, 2 * A * S * S))
        states = int(min(2 * rows, 2 * N + 2, S))
        return cls(k, A, states, min(rows, (N + 1) * A, states * A), rows, min(p, states), levels, itemsize)

    def plan(self) -> int:
        """Bytes of a plan."""
        k, A, U, C, _, p, levels, e = self
        matrices = 8 * (p * (k + p) + (A + 1) * p * p + 2 * k + 4 * levels + len(NUMBERS))
        return matrices + e * levels * (p * A + C) + U * (8 + 2 * A * e) + 8 * C + 4 * (U + 1)

    def work(self, columns: int, masked: bool, three: int) -> int:
        """The most bytes of what a planning takes for a while, the new plan with it.

        The arrays of `LSVIGP._planned` that are there together, at each place where they are many. `columns` are
        features before those that say nothing are left out, `three` are cells of two actions, one of them twice.
        """
        k, A, U, C, m, p, levels, e = self
        chunk = 8 * A * (2 * p + 2) * min(U, CHUNK)
        cells = U * (4 * k + 8 + A * masked) + 32 * m + 40 * C
        phi = cells + U * (e * p + 8) + 8 * p * p + 8 * C * (p + 7)
        fit = phi + 8 * p * p * (A + 1)
        places = (
            m * max(32 * k, 130),  # scales, and which states are the same
            cells + 8 * U * k + 8 * max(U * k, U * columns + U * p * e // 8 + 10 * U),  # features
            phi + 16 * (U + m) + max(chunk, 8 * p * (6 * p + max(A * p + C + C // A, 2 * A * p + three))),  # shares
            fit + 8 * U * A + max(chunk, 8 * U * A),  # deviations
            fit + 48 * U * A,  # hopes
            fit + U * (A * (24 + 5 * e) + 40) + e * levels * (p * A + 2 * C),  # levels
        )
        return int(max(places)) + SMALL


def smaller(sizes: Choice) -> Iterator[Choice]:
    """These, then fewer states and, with them, fewer features and kept levels."""
    yield sizes
    for n in descending(sizes["states"], LEAST_STATES):
        features, kept = max(n // 8, 2), max(n // 16, 1)
        yield {"states": n, "features": min(sizes["features"], features), "kept": min(sizes["kept"], kept)}


class Plan(Component):
    """What acting needs of a planning, for levels of steps left that lie `stride` apart.

    Attributes
    ----------
    pivots, inverse : features of a state x: inverse @ kernel(distances(x, pivots)), (p, k) and (p, p)
    centre, unit : (k,) of the states
    w : (levels, p, A)
    own : (levels, C) what the cells have of their own
    inverses, common : of `Weights`
    scale, top, cap, low : (levels,)
    codes, deviation, hope : (U,) of the states held, in order; (U, A) of their actions, hope as a share
    cells : (2, C) state, in that order, and action of each cell
    numbers : `NUMBERS`
    """

    _arrays: ClassVar[tuple[str, ...]] = (
        *("pivots", "inverse", "centre", "unit", "w", "own", "inverses", "common", "scale", "top", "cap", "low"),
        *("codes", "deviation", "hope", "cells", "numbers", "begins"),
    )
    pivots: Array
    inverse: Array
    centre: Array
    unit: Array
    w: Array
    own: Array
    inverses: Array
    common: Array
    scale: Array
    top: Array
    cap: Array
    low: Array
    codes: IntArray
    deviation: Array
    hope: Array
    cells: IntArray
    numbers: Array
    begins: IntArray

    def __init__(self, **arrays: np.ndarray) -> None:
        for name in self._arrays:
            setattr(self, name, arrays[name])

    def level(self, g: int) -> int:
        """The kept level for g steps left."""
        stride, L = int(self.numbers[6]), int(self.numbers[7])
        return -(-min(max(g, 1), L) // stride) - 1

    def find(self, codes: IntArray) -> IntArray:
        """The rows of states with these codes, -1 where there is none, (n,)."""
        at = np.minimum(self.codes.searchsorted(codes), len(self.codes) - 1)
        return np.where(self.codes[at] == codes, at, -1)

    def q(self, X: Array, g: int, rows: IntArray) -> Array:
        """Q with g steps left of states X (n, k) whose rows are known, (n, A)."""
        beta, own, shared, exact, hope, again = self.numbers[:6]
        i = self.level(g)
        phi = kernel(distances((X - self.centre) * self.unit, self.pivots)) @ self.inverse.T
        left = np.maximum(1 - np.einsum("np,np->n", phi, phi), 0.0)
        q = phi @ self.w[i]
        fit = Weights(self.inverses, self.common, float(own))
        deviation = fit.variance(phi) + (exact + (own + shared) * left)[:, None]
        unknown = again + (1 - again) * np.minimum(deviation / (own + shared + exact), 1.0)
        deviation = np.sqrt(np.maximum(deviation, 0.0))
        for n in np.flatnonzero(rows >= 0).tolist():
            u = int(rows[n])
            deviation[n], unknown[n] = self.deviation[u], self.hope[u]
            mine = slice(int(self.begins[u]), int(self.begins[u + 1]))
            q[n, self.cells[1, mine]] += self.own[i, mine]
        q = np.minimum(q + self.top[i] + beta * self.scale[i] * deviation, self.cap[i])
        found: Array = np.maximum(q + unknown * np.minimum(hope, self.cap[i] - q), self.low[i])
        return found

    def work_bytes(self, rows: int, features: int, masked: bool) -> int:
        """The most that the planning which made this took for a while, of so many transitions and features at most."""
        (p, k), (U, A), levels = self.pivots.shape, self.deviation.shape, len(self.top)
        cells = np.bincount(self.cells[1], minlength=A)  # of each action
        three = int((2 * cells + np.maximum(np.roll(cells, 1), cells[-1])).max())  # twice one's, and those of another
        sizes = Sizes(k, A, U, self.cells.shape[1], rows, p, levels, self.w.itemsize)
        return sizes.work(min(U, features), masked, three) if U else 0

    def load_state_dict(self, state: Mapping[str, np.ndarray]) -> None:
        for name in self._arrays:
            saved = saved_array(state, name)
            mine = getattr(self, name)
            if saved.dtype != mine.dtype or saved.ndim != mine.ndim:
                raise InvalidData(f"'{name}' of a saved agent must be {mine.dtype} with {mine.ndim} axes.")
            if saved.dtype.kind == "f" and not np.isfinite(saved).all():
                raise InvalidData(f"'{name}' of a saved agent must be finite.")
            setattr(self, name, saved.copy())
        self._check()

    def _check(self) -> None:
        p, U, C, levels, A = len(self.pivots), len(self.codes), self.cells.shape[1], len(self.top), self.w.shape[2]
        shapes = {"inverse": (p, p), "w": (levels, p, A), "own": (levels, C), "inverses": (A, p, p)}
        shapes |= dict.fromkeys(("scale", "cap", "low"), (levels,)) | dict.fromkeys(("deviation", "hope"), (U, A))
        shapes["common"] = (p, p)
        shapes |= {"cells": (2, C), "numbers": (len(NUMBERS),), "begins": (U + 1,), "unit": self.centre.shape}
        for name, shape in shapes.items():
            if getattr(self, name).shape != shape:
                raise InvalidData(f"'{name}' of a saved agent must have shape {shape}.")
        stride, L = self.numbers[6:]
        inside = (self.cells >= 0).all() and (self.cells < np.array([[U], [A]])).all()
        counted = (np.diff(self.begins) >= 0).all() and self.begins[0] == 0 and self.begins[-1] == C
        if not (
            inside and counted and stride >= 1 and levels == -(-L // stride) and U and (self.numbers[1:4] > 0).all()
        ):
            raise InvalidData("The plan of a saved agent must be that of its cells.")


def no_plan(k: int, A: int, dtype: str) -> Plan:
    """The shapes of a plan before there is one; what planning computes is of `dtype`."""
    sizes = {"pivots": (0, k), "inverse": (0, 0), "centre": (k,), "unit": (k,), "w": (0, 0, A), "own": (0, 0)}
    sizes |= {"inverses": (A, 0, 0), "common": (0, 0), "codes": (0,)}
    sizes |= dict.fromkeys(("scale", "top", "cap", "low"), (0,))
    sizes |= {"deviation": (0, A), "hope": (0, A), "cells": (2, 0), "numbers": (len(NUMBERS),), "begins": (1,)}
    kinds: dict[str, npt.DTypeLike] = dict.fromkeys(("w", "own", "deviation", "hope"), dtype)
    kinds |= {"codes": np.int64, "cells": np.int32, "begins": np.int32}
    return Plan(**{name: np.zeros(shape, dtype=kinds.get(name, np.float64)) for name, shape in sizes.items()})
