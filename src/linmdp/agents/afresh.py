"""Ridge regressions that are made afresh at every planning, from what a storage holds."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np

from linmdp.agents import symmetric
from linmdp.agents.base import Component
from linmdp.agents.ridge import Rebuild, dot, fresh_inverse, masked_groups, matvec
from linmdp.types import Array, BoolArray


class Afresh(Component):
    """Lambda_g = lam I + sum phi phi' where it is block-diagonal, and u_g = sum phi r, for every regression g.

    phi = e_a (x) psi has one block for each action, a unit vector has blocks of one number, and any other phi has one
    block. The storage gives the blocks of sum phi phi', and u, whenever the inverse is made (`refactor`): it may hold
    fewer transitions than were seen, and both must come from the same ones. The interface is that of `Ridge`.

    Attributes
    ----------
    Lambda_inv : (G, blocks, p, p), that of the last planning
    u : (G, d)
    behind, empty : (G,) as in `Ridge`
    lam : () the ridge parameter
    """

    _arrays: ClassVar[tuple[str, ...]] = ("Lambda_inv", "u", "behind", "empty", "lam")
    exact, incremental, stale, absorbed = True, False, False, 0

    def __init__(self, G: int, d: int, lam: float, blocks: int) -> None:
        p = d // blocks if blocks else 1
        self.lam = np.full((), lam)
        self.u: Array = np.zeros((G, d))
        self._make_space(G, blocks, p)
        self.behind, self.empty = np.zeros(G, dtype=np.bool_), np.zeros(G, dtype=np.bool_)
        self.restart(np.ones(G, dtype=np.bool_))

    def _make_space(self, G: int, blocks: int, p: int) -> None:
        self.Lambda_inv: Array = np.zeros((G, blocks, p, p))

    def drop(self, mask: BoolArray) -> None:
        """Forget the samples of `mask`, (G,). Lambda_inv, with which the old Q acts, stays."""
        self.u[mask] = 0.0
        self.behind |= mask
        self.empty |= mask

    def restart(self, mask: BoolArray) -> None:
        """Let the next Q of `mask` start from nothing; its samples have been dropped."""
        self.Lambda_inv[mask] = np.eye(self.Lambda_inv.shape[-1]) / self.lam
        self.behind &= ~mask
        self.empty &= ~mask

    def fade(self, factor: float) -> None:
        """Let every sample count `factor` times as much; Lambda follows from the storage."""
        self.u *= factor
        self.behind[:] = True

    def add(self, g: int, phi: Any, reward: Any) -> None:
        """One sample of regression g, which the storage holds."""
        self.behind[g], self.empty[g] = True, False

    def defer(self, mask: Any, where: BoolArray) -> None:
        """Nothing waits: see `refactor`."""

    def change_lam(self, lam: Any, runs: Any = ...) -> None:
        """Another ridge parameter, from the next fresh inverse on."""
        self.lam[...] = lam
        self.behind[:] = True

    def refactor(self, mask: BoolArray, rebuild: Rebuild) -> None:
        """Make the inverses of `mask` from the blocks (blocks, p, p) of sum phi phi'."""
        for g in masked_groups(mask):
            outer, eye = rebuild(g), self.lam * np.eye(self.Lambda_inv.shape[-1])
            if len(eye) == 1:
                self.Lambda_inv[g] = 1 / (outer + eye)
            else:  # one after the other: little memory on the way
                for inverse, block in zip(self.Lambda_inv[g], outer, strict=True):
                    inverse[:] = fresh_inverse(block + eye)
        self.behind &= ~mask
        self.empty &= ~mask

    def times(self, matrices: Array, x: Array) -> Array:
        """Block-diagonal (blocks, p, p) times x (..., d)."""
        if matrices.shape[-1] == 1:
            return np.asarray(matrices[:, 0, 0] * x)
        return np.asarray(matvec(matrices, x.reshape(*x.shape[:-1], *matrices.shape[:2]))).reshape(x.shape)

    def inverse(self, g: int) -> Array:
        """Lambda_g^-1 of the last planning, (blocks, p, p)."""
        return np.asarray(self.Lambda_inv[g])

    def solve(self, g: int, z: Any) -> Array:
        """w = Lambda_g^-1 (u_g + z), (d,)."""
        return self.fit(g, self.u[g] + z)

    def fit(self, g: int, target: Array) -> Array:
        """Lambda_g^-1 target, (d,)."""
        return self.times(self.Lambda_inv[g], target)

    def correlated(self, x: Array) -> Array:
        """Lambda^-1/2 x for independent x (levels, n, d): the regression of a level is that of its group."""
        inverses = map(self.inverse, range(len(self.u)))
        roots = [np.sqrt(x) if x.shape[-1] == 1 else np.linalg.cholesky(x) for x in inverses]
        one = len(roots) == 1
        return np.stack([self.times(roots[0 if one else level], rows) for level, rows in enumerate(x)])

    def dof(self) -> Array:
        """Degrees of freedom of each regression, tr (Lambda - lam I) Lambda^-1, (G,)."""
        kept = np.trace(self.Lambda_inv, axis1=2, axis2=3).sum(axis=1)
        return np.asarray(self.u.shape[1] - float(self.lam) * kept)

    def penalty(self, w: Array) -> Any:
        """What the ridge adds to the squared residuals of the weights w (d,) that were fitted last."""
        return self.lam * dot(w, w)

    def drift(self, rebuild: Rebuild) -> Array:
        """max |Lambda Lambda^-1 - I| over all regressions that are not behind, ()."""
        worst, p = 0.0, self.Lambda_inv.shape[-1]
        for g in masked_groups(~self.behind):
            Lambda = rebuild(g) + self.lam * np.eye(p)
            worst = max(worst, float(np.abs(Lambda @ self.Lambda_inv[g] - np.eye(p)).max(initial=0.0)))
        return np.array(worst)

    def resize(self, d: int) -> None:
        """Room for d entries, where every block is one number; there are no samples of new ones yet."""
        self.u = with_columns(self.u, d, 0.0)
        kept = with_columns(self.Lambda_inv[:, :, 0, 0], d, 1 / float(self.lam))
        self.Lambda_inv = kept[:, :, None, None]


class InPlace(Afresh):
    """`Afresh` in a quarter of the space: of each block Lambda = L L' half of L^-1 is kept, in single precision.

    Rounded so, Lambda^-1 is right to a few parts in ten thousand, for the bonus and for steps: a fit goes from weights
    `near` by, of which Lambda times them is known to double precision, and only the way from there is rounded.

    Attributes
    ----------
    halves : (G, blocks + 1, n) see `symmetric`; with the last there is space for a block of Lambda in double precision
    near : weights that the next fit starts from, and Lambda times them, (d,) each; None: it starts from 0
    ready : g, scratch -> None; tells the storage that a planning begins; it may use `scratch`, half of a (p, p)
    gram : g, a, out -> None; the storage's, which writes half of the block of action a of sum phi phi' to `out`
    image : g, a, x -> (p, n); the storage's, the block of action a of sum phi phi' times x (p, n)
    """

    _arrays: ClassVar[tuple[str, ...]] = ("halves", "u", "behind", "empty", "lam")
    near: tuple[Array, Array] | None = None
    ready: Callable[[int, Array], None]
    gram: Callable[[int, int, Array], None]
    image: Callable[[int, int, Array], Array]

    def _make_space(self, G: int, blocks: int, p: int) -> None:
        self._blocks, self._p, self._missed = blocks, p, 0.0
        self.halves: Any = np.zeros((G, blocks + 1, numbers_of_half(p)), dtype=np.float32)

    def factor(self, g: int, a: int) -> Array:
        """Half of L^-1 of a block."""
        shape = symmetric.shape_of_half(self._p)
        found: Array = self.halves[g, a, : math.prod(shape)].reshape(shape)
        return found

    def factors(self, g: int) -> list[Array]:
        """Those of all blocks."""
        return [self.factor(g, a) for a in range(self._blocks)]

    def scratch(self, g: int, a: int) -> Array:
        """Space for half of a (p, p) in double precision, where block a and the one behind it lie."""
        shape = symmetric.shape_of_half(self._p)
        found: Array = self.halves[g, a : a + 2].reshape(-1).view(np.float64)[: math.prod(shape)].reshape(shape)
        return found

    def restart(self, mask: BoolArray) -> None:
        for g in masked_groups(mask):
            self.halves[g] = 0.0
            for half in self.factors(g):
                symmetric.add_to_diagonal(half, 1 / np.sqrt(self.lam))
        self.behind &= ~mask
        self.empty &= ~mask

    def refactor(self, mask: BoolArray, rebuild: Rebuild) -> None:
        for g in masked_groups(mask):
            self.ready(g, self.scratch(g, 0))
            for a in range(self._blocks):
                Lambda = self.scratch(g, a)
                self.gram(g, a, Lambda)
                symmetric.add_to_diagonal(Lambda, self.lam)
                symmetric.factor(Lambda)
                for rounded, row in zip(self.factor(g, a), Lambda, strict=True):  # behind what is still to be read
                    rounded[:] = row
        self.behind &= ~mask
        self.empty &= ~mask

    def inverse(self, g: int) -> Array:
        return np.stack([C.T @ C for C in map(symmetric.full, self.factors(g))])

    def correlated(self, x: Array) -> Array:
        """L^-T x has the covariance Lambda^-1."""
        one = len(self.u) == 1
        return np.stack([self._each(symmetric.transposed_times, 0 if one else g, rows.T).T for g, rows in enumerate(x)])

    def _each(self, product: Callable[[Array, Array], Array], g: int, x: Array) -> Array:
        """A product of every block with its part of x (d,) or (d, n)."""
        parts = x.reshape(self._blocks, self._p, *x.shape[1:])
        return np.concatenate([product(half, part) for half, part in zip(self.factors(g), parts, strict=True)])

    def fit(self, g: int, target: Array) -> Array:
        if self.near is None:
            self._missed = 0.0
            return self._each(symmetric.solve, g, target).astype(np.float64)
        (start, image), self.near = self.near, None
        w: Array = self._each(symmetric.solve, g, target - image) + start
        # <start, target> = <w, image> for the exact w: so the error of what `penalty` serves is of second order
        self._missed = float(dot(start, target) - dot(w, image))
        return w

    def penalty(self, w: Array) -> Any:
        return super().penalty(w) + self._missed

    def dof(self) -> Array:
        kept = [sum(map(symmetric.trace_of_inverse, self.factors(g))) for g in range(len(self.u))]
        return np.asarray(self.u.shape[1] - float(self.lam) * np.array(kept))

    def drift(self, rebuild: Rebuild) -> Array:
        """max |L^-1 Lambda L^-T - I| over all regressions that are not behind, ().

        Factors are made again, since there is no space for Lambda beside them: how far a product with them is from what
        it was counts as well.
        """
        worst, probe = 0.0, np.cos(np.arange(self.u.shape[1]))
        for g in masked_groups(~self.behind):
            before = self.fit(g, probe)
            self.refactor(np.arange(len(self.u)) == g, rebuild)
            worst = max(worst, float(np.abs(self.fit(g, probe) - before).max() / np.abs(before).max()))
            for a, half in enumerate(self.factors(g)):
                for i in range(0, self._p, COLUMNS):
                    unit = np.eye(self._p, min(COLUMNS, self._p - i), -i)
                    x = symmetric.transposed_times(half, unit).astype(np.float64)
                    x = self.image(g, a, x) + self.lam * x
                    worst = max(worst, float(np.abs(symmetric.times(half, x) - unit).max()))
        return np.array(worst)


COLUMNS = 8
"""Of a block, that `drift` looks at at once."""


def numbers_of_half(p: int) -> int:
    """Numbers in single precision that half of a (p, p) takes, so many that two of them begin as one in double does."""
    return 2 * -(-math.prod(symmetric.shape_of_half(p)) // 2)


def with_columns(x: Array, d: int, fill: float) -> Array:
    """A copy of x (n, m) with d columns: the first of x, and the rest filled."""
    wider = np.full((len(x), d), fill)
    kept = min(d, x.shape[1])
    wider[:, :kept] = x[:, :kept]
    return wider
