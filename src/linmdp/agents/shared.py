"""One regression for all steps: planning for tasks whose dynamics do not depend on h.

Every sample (s, a, r, s') of every step serves every other: Lambda, u and the samples are kept once. Q_h still depends
on the steps that are left, so w_h differs, unless rewards are discounted: then there is one Q, the fixed point of
w = Lambda^-1 (u + discount * sum_i phi_i V(s'_i)).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, ClassVar, Protocol

import numpy as np

from linmdp.agents.base import Component, StateDict, prefixed, under
from linmdp.agents.regression import Optimism, fresh_inverse, matvec, quadratic_forms
from linmdp.agents.samples import Samples
from linmdp.features.base import FeatureMap
from linmdp.features.tabular import TableFeatures
from linmdp.types import Array, BoolArray, State

SWEEPS = 200
"""Backups of a discounted planning, at most; it starts from the weights of the last one."""

TOLERANCE = 1e-4
"""A discounted planning ends when no weight moves by more than this fraction of the largest value."""


DIVERGING = 10.0
"""A backup that moves the weights so many times farther than an earlier one is no longer on its way anywhere."""


def fixed_point(w: Array, backup: Callable[[Array], Array], tolerance: float) -> Array:
    """Where w = backup(w), to the tolerance, from `w` on. Backups of fitted values need not converge: then the w whose
    backup moved it least."""
    best, least = w, np.inf
    for _ in range(SWEEPS):
        new = backup(w)
        moved = float(np.abs(new - w).max())
        if not moved <= DIVERGING * least:  # which a number that is none is not, either
            return best
        if moved < least:
            best, least = new, moved
        w = new
        if moved <= tolerance:
            break
    return w


class Sight(Protocol):
    """The samples of all steps, and the value of what followed them."""

    def add(self, h: int, phi: Array, next_state: State, terminated: bool) -> None: ...
    def clear(self) -> None: ...
    def look(self, Lambda_inv: Array) -> None: ...
    def weigh(self, w: Array, cap: float, *, bonus: bool) -> Array: ...
    def bytes_after(self, samples: int) -> int: ...
    def state_dict(self) -> StateDict: ...
    def load_state_dict(self, state: Mapping[str, np.ndarray]) -> None: ...
    @property
    def nbytes(self) -> int: ...


class SharedCounts(Component):
    """Finite states: N = sum_i phi_i e_{s'_i}', (d, S), is all that is needed of the samples."""

    _arrays: ClassVar = ("N",)
    _scratch: ClassVar = ("_raise", "_own_columns")

    def __init__(self, features: TableFeatures, optimism: Optimism, dtype: str) -> None:
        self.shape, self.optimism = (features.A, features.S), optimism
        self.columns = features.columns.astype(dtype, copy=False)
        self._own_columns = self.columns if self.columns is not features.columns else np.empty(0)
        self.N = np.zeros((features.d, features.S), dtype=dtype)
        self._raise = np.zeros(features.A * features.S, dtype=dtype)

    def add(self, h: int, phi: Array, next_state: State, terminated: bool) -> None:
        """One sample; the value after the end is 0."""
        if not terminated:
            self.N[:, next_state] += phi

    def clear(self) -> None:
        """Drop all samples."""
        self.N[:] = 0.0

    def look(self, Lambda_inv: Array) -> None:
        """The bonus of every state and action."""
        forms = np.einsum("di,di->i", self.columns, Lambda_inv.astype(self.N.dtype) @ self.columns)
        self._raise[:] = np.sqrt(self.optimism.squared(np.abs(forms)))

    def weigh(self, w: Array, cap: float, *, bonus: bool) -> Array:
        """sum_i phi_i V(s'_i) for V = max_a min(phi'w + bonus, cap)."""
        q = w.astype(self.N.dtype) @ self.columns
        if bonus:
            q += self._raise
        z: Array = self.N @ np.minimum(q.reshape(self.shape).max(axis=0), cap)
        return z

    def bytes_after(self, samples: int) -> int:
        """Bytes, which do not depend on the samples."""
        return self.nbytes


class SharedSamples(Samples):
    """Any states: the samples in blocks, as one step that looks at a second one."""

    def __init__(self, features: FeatureMap, optimism: Optimism, dtype: str, *, keep_features: bool) -> None:
        super().__init__(2, features, None, None, optimism, dtype, keep_features=keep_features)  # type: ignore[arg-type]

    def add(self, h: int, phi: Array, next_state: State, terminated: bool) -> None:
        super().add(0, phi, next_state, terminated)

    def look(self, Lambda_inv: Array) -> None:
        """The bonus of every next state and action."""
        for block in self.blocks[0]:
            forms = quadratic_forms(self._rows(block, 0), Lambda_inv.astype(self.dtype))
            block.b[: block.count] = self.optimism.squared(forms)

    def weigh(self, w: Array, cap: float, *, bonus: bool) -> Array:
        """sum_i phi_i V(s'_i) for V = max_a min(phi'w + bonus, cap)."""
        z, w = np.zeros(self.features.d), w.astype(self.dtype)
        for block in self.blocks[0]:
            q = self._rows(block, 0) @ w
            if bonus:
                q += np.sqrt(block.b[: block.count])
            z += (np.minimum(q.max(axis=1), cap) * block.alive[: block.count]) @ block.phi[: block.count]
        return z

    def bytes_after(self, samples: int) -> int:
        return super().bytes_after(samples) - self._last_step_bytes(samples)

    def _last_step_bytes(self, samples: int) -> int:
        """What the base counts for a second step, which holds nothing here."""
        one = (self.features.d + self.features.A + 1) * np.dtype(self.dtype).itemsize + 1
        return -(-samples // self.size) * self.size * one


class SharedCore(Component):
    """The regression, the samples and the weights of a stationary task; used as `Core` is.

    Attributes
    ----------
    Lambda, Lambda_inv : (d, d); the inverse is that of the last planning
    u : (d,) sum of phi r
    w : (levels, d)
    """

    _arrays: ClassVar = ("Lambda", "Lambda_inv", "u", "w")
    _counters: ClassVar = ("restarting",)

    def __init__(
        self, features: FeatureMap, sight: Sight, optimism: Optimism, *, levels: int, lam: float, discount: float
    ) -> None:
        self.features, self.sight, self.optimism = features, sight, optimism
        self.lam, self.discount, self.restarting = lam, discount, 0
        d = features.d
        self.Lambda, self.Lambda_inv = lam * np.eye(d), np.eye(d) / lam
        self.u, self.w = np.zeros(d), np.zeros((levels, d))

    def drop_samples(self) -> None:
        """Delete the working space. The old Q acts on."""
        self.sight.clear()
        self.restarting = 1

    def prepare(self, learn: BoolArray, there: Any, *, whole: bool) -> None:
        """A restart, if one is due."""
        if self.restarting:
            self.Lambda[:] = self.lam * np.eye(len(self.u))
            self.u[:] = 0.0
            self.restarting = 0

    def plan(self, learn: BoolArray, *, whole: bool) -> None:
        """Every w_h from all samples."""
        self.Lambda_inv[:] = fresh_inverse(self.Lambda)
        self.sight.look(self.Lambda_inv)
        self._solve(self.w, bonus=True)

    def greedy(self) -> Array:
        """Weights planned from the samples without a bonus."""
        w = self.w.copy()
        self._solve(w, bonus=False)
        return w

    def _solve(self, w: Array, *, bonus: bool) -> None:
        """Backwards over the steps or, with a discount, until nothing moves."""

        def backup(following: Array, h: int) -> Array:
            z = self.sight.weigh(following, float(self.optimism.caps[h]), bonus=bonus)
            new: Array = matvec(self.Lambda_inv, self.u + self.discount * z)
            return new

        if len(w) > 1 or self.discount == 1:
            w[-1] = matvec(self.Lambda_inv, self.u)
            for h in reversed(range(len(w) - 1)):
                w[h] = backup(w[h + 1], h + 1)
            return
        w[0] = fixed_point(w[0].copy(), lambda x: backup(x, 0), TOLERANCE * max(1.0, float(self.optimism.caps[0])))

    def change_beta(self, beta: float) -> None:
        """Another beta from the next planning on."""
        self.optimism.change(beta)

    def add(self, h: int, phi: Array, reward: float, next_state: State, terminated: bool) -> None:
        """One sample."""
        self.Lambda += phi[:, None] * phi
        self.u += phi * reward
        self.sight.add(h, phi, next_state, terminated)

    def _q(self, h: int, rows: Array) -> Array:
        """Q_h of rows (..., d)."""
        b = self.optimism.squared(quadratic_forms(rows, self.Lambda_inv))
        q: Array = self.optimism.q(rows @ self.w[min(h, len(self.w) - 1)], b, self.optimism.caps[h])
        return q

    def q_values(self, h: int, state: State) -> Array:
        """Q_h(state, .), (A,)."""
        return self._q(h, self.features.phi(state))

    def best_actions(self, h: int, state: State) -> BoolArray:
        """Which actions share the largest Q_h in `state`, (A,)."""
        best: BoolArray = self.optimism.best(self.q_values(h, state))
        return best

    def best_table(self, h: int) -> BoolArray:
        """The same for all states, (A, S)."""
        assert isinstance(self.features, TableFeatures)
        q = self._q(h, self.features.columns.T).reshape(self.features.A, self.features.S)
        best: BoolArray = self.optimism.best(q)
        return best

    @property
    def memory(self) -> SharedCore:
        """Itself: what acts is kept with what plans."""
        return self

    def drift(self) -> float:
        """0: the inverse is made afresh at each planning."""
        return 0.0

    @property
    def nbytes(self) -> int:
        """Bytes of all arrays."""
        return super().nbytes + self.sight.nbytes

    def bytes_after(self, samples: int) -> int:
        """Bytes once that many samples are held."""
        return super().nbytes + self.sight.bytes_after(samples)

    def state_dict(self) -> StateDict:
        """A copy of everything learned."""
        return super().state_dict() | prefixed("samples", self.sight.state_dict())

    def load_state_dict(self, state: Mapping[str, np.ndarray]) -> None:
        """Become what `state_dict` saved."""
        super().load_state_dict(state)
        self.sight.load_state_dict(under("samples", state))
