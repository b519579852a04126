"""Covering points by few of them: distances, a greedy scan, and how sums of displacements follow when points move.

A point is a row of features, (p,), or one row for each action, (A, d); the distance of two points is the largest over
the actions. A set of n points is (n, p) or (n, A, d).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from linmdp.types import Array, BoolArray, IntArray

CHUNK = 8
"""Points whose distances to all others are taken at once."""

NEIGHBOURS = 6
"""Centres that may stand for one point."""

RIDGE, SLACK = 1e-6, 1e-9
"""So that weights are those of one solution, and points as far apart as the radius count as within it."""

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


def cover(points: Array, radius: float) -> BoolArray:
    """Which points stay, in their order: those farther than `radius` from all that stay before; (n,)."""
    reach = radius**2 * (1 + SLACK) + ROUNDING * float(norms_squared(points).max(initial=0.0))
    nearest = np.full(len(points), np.inf)
    for i in range(len(points)):
        if nearest[i] > reach:
            later = nearest[i + 1 :]
            np.minimum(later, distances_squared(points[i : i + 1], points[i + 1 :])[0], out=later)
    return nearest > reach


class Shares(NamedTuple):
    """Which points stand for another, with which weights, and how far from them it is; `nearest`: from any, squared."""

    into: IntArray
    weights: Array
    moved: Array
    nearest: float


def shared(point: Array, points: Array, reach: float, limit: float = np.inf) -> Shares:
    """The nearest of the points, or up to NEIGHBOURS of them within `reach`, to stand for `point`; none beyond `limit`.

    Their weights are not negative, have the sum 1, and bring the mean of their features as near to those of `point` as
    they can, but for points that are left out on the way, where a weight would be negative.
    """
    moved = point - points
    squares = norms_squared(moved)
    near = np.argsort(squares, kind="stable")[:NEIGHBOURS]
    nearest = float(squares[near[0]])
    if nearest > limit * limit * (1 + SLACK):
        return Shares(near[:0], np.zeros(0), moved[:0], nearest)
    within = squares[near] <= reach * reach * (1 + SLACK)
    near = near[: max(1, np.count_nonzero(within)) if nearest else 1]
    D = moved[near].reshape(len(near), -1).astype(np.float64)
    products, left = D @ D.T, np.arange(len(near))
    products += RIDGE * np.trace(products) * np.eye(len(near))
    while len(left) > 1:
        weights = np.linalg.solve(products[np.ix_(left, left)], np.ones(len(left)))
        if (weights > 0).all():
            return Shares(near[left], weights / weights.sum(), D[left].reshape(-1, *point.shape), nearest)
        left = left[weights > 0]
    return Shares(near[left], np.ones(1), D[left].reshape(-1, *point.shape), nearest)


def moved_farther(squares: float, times: float, distance: Array) -> Array:
    """A bound of sum_i (x_i + D)^2, from sum_i x_i^2 and the number of terms: (sqrt(sum x^2) + D sqrt(n))^2."""
    return np.asarray((squares**0.5 + distance * times**0.5) ** 2)


def moved_outer(W: Array, X: Any) -> Array:
    """A bound, in the order of matrices, of sum (x + y)(x + y)' from sum x x' <= W and X = sum y y'.

    (x + y)(x + y)' <= (1 + c) x x' + (1 + 1/c) y y' for every c > 0; this one makes the trace least.
    """
    before, step = float(np.trace(W)), float(np.trace(X))
    if not before or not step:
        return np.asarray(W + X)
    c = (step / before) ** 0.5
    return np.asarray((1 + c) * W + (1 + 1 / c) * X)
