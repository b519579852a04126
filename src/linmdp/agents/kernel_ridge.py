"""A ridge regression of unit vectors whose states are made of several whole numbers: what is alike helps."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar, NamedTuple

import numpy as np

from linmdp.agents.afresh import Afresh
from linmdp.agents.ridge import Rebuild, dot
from linmdp.types import Array, BoolArray, IntArray

REACH = 0.25
"""How far a value of a part is like its neighbours, as a share of the values that there are."""

ORDERED = 4
"""The least number of values of which some are neighbours, and others are not."""

LEAST, MOST = 1e-6, 1e4
"""Bounds of the variances, in units of the noise: below the first one nothing is shared, above the last all is."""

FASTEST = 10.0
"""A variance changes by this factor at most from one planning to the next."""


class Block(NamedTuple):
    """The n states in which an action was tried, and what is needed of them during a planning."""

    cells: IntArray  # (n,) their unit vectors
    visits: Array  # (n,)
    inverse: Array  # (n, n) of Lambda
    kernels: Array  # (kinds, n, n)


class KernelRidge(Afresh):
    """Lambda = K^-1 + sum phi phi' for each action, with a prior K = sum_j theta_j K_j that relates its unit vectors.

    A kernel K_j is 1 for a state and itself: the same for all states; having the same value of part i; having
    values of part i that are near; having near values of every part; being the same state. What each counts, theta_j,
    is the variance that it adds to Q in units of the noise: that of the next planning is the evidence for it (one step
    of its fixed point), so that in the end nothing is shared where states alike are not worth the same. A pair that was
    never tried has no prior but its own: it is hoped to be as good as any can be, as in `Afresh`.

    Attributes
    ----------
    theta : (kinds,) the variances
    Lambda_inv : (1, d, 1, 1) the diagonal of Lambda^-1; the rest is made at every planning, and dropped after it
    """

    _arrays: ClassVar[tuple[str, ...]] = (*Afresh._arrays, "theta")
    _derived: ClassVar = ("parts",)

    def __init__(self, d: int, lam: float, sizes: Sequence[int]) -> None:
        super().__init__(1, d, lam, d)
        S = int(np.prod(sizes))
        self.A, kept = d // S, [i for i, n in enumerate(sizes) if n > 1]
        self.parts: IntArray = np.stack(np.unravel_index(np.arange(S), sizes), axis=1)[:, kept].astype(np.int32)
        self.reach = [REACH * sizes[i] if sizes[i] >= ORDERED else 0.0 for i in kept]
        self.theta = np.ones(len(self.kinds(np.zeros(0, dtype=np.int64))))
        self.theta[0] = MOST
        self._blocks: list[Block] = []
        self._left = np.zeros(0)

    def kinds(self, states: IntArray) -> Array:
        """Every K_j of some states, (kinds, n, n)."""
        apart = [np.abs(part[:, None] - part) for part in self.parts[states].T]
        same = [np.where(x == 0, 1.0, 0.0) for x in apart]
        near = [np.exp(-x / r) if r else one for x, r, one in zip(apart, self.reach, same, strict=True)]
        ordered = [x for x, r in zip(near, self.reach, strict=True) if r]
        everywhere, both = np.ones((len(states), len(states))), [np.prod(near, axis=0)] if ordered else []
        return np.stack([everywhere, *same, *ordered, *both, np.eye(len(states))])

    def refactor(self, mask: BoolArray, rebuild: Rebuild) -> None:
        visits = rebuild(0)[:, 0, 0]
        form = np.full(len(visits), 1 / float(self.lam))
        self._blocks = []
        for action in range(self.A):
            states = np.flatnonzero(visits[action :: self.A])
            cells = states * self.A + action
            root, kernels = np.sqrt(visits[cells]), self.kinds(states)
            prior = np.tensordot(self.theta, kernels, 1)
            # Lambda^-1 = (K^-1 + N)^-1 = N^-1/2 (I - (I + N^1/2 K N^1/2)^-1) N^-1/2
            inner = np.linalg.inv(np.eye(len(states)) + root[:, None] * prior * root)
            inverse = (np.eye(len(states)) - inner) / root[:, None] / root
            form[cells] = np.maximum(inverse.diagonal(), 0.0)
            self._blocks.append(Block(cells, visits[cells], inverse, kernels))
        self.Lambda_inv[0, :, 0, 0] = form
        self.behind &= ~mask
        self.empty &= ~mask

    def fit(self, g: int, target: Array) -> Array:
        w, self._left = np.zeros_like(target), np.zeros_like(target)
        for cells, visits, inverse, _ in self._blocks:
            w[cells] = inverse @ target[cells]
            self._left[cells] = target[cells] - visits * w[cells]  # K^-1 w
        return w

    def solve(self, g: int, z: Any) -> Array:
        return self.fit(g, self.u[g] + z)

    def penalty(self, w: Array) -> float:
        return float(dot(w, self._left))

    def dof(self) -> Array:
        return np.array([sum((block.visits @ block.inverse.diagonal() for block in self._blocks), 0.0)])

    def learn(self, variance: Any) -> None:
        """The next theta_j: times |K_j^1/2 a|^2 / (sigma^2 tr K_j P) with a = K^-1 w and P = N - N Lambda^-1 N."""
        found, expected = np.zeros_like(self.theta), np.zeros_like(self.theta)
        for cells, visits, inverse, kernels in self._blocks:
            left = self._left[cells]
            found += kernels @ left @ left
            expected += np.tensordot(kernels, np.diag(visits) - visits[:, None] * inverse * visits, 2)
        expected *= float(variance)
        factor = np.divide(found, expected, out=np.ones_like(found), where=expected > 0).clip(1 / FASTEST, FASTEST)
        self.theta[:] = (self.theta * factor).clip(LEAST, MOST)
        self._blocks = []

    def drift(self, rebuild: Rebuild) -> Array:
        """Nothing drifts: the inverse is made afresh, and not kept."""
        return np.zeros(())
