"""Many actions: phi(s, a) = F(s) psi(a), and the best of them without looking at them all.

The actions are cut once into cells of neighbours, those into smaller ones, and so on. In a state,
Q(a) = g'psi + beta |psi|_P with g = F(s)'w and P = F(s)' Lambda^-1 F(s). No action of a cell with centre c, radius r
and half widths t (by coordinate) is worth more than

    g'c + min(|g| r, |g|'t) + beta (|c|_P + min(r sqrt(largest eigenvalue of P), sqrt(t'|P|t))).

From the largest cells on, those that cannot hold the best action are left out, and the others are cut; the actions of
the smallest ones that remain are looked at.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from linmdp.errors import InvalidData
from linmdp.features.base import check_phi
from linmdp.types import Array, IntArray

Score = Callable[[Array, Array], Array]
"""Q from products (n, m) of vectors and features, which it may use up, and their forms (m,); growing in both."""


class Found(NamedTuple):
    """The actions that share the largest Q, in order, that Q, and the share of all actions that were looked at."""

    actions: IntArray
    value: float
    opened: float


ROUNDING = 1e-13
"""Differences of actions that are smaller than this share of the largest are none."""

BRANCHES, LEAST = 8, 16
"""Cells that a cell is cut into, and actions of the smallest ones: fewer cost more calls than they save products."""


class Cells(NamedTuple):
    """Cells of one size. Cell j has the actions order[starts[j] : starts[j + 1]]; see `cut`."""

    starts: IntArray
    centres: Array
    radii: Array
    widths: Array

    @classmethod
    def of(cls, psi: Array, starts: IntArray) -> Cells:
        """Those of the rows of psi (A, p) between `starts`."""
        sizes = np.diff(starts)
        centres = np.add.reduceat(psi, starts[:-1]) / sizes[:, None]
        off = np.abs(psi - np.repeat(centres, sizes, axis=0))
        radii = np.maximum.reduceat(np.linalg.norm(off, axis=1), starts[:-1])
        return cls(starts, centres, radii, np.maximum.reduceat(off, starts[:-1]))


def cut(psi: Array) -> tuple[IntArray, list[Cells]]:
    """The actions in an order in which neighbours are near, and cells of it, from the largest to the smallest.

    A cell is halved across its widest coordinate, three times over: the cells of one size have equally many actions.
    """
    parts: list[IntArray] = [np.arange(len(psi))]
    starts = list[IntArray]()
    while len(parts) * BRANCHES * LEAST <= len(psi):
        for _ in range(BRANCHES.bit_length() - 1):
            parts = [half for part in parts for half in _halves(psi, part)]
        starts.append(np.cumsum([0, *map(len, parts)]))
    order = np.concatenate(parts)
    return order, [Cells.of(psi[order], first) for first in starts]


def _halves(psi: Array, part: IntArray) -> tuple[IntArray, IntArray]:
    rows, middle = psi[part], len(part) // 2
    widest = int(np.ptp(rows, axis=0).argmax())
    split = np.argpartition(rows[:, widest], middle)
    return part[split[:middle]], part[split[middle:]]


class BilinearFeatures:
    """phi(s, a) = F(s) psi(a) on finite states.

    Parameters
    ----------
    F : (S, d, p) one matrix per state
    psi : (A, p) one vector per action
    bound : the norm that no phi(s, a) may exceed
    """

    def __init__(self, F: Array, psi: Array, *, bound: float = 1.0) -> None:
        F, psi = np.asarray(F, dtype=np.float64), np.asarray(psi, dtype=np.float64)
        if F.ndim != 3 or psi.ndim != 2 or F.shape[2] != psi.shape[1]:
            raise InvalidData(f"F must be (S, d, p), and psi (A, p). Got {F.shape} and {psi.shape}.")
        (self.S, self.d, self.p), self.A = F.shape, len(psi)
        self.F, self.psi, self.bound = F, psi, float(bound)
        for state in range(self.S):
            check_phi(self.phi(state), self.A, self.d, self.bound, where=f"of state {state}")
        self.order, self.cells = cut(psi)
        self._rows = np.ascontiguousarray(psi[self.order])
        _, sizes, axes = np.linalg.svd(psi - psi.mean(axis=0), full_matrices=False)
        axes = axes[sizes > ROUNDING * sizes[0]]
        self._plane = axes.T @ axes  # projects onto the plane that all differences lie in; mixtures have p - 1 axes
        for array in self._arrays:
            array.flags.writeable = False

    @property
    def nbytes(self) -> int:
        """Bytes of F, psi and the cells."""
        return sum(array.nbytes for array in self._arrays)

    @property
    def _arrays(self) -> tuple[np.ndarray, ...]:
        return (self.F, self.psi, self.order, self._rows, self._plane, *(x for cells in self.cells for x in cells))

    def phi(self, state: int) -> Array:
        """Features of `state`, (A, d)."""
        phi: Array = self.psi @ self.F[state].T
        return phi

    def row(self, state: int, action: int) -> Array:
        """phi(state, action), (d,)."""
        row: Array = self.F[state] @ self.psi[action]
        return row

    def rows(self, states: IntArray, actions: IntArray) -> Array:
        """phi of n pairs, (n, d)."""
        rows: Array = np.einsum("ndp,np->nd", self.F[states], self.psi[actions])
        return rows

    def batch(self, states: Array | IntArray) -> Array:
        """Features of n states, (n, A, d)."""
        phi: Array = np.einsum("ndp,ap->nad", self.F[states], self.psi)
        return phi

    def table(self) -> Array:
        """Features of all states, (S, A, d), written out."""
        return self.batch(np.arange(self.S))

    @property
    def columns(self) -> Array:
        """The same as (d, A*S), as in `TableFeatures`."""
        return self.table().transpose(2, 1, 0).reshape(self.d, self.A * self.S)

    def products(self, w: Array) -> Array:
        """phi(s, a)'w of every action and state, (A, S)."""
        products: Array = self.psi @ (w @ self.F).T
        return products

    def scan(self, state: int, vectors: Array, metric: Array, score: Score) -> Array:
        """Q of every action, (A,), for vectors (n, d) and the matrix (d, d) of the forms."""
        G, P = self._seen_from(state, vectors, metric)
        return score(G @ self.psi.T, _forms(self.psi, P))

    def best(self, state: int, vectors: Array, metric: Array, score: Score, tie: float) -> Found:
        """The actions whose Q is at most `tie` below the largest; the same as those of a scan."""
        G, P = self._seen_from(state, vectors, metric)
        places, _ = self._promising(G, P, score, 2 * tie)  # the second one is for rounding
        rows = self._rows[places]
        q = score(G @ rows.T, _forms(rows, P))
        top = float(q.max())
        return Found(np.sort(self.order[places[q >= top - tie]]), top, len(places) / self.A)

    def largest(self, state: int, vectors: Array, metric: Array, score: Score) -> float:
        """The largest Q alone: where all actions tie, one of them is enough."""
        G, P = self._seen_from(state, vectors, metric)
        places, top = self._promising(G, P, score, None)
        rows = self._rows[places]
        return max(top, float(score(G @ rows.T, _forms(rows, P)).max(initial=-np.inf)))

    def _promising(self, G: Array, P: Array, score: Score, slack: float | None) -> tuple[IntArray, float]:
        """The places of all actions that may come within `slack` of the best (None: that may be better), and some Q."""
        reach, top = Reach.of(G @ self._plane, self._plane @ P @ self._plane), -np.inf
        left, starts = np.arange(1), np.array([0, self.A])
        for cells in self.cells:
            left = (BRANCHES * left[:, None] + np.arange(BRANCHES)).ravel()
            starts, centres = cells.starts, cells.centres[left]
            slope, spread = reach.within(cells.radii[left], cells.widths[left])
            bounds = score(G @ centres.T + slope, (np.sqrt(_forms(centres, P)) + spread) ** 2)
            some = self._rows[starts[left]]
            top = max(top, float(score(G @ some.T, _forms(some, P)).max()))
            left = left[bounds > top] if slack is None else left[bounds >= top - slack]
            if not len(left) or (len(cells.radii) > BRANCHES and 2 * len(left) > len(cells.radii)):
                break  # nothing left, or nothing to gain
        return _members(starts, left), top

    def _seen_from(self, state: int, vectors: Array, metric: Array) -> tuple[Array, Array]:
        """What vectors (n, d) and the matrix of the forms are for psi in that state: (n, p) and (p, p)."""
        F = self.F[state]
        return vectors @ F, F.T @ metric @ F


def _forms(psi: Array, P: Array) -> Array:
    """psi'P psi of every row; not below 0, where rounding might put it."""
    forms: Array = np.abs(np.einsum("ap,ap->a", psi @ P, psi))
    return forms


def _members(starts: IntArray, cells: IntArray) -> IntArray:
    """The places of all members of these cells."""
    sizes = starts[cells + 1] - starts[cells]
    places: IntArray = np.arange(sizes.sum()) + np.repeat(starts[cells] - np.cumsum(sizes) + sizes, sizes)
    return places


class Reach(NamedTuple):
    """How far products and forms can move within a cell: g (n, p) and P (p, p), where differences lie, and norms."""

    g: Array
    P: Array
    steep: Array
    wide: float

    @classmethod
    def of(cls, g: Array, P: Array) -> Reach:
        """From g and P; what is kept of them are absolute values."""
        largest = max(float(np.linalg.eigvalsh(P)[-1]), 0.0)
        return cls(np.abs(g), np.abs(P), np.linalg.norm(g, axis=1), largest**0.5)

    def within(self, radii: Array, widths: Array) -> tuple[Array, Array]:
        """The most that products (n, m) and roots of forms (m,) can grow from the centres of m cells."""
        slope = np.minimum(self.steep[:, None] * radii, self.g @ widths.T)
        return slope, np.minimum(self.wide * radii, np.sqrt(_forms(widths, self.P)))
