"""Ridge regressions that are made afresh at every planning, from what a storage holds."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from linmdp.agents.backend import zeros
from linmdp.agents.base import Component
from linmdp.agents.held import POSITIVE
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
    _saved_within: ClassVar = {"lam": (POSITIVE, np.inf)}
    exact, incremental, stale, absorbed = True, False, False, 0

    def __init__(self, G: int, d: int, lam: float, blocks: int) -> None:
        p = d // blocks if blocks else 1
        self.lam = np.full((), lam)
        self.u: Array = zeros((G, d))
        self.Lambda_inv: Array = zeros((G, blocks, p, p))
        self.behind, self.empty = np.zeros(G, dtype=np.bool_), np.zeros(G, dtype=np.bool_)
        self.restart(np.ones(G, dtype=np.bool_))

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

    def rebuilt(self, g: int, gram: Array) -> Array:
        """The blocks, as the storage made them: lam I is added where they are inverted."""
        return gram

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
        """max |Lambda Lambda^-1 - I| over all regressions, (); of those that are behind, of the inverse that comes."""
        worst, p = 0.0, self.Lambda_inv.shape[-1]
        for g, stale in enumerate(self.behind):
            Lambda = rebuild(g) + self.lam * np.eye(p)
            inverse = fresh_inverse(Lambda) if stale else self.Lambda_inv[g]
            worst = max(worst, float(np.abs(Lambda @ inverse - np.eye(p)).max(initial=0.0)))
        return np.array(worst)

    def resize(self, d: int) -> None:
        """Space for d entries, where every block is one number; there are no samples of new ones yet."""
        self.u = with_columns(self.u, d, 0.0)
        kept = with_columns(self.Lambda_inv[:, :, 0, 0], d, 1 / float(self.lam))
        self.Lambda_inv = kept[:, :, None, None]


def with_columns(x: Array, d: int, fill: float) -> Array:
    """A copy of x (n, m) with d columns: the first of x, and the rest filled."""
    wider = np.full((len(x), d), fill)
    kept = min(d, x.shape[1])
    wider[:, :kept] = x[:, :kept]
    return wider
