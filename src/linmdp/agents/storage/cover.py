"""Covering points by few of them: distances, a greedy scan, and how sums of displacements follow when points move.

A point is a row of features, (p,), or one row for each action, (A, d); the distance of two points is the largest over
the actions. A set of n points is (n, p) or (n, A, d).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from linmdp.types import Array, BoolArray, IntArray

CHUNK = 8
"""Points whose distances to all others are taken at once."""

ROUNDING = 1e-14
"""Of distances squared that come from products, in units of the norms squared."""

WIDER = 1.5
"""The radius grows by this factor, at least, when there are too many centres: see docs/bounded-memory.md."""


def norms_squared(differences: Array) -> Array:
    """The squared distances that n differences of points are, (n,)."""
    squares: Array = np.einsum("...d,...d->...", differences, differences)
    return squares if squares.ndim == 1 else squares.max(axis=1)


def distances_squared(some: Array, points: Array) -> Array:
    """From each of `some` to each of `points`, (m, n), by products: exact to about 1e-16 times the norms squared."""
    if some.ndim == 2:
        some, points = some[:, None], points[:, None]
    some, points = some.swapaxes(0, 1), points.swapaxes(0, 1)  # actions first: one product for each
    own = np.einsum("and,and->an", points, points)[:, None, :]
    squares = own + np.einsum("amd,amd->am", some, some)[:, :, None] - 2 * (some @ points.swapaxes(1, 2))
    return np.asarray(np.maximum(squares.max(axis=0), 0.0))


def least_distance(points: Array) -> float:
    """That of the two points nearest to each other."""
    least, pair = np.inf, (0, 0)
    for i in range(0, len(points) - 1, CHUNK):
        found = distances_squared(points[i : i + CHUNK], points[i:])
        rows = np.arange(len(found))
        found[rows, rows] = np.inf
        if found.min() < least:
            a, b = divmod(int(found.argmin()), found.shape[1])
            least, pair = float(found[a, b]), (i + a, i + b)
    return float(norms_squared(points[[pair[0]]] - points[[pair[1]]])[0] ** 0.5)


def within(squares: Any, radius: float) -> Any:
    """Whether distances squared are at most the radius squared, but for rounding."""
    return squares <= radius * radius * (1 + 1e-9)


def cover(points: Array, radius: float) -> tuple[BoolArray, IntArray]:
    """Which points stay, in their order: those farther than `radius` from all that stay before; (n,).

    And into which of all points, by its number, each of the others goes: the nearest that stays before it, (n,).
    """
    n, reach = len(points), radius**2 * (1 + 1e-9) + ROUNDING * float(norms_squared(points).max(initial=0.0))
    nearest, into = np.full(n, np.inf), np.arange(n)
    for i in range(n):
        if nearest[i] > reach:
            found, later = distances_squared(points[i : i + 1], points[i + 1 :])[0], slice(i + 1, n)
            closer = found < nearest[later]
            nearest[later][closer], into[later][closer] = found[closer], i
    stays = nearest > reach
    into[stays] = np.flatnonzero(stays)
    return stays, into


def moved_farther(squares: Array, times: Array, distance: Array) -> Array:
    """A bound of sum_i (x_i + D)^2, from sum_i x_i^2 and the number of terms: (sqrt(sum x^2) + D sqrt(n))^2."""
    return np.asarray((np.sqrt(squares) + distance * np.sqrt(times)) ** 2)


def moved_outer(W: Array, X: Array) -> Array:
    """A bound, in the order of matrices, of sum (x + y)(x + y)' from sum x x' <= W and X = sum y y'.

    (x + y)(x + y)' <= (1 + c) x x' + (1 + 1/c) y y' for every c > 0; this one makes the trace least.
    """
    before, step = float(np.trace(W)), float(np.trace(X))
    if not before or not step:
        return W + X
    c = (step / before) ** 0.5
    return np.asarray((1 + c) * W + (1 + 1 / c) * X)
