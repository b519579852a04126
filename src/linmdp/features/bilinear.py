"""Many actions: phi(s, a) = F(s) psi(a), so that nothing is kept for each state and action."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from linmdp.errors import InvalidData
from linmdp.features.base import check_phi
from linmdp.types import Array, IntArray

Score = Callable[[Array, Array], Array]
"""Q from products (n, m) of vectors and features, which it may use up, and their forms (m,); growing in both."""


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
        for array in (self.F, self.psi):
            array.flags.writeable = False

    @property
    def nbytes(self) -> int:
        """Bytes of F and psi."""
        return self.F.nbytes + self.psi.nbytes

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
        F = self.F[state]
        forms = np.abs(np.einsum("ap,ap->a", self.psi @ (F.T @ metric @ F), self.psi))  # not below 0 by rounding
        return score((vectors @ F) @ self.psi.T, forms)
