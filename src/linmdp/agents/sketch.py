"""LSVI-UCB-Sketch: Lambda as a few directions (frequent directions, Liberty 2013), and what it may be wrong by."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from linmdp.agents.backend import zeros
from linmdp.agents.base import Component
from linmdp.agents.budget import Choice, varied
from linmdp.agents.exploration.perturbation import ROWS
from linmdp.agents.lsvi import LSVIAgent
from linmdp.agents.ridge import Rebuild, fresh_inverse, masked_groups
from linmdp.errors import check_int, invalid
from linmdp.types import Array, BoolArray, IntArray, Task

LEAST_M = 2


@dataclass(frozen=True, slots=True)
class LowRank:
    """(B'B + mu I)^-1 by Woodbury: (I - B' K_inv B) / mu, with K = B B' + mu I; B (n, d), K_inv (n, n).

    It stands where a matrix (d, d) would, to its left or right in a product.
    """

    B: Array
    K_inv: Array
    mu: float

    __array_ufunc__: ClassVar = None  # NumPy leaves x @ self to `__rmatmul__`

    def __matmul__(self, x: Array) -> Array:
        return np.asarray((x - self.B.T @ (self.K_inv @ (self.B @ x))) / self.mu)

    def __rmatmul__(self, rows: Array) -> Array:
        return np.asarray((rows - rows @ self.B.T @ self.K_inv @ self.B) / self.mu)

    def astype(self, dtype: str, *, copy: bool) -> LowRank:
        """The same in another precision."""
        return LowRank(self.B.astype(dtype, copy=copy), self.K_inv.astype(dtype, copy=copy), self.mu)


def shrunk(B: Array, m: int) -> tuple[Array, float]:
    """B* (m-1, d) with B*'B* <= B'B <= B*'B* + delta I, and delta = sigma_m(B)^2: line 4 of frequent directions."""
    squares, U = np.linalg.eigh(B @ B.T)
    squares, U = np.maximum(squares[::-1], 0.0), U[:, ::-1]  # the largest first
    delta, squares = squares[m - 1], squares[: m - 1]
    scale = np.sqrt(1 - np.divide(delta, squares, out=np.ones(m - 1), where=squares > 0))
    return scale[:, None] * (U[:, : m - 1].T @ B), float(delta)


class Sketched(Component):
    """Lambda_g = B_g'B_g + (lam + alpha_g) I of at most 2m rows B_g, for every regression g, and u_g = sum phi r.

    A sample is one more row. When there is no space for another they are shrunk at the next planning, and `alpha`
    adds up what was taken from their squares: sum phi phi' <= B'B + alpha I. The interface is that of `Ridge`; the
    rows that came after a planning do not act before the next, and between two plannings there is one at most.

    Attributes
    ----------
    B : (G, 2m, d)
    rows, acting : (G,) how many rows there are, and how many are in the Lambda of the last planning
    K_inv : (G, 2m, 2m) of the acting rows: see `LowRank`
    alpha, mu : (G,) the shrinkage so far, and lam + alpha of the last planning
    u : (G, d)
    norms : (G,) bounds of |theta_h + sum V mu_h|, by which an error of Lambda is multiplied
    """

    _arrays: ClassVar = ("B", "rows", "acting", "K_inv", "alpha", "mu", "u", "behind", "empty", "lam")
    _derived: ClassVar = ("norms",)
    exact, incremental, stale, absorbed = False, False, False, 0

    def __init__(self, G: int, d: int, lam: float, m: int, norms: Array, rows: int) -> None:
        self.m, self.norms, self.lam, self._together = m, norms, np.full((), lam), rows
        self.B, self.u = zeros((G, 2 * m, d)), zeros((G, d))
        self.K_inv, self.alpha, self.mu = zeros((G, 2 * m, 2 * m)), np.zeros(G), np.full(G, lam)
        self.rows: IntArray = np.zeros(G, dtype=np.int64)
        self.acting: IntArray = np.zeros(G, dtype=np.int64)
        self.behind, self.empty = np.zeros(G, dtype=np.bool_), np.zeros(G, dtype=np.bool_)

    def working_bytes(self, samples: int) -> int:
        """Forms of all rows that are valued together are made of two products more."""
        (G, n, d), rows = self.B.shape, self._together
        return int(8 * (8 * n * n + 4 * n * d + 6 * G * d + 2 * n * rows))

    def add(self, g: int, phi: Array, reward: float) -> None:
        """One sample of regression g."""
        self.B[g, self.rows[g]] = phi
        self.rows[g] += 1
        self.u[g] += phi * reward
        self.behind[g] = True

    def defer(self, mask: Any, where: BoolArray) -> None:
        """Nothing waits: see `refactor`."""

    def refactor(self, mask: BoolArray, rebuild: Rebuild) -> None:
        """Bring the rows of `mask` into Lambda^-1; shrink them first where no other would have space."""
        for g in masked_groups(mask):
            if self.rows[g] == len(self.B[g]):
                kept, delta = shrunk(self.B[g], self.m)
                self.rows[g] = self.m - 1
                self.B[g, : self.m - 1] = kept
                self.alpha[g] += delta
            n = self.acting[g] = self.rows[g]
            self.mu[g] = self.lam + self.alpha[g]
            self.K_inv[g, :n, :n] = fresh_inverse(self._K(g))
        self.behind &= ~mask

    def _K(self, g: int) -> Array:
        B = self.B[g, : self.acting[g]]
        return np.asarray(B @ B.T + self.mu[g] * np.eye(len(B)))

    def inverse(self, g: int) -> LowRank:
        """Lambda_g^-1 of the last planning."""
        n = self.acting[g]
        return LowRank(self.B[g, :n], self.K_inv[g, :n, :n], float(self.mu[g]))

    def solve(self, g: int, z: Any) -> Array:
        """w = Lambda_g^-1 (u_g + z), (d,)."""
        target: Array = self.u[g] + z
        return self.inverse(g) @ target

    @property
    def errors(self) -> Array:
        """(G,) by how much wider a bonus must be than with Lambda as it is: see the docs."""
        return np.asarray(self.norms * (np.sqrt(self.mu) - np.sqrt(self.lam)))

    def drift(self, rebuild: Rebuild) -> Array:
        """max |K K^-1 - I| over all regressions, ()."""
        off = [self._K(g) @ self.inverse(g).K_inv - np.eye(n) for g, n in enumerate(self.acting)]
        return np.array(max(float(np.abs(x).max(initial=0.0)) for x in off))


class LSVIUCBSketch(LSVIAgent):
    """LSVI-UCB-Sketch: LSVI-UCB with 2 m d numbers for each Lambda in place of d^2, by frequent directions.

    What the sketch takes from Lambda is added to the ridge, and measured: `agent.diagnostics()["shrinkage"]`.

    Parameters
    ----------
    m : directions that are kept; with more than there are in the features the sketch is exact. Default: d/8
    inflate : the share, from 0 to 1, of what the shrinkage may cost that widens the bonus; 1 is what the theorem asks
    common : the parameters of `LSVIUCB`; storage "counts", "features" or "states", and not stationary
    """

    name, follows_evidence, bounded_errors = "lsvi-ucb-sketch", False, True
    test_parameters = (
        {},
        {"m": 2, "beta": 0.1, "inflate": 0.01},
        {"m": 3, "storage": "features"},
        {"m": 2, "storage": "states", "dtype": "float32"},
    )

    def __init__(self, task: Task, *, m: int | None = None, inflate: float = 0.0, **common: Any) -> None:
        self.m = m
        super().__init__(task, inflate=inflate, **common)

    def usual_storage(self, *, table: bool, unit: bool) -> str:
        return "counts" if table else "features"

    def make_ridge(self) -> Sketched:
        if self.horizon.shared:
            invalid(self.name, "stationary", "false: each step has a sketch of its own", self.stationary)
        if self._storing.name not in ("counts", "features", "states"):
            invalid(self.name, "storage", "'counts', 'features' or 'states'", self._storing.name)
        m = int(self.chosen_within.get("m", self._directions()))
        low, high = (abs(r) for r in self.task.reward_range)
        largest = max(low, high) + np.maximum(self.caps, np.abs(self.horizon.lows(self.task.reward_range[0])))
        norms = np.sqrt(self.task.d) * np.append(largest[1:], max(low, high))
        rows = self.task.A * max(self.task.S or 0, ROWS)
        return Sketched(self.horizon.groups, self.task.d, self.lam_value, m, norms, rows)

    def _directions(self) -> int:
        usual = max(LEAST_M, self.task.d // 8)
        return usual if self.m is None else check_int(self.name, "m", self.m, low=LEAST_M, high=10**5)

    def diagnostics(self) -> dict[str, float]:
        ridge: Any = self._planner.ridge
        return super().diagnostics() | {"shrinkage": float(ridge.alpha.max() / ridge.lam)}

    def _choices(self) -> Iterator[Choice]:
        for choice in super()._choices():
            yield from varied([choice], "m", self._directions(), LEAST_M)
