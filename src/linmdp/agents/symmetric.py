"""Symmetric matrices in half the space, and what is computed with them where they lie.

S (p, p) is cut after h = p // 2 rows and columns; q = p - h. Its half is one array (q, p + 1):

    columns 0 to q - 1, on and below the diagonal     S[h:, h:]
    columns 1 to h, on and above their diagonal       S[:h, :h]
    columns q + 1 to p                                S[h:, :h]

so that all work is products of plain matrices, with (q, q) numbers beside them at most.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from linmdp.types import Array

COLUMNS = 16
"""Of a matrix, that are looked at at once."""


class Pieces(NamedTuple):
    """Views of a half: only one triangle of the first two is theirs."""

    first: Array  # (h, h), on and above the diagonal
    last: Array  # (q, q), on and below it
    cross: Array  # (q, h)


def shape_of_half(p: int) -> tuple[int, int]:
    """The shape of the half of a (p, p) matrix."""
    return p - p // 2, p + 1


def pieces(half: Array) -> Pieces:
    """The three parts of a half, (q, p + 1)."""
    q = len(half)
    h = half.shape[1] - 1 - q
    return Pieces(half[:h, 1 : h + 1], half[:, :q], half[:, q + 1 :])


def above(square: Array) -> Array:
    """What is on and above the diagonal, with half of the diagonal: T of a symmetric T + T'."""
    return halved(np.triu(square))


def below(square: Array) -> Array:
    """The same of what is on and below it."""
    return halved(np.tril(square))


def halved(triangle: Array) -> Array:
    """A triangle with half of its diagonal; in place."""
    triangle.flat[:: len(triangle) + 1] /= 2
    return triangle


def add_outer(half: Array, rows: Array) -> None:
    """S += sum of x x' over the rows x, (n, p)."""
    first, last, cross = pieces(half)
    one, two = rows[:, : len(first)], rows[:, len(first) :]
    np.add(first, one.T @ one, out=first, where=np.tri(len(first), dtype=np.bool_).T)
    np.add(last, two.T @ two, out=last, where=np.tri(len(last), dtype=np.bool_))
    cross += two.T @ one


def add_to_diagonal(half: Array, x: Any) -> None:
    """S += x I."""
    for part in pieces(half)[:2]:
        np.einsum("ii->i", part)[...] += x


def trace(half: Array) -> float:
    """tr S."""
    return sum(float(np.trace(part)) for part in pieces(half)[:2])


def off_identity(half: Array, other: Array) -> float:
    """max |S T - I| for the halves of S and T: how far the second is from the inverse of the first."""
    worst, p = 0.0, half.shape[1] - 1
    for i in range(0, p, COLUMNS):
        unit = np.zeros((p, min(COLUMNS, p - i)))
        unit[i : i + COLUMNS] = np.eye(unit.shape[1])
        worst = max(worst, float(np.abs(times(half, times(other, unit)) - unit).max()))
    return worst


def times(half: Array, x: Array) -> Array:
    """S x, for x (p,) or (p, n)."""
    first, last, cross = pieces(half)
    one, two = x[: len(first)], x[len(first) :]
    return np.concatenate((both(above(first), one) + cross.T @ two, cross @ one + both(below(last), two)))


def both(triangle: Array, x: Array) -> Array:
    """(T + T') x."""
    product: Array = triangle @ x
    product += triangle.T @ x
    return product


def forms(half: Array, rows: Array) -> Array:
    """x' S x for every row x, (n,)."""
    first, last, cross = pieces(half)
    one, two = rows[:, : len(first)], rows[:, len(first) :]
    found = dots(one @ above(first), one)
    found += dots(two @ below(last), two)
    found += dots(two @ cross, one)
    found *= 2.0
    return found


def dots(x: Array, y: Array) -> Array:
    """The product of every row of x (n, m) with that of y, (n,)."""
    found: Array = np.einsum("nm,nm->n", x, y)
    return found


def full(half: Array) -> Array:
    """S, (p, p)."""
    first, last, cross = pieces(half)
    corner, opposite = above(first), below(last)
    return np.block([[corner + corner.T, cross.T], [cross, opposite + opposite.T]])


def invert(half: Array) -> None:
    """Make the half of S that of its inverse, by p sweeps; S is positive definite."""
    first, last, cross = pieces(half)
    h, q = len(first), len(last)
    upper, lower = np.tri(h, dtype=np.bool_).T, np.tri(q, dtype=np.bool_)
    for k in range(h + q):
        i = k - h
        row = np.concatenate(
            (first[:k, k], first[k, k:], cross[:, k]) if i < 0 else (cross[i], last[i, :i], last[i:, i])
        )
        pivot = float(row[k])
        root = row / math.sqrt(pivot)
        one, two = root[:h], root[h:]
        np.subtract(first, one[:, None] * one, out=first, where=upper)
        np.subtract(last, two[:, None] * two, out=last, where=lower)
        cross -= two[:, None] * one
        row /= pivot
        row[k] = -1.0 / pivot
        if i < 0:
            first[:k, k], first[k, k:], cross[:, k] = row[:k], row[k:h], row[h:]
        else:
            cross[i], last[i, :i], last[i:, i] = row[:h], row[h : h + i], row[h + i :]
    np.negative(half, out=half)
