"""What acting needs of a planning with a Gaussian process: features, weights and deviations, level by level."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from linmdp.agents.base import Component, saved_array
from linmdp.agents.gaussian import Weights, distances, kernel
from linmdp.errors import InvalidData
from linmdp.types import Array, IntArray

CHUNK = 128
"""States whose deviations are computed together, so that planning takes little memory."""

SMALL = 16384
"""What arrays of a few numbers take together, and the objects around them."""


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
    numbers : beta, shares own, shared and exact, what may be hoped for, the share of states that come again, stride, L
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

    def work_bytes(self, m: int, features: int, masked: bool) -> int:
        """The most bytes of what a planning that made this takes for a while: m transitions, features at most.

        The arrays of `LSVIGP._planned` that are there together, at each place where they are many; with those of the
        new plan, but for the old one.
        """
        (p, k), (U, A), C, e = self.pivots.shape, self.deviation.shape, self.cells.shape[1], self.w.itemsize
        if not U:
            return 0
        levels, own = len(self.top), np.bincount(self.cells[1], minlength=A)  # cells of each action
        three = int((2 * own + np.maximum(np.roll(own, 1), own[-1])).max())  # twice one's, and those of the one before
        chunk = 8 * A * (2 * p + 2) * min(U, CHUNK)
        cells = U * (4 * k + 8 + A * masked) + 32 * m + 40 * C
        phi = cells + U * (e * p + 8) + 8 * p * p + 8 * C * (p + 7)
        fit = phi + 8 * p * p * (A + 1)
        places = (
            m * max(32 * k, 130),  # scales, and which states are the same
            cells + 8 * U * k + 8 * max(U * k, U * min(features, U) + U * p * e // 8 + 10 * U),  # features
            phi + 16 * (U + m) + max(chunk, 8 * p * (6 * p + max(A * p + C + own[-1], 2 * A * p + three))),  # shares
            fit + 8 * U * A + max(chunk, 8 * U * A),  # deviations
            fit + 48 * U * A,  # hopes
            fit + U * (A * (24 + 5 * e) + 40) + e * levels * (p * A + 2 * C),  # levels
        )
        return int(max(places)) + SMALL

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
        shapes |= {"cells": (2, C), "numbers": (8,), "begins": (U + 1,), "unit": self.centre.shape}
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
    sizes |= {"deviation": (0, A), "hope": (0, A), "cells": (2, 0), "numbers": (8,), "begins": (1,)}
    kinds: dict[str, npt.DTypeLike] = dict.fromkeys(("w", "own", "deviation", "hope"), dtype)
    kinds |= {"codes": np.int64, "cells": np.int32, "begins": np.int32}
    return Plan(**{name: np.zeros(shape, dtype=kinds.get(name, np.float64)) for name, shape in sizes.items()})
