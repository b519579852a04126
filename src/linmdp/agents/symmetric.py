"""Symmetric matrices, and the inverses of their factors, in half the space; what is computed where they lie.

S (p, p) is cut after h = p // 2 rows and columns; q = p - h. Its half is one array (q, p + 1):

    columns 0 to q - 1, on and below the diagonal     S[h:, h:]
    columns 1 to h, on and above their diagonal       S[:h, :h]'
    columns q + 1 to p                                S[h:, :h]

so that all work is products of plain matrices, with (q, q) numbers beside them at most. In place of S = L L' the half
can hold C = L^-1, which is 0 above the diagonal: S^-1 = C'C. In single precision S^-1 itself would be off by 6e-8 times
the condition of S, up to 1e8, and C is off by 6e-8 times the root of that: |C S C' - I| is 1e-4.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from linmdp.types import Array

ROWS = 16
"""Of a matrix, that are changed at once."""


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


def add_outer(half: Array, rows: Array) -> None:
    """S += sum of x x' over the rows x, (n, p)."""
    first, last, cross = pieces(half)
    one, two = rows[:, : len(first)].T, rows[:, len(first) :].T
    add_product(first.T, one, one.T, triangle=True)
    add_product(last, two, two.T, triangle=True)
    add_product(cross, two, one.T, triangle=False)


def add_product(out: Array, x: Array, y: Array, *, triangle: bool, start: int = 0) -> None:
    """out += x y for matrices, or what is on and below the diagonal of it, a few rows at a time; x[:start] is 0."""
    for i in range(start - start % ROWS, len(out), ROWS):
        j = i + ROWS
        if triangle:
            out[i:j, :j] += np.tril(x[i:j] @ y[:, :j], i)
        else:
            out[i:j] += x[i:j] @ y


def add_to_diagonal(half: Array, x: Any) -> None:
    """S += x I."""
    for part in pieces(half)[:2]:
        np.einsum("ii->i", part)[...] += x


def factor(half: Array) -> None:
    """Make the half of S = L L' that of C = L^-1, by eliminating column after column; S is positive definite."""
    first, last, cross = pieces(half)
    h, q = len(first), len(last)
    for k in range(h + q):
        i = k - h
        row = np.concatenate(
            (first[:k, k], first[k, k:], cross[:, k]) if i < 0 else (cross[i], last[i, :i], last[i:, i])
        )
        pivot = math.sqrt(row[k])
        row /= pivot
        rest = -row[:, None]
        rest[: k + 1] = 0.0  # rows up to k are done
        if i < 0:
            add_product(first.T, rest[:h], row[None, :h], triangle=True, start=k)
        add_product(last, rest[h:], row[None, h:], triangle=True, start=max(i, 0))
        add_product(cross, rest[h:], row[None, :h], triangle=False, start=max(i, 0))
        row[k + 1 :] /= -pivot
        row[k] = 1.0 / pivot
        if i < 0:
            first[:k, k], first[k, k:], cross[:, k] = row[:k], row[k:h], row[h:]
        else:
            cross[i], last[i, :i], last[i:, i] = row[:h], row[h : h + i], row[h + i :]


def lower(square: Array) -> Array:
    """What is on and below the diagonal."""
    found: Array = square.copy()
    found[np.tri(len(found), k=-1, dtype=np.bool_).T] = 0.0
    return found


def upper(square: Array) -> Array:
    """What is on and above it."""
    found: Array = square.copy()
    found[np.tri(len(found), k=-1, dtype=np.bool_)] = 0.0
    return found


def times(half: Array, x: Array) -> Array:
    """C x, for x (p,) or (p, n), in the precision of the half."""
    first, last, cross = pieces(half)
    x = x.astype(half.dtype, copy=False)
    one, two = x[: len(first)], x[len(first) :]
    return np.concatenate((upper(first).T @ one, cross @ one + lower(last) @ two))


def transposed_times(half: Array, x: Array) -> Array:
    """C'x, as in `times`."""
    first, last, cross = pieces(half)
    x = x.astype(half.dtype, copy=False)
    one, two = x[: len(first)], x[len(first) :]
    return np.concatenate((upper(first) @ one + cross.T @ two, lower(last).T @ two))


def solve(half: Array, x: Array) -> Array:
    """S^-1 x = C'C x, as in `times`."""
    return transposed_times(half, times(half, x))


def forms(half: Array, rows: Array) -> Array:
    """x' S^-1 x = |C x|^2 for every row x, (n,)."""
    first, last, cross = pieces(half)
    rows = rows.astype(half.dtype, copy=False)
    one, two = rows[:, : len(first)], rows[:, len(first) :]
    found = squared_norms(one @ upper(first))
    product = one @ cross.T
    product += two @ lower(last).T
    found += squared_norms(product)
    return found


def squared_norms(rows: Array) -> Array:
    """|x|^2 of every row x, (n,)."""
    found: Array = np.einsum("nm,nm->n", rows, rows)
    return found


def trace_of_inverse(half: Array) -> float:
    """tr S^-1 = sum of the squares of C."""
    first, last, cross = pieces(half)
    return sum(float(np.square(part).sum(dtype=np.float64)) for part in (upper(first), lower(last), cross))


def full(half: Array) -> Array:
    """C, (p, p), or what is on and below the diagonal of S."""
    first, last, cross = pieces(half)
    return np.block([[upper(first).T, np.zeros(cross.T.shape)], [cross, lower(last)]])
