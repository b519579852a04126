"""What an agent keeps of its samples: the interface, and the form that finite states allow."""

from __future__ import annotations

from abc import ABC, abstractmethod
from functools import partial
from typing import Any, ClassVar

import numpy as np

from linmdp.agents.backend import NUMPY, Backend
from linmdp.agents.base import Component
from linmdp.agents.regression import Optimism, Ridge, masked_steps, matvec
from linmdp.features.tabular import TableFeatures
from linmdp.types import BoolArray, State


class Memory(Component, ABC):
    """The samples of one agent. Shares its agent's `ridge` and `w` (H, *batch, d)."""

    def __init__(self, H: int, ridge: Ridge, w: Any, optimism: Optimism) -> None:
        self.H, self.ridge, self.w, self.optimism = H, ridge, w, optimism

    @abstractmethod
    def add(self, h: int, phi: Any, next_state: State, terminated: bool) -> None:
        """One sample of step h."""

    @abstractmethod
    def clear(self, runs: Any = ...) -> None:
        """Drop all samples. Q stays as it is: it goes on acting until its step is planned again."""

    @abstractmethod
    def restart(self, mask: BoolArray) -> None:
        """The ridge of the steps in `mask` has just been restarted: so must be what was derived from it."""

    @abstractmethod
    def refresh(self) -> None:
        """All inverses have just been made afresh: so must be what was derived from them."""

    @abstractmethod
    def target(self, h: int) -> Any:
        """z_h = sum_i phi_i max_a Q_{h+1}(s'_i, a), (*batch, d)."""

    @abstractmethod
    def sweep(self, h: int, v: Any) -> None:
        """Renew the optimistic values of step h after w_h and Lambda_h changed; v is beta times that of `downdate`."""

    @abstractmethod
    def rescale(self, factor: float) -> None:
        """beta has changed, and every squared bonus by this factor; Q follows when its step is planned again."""

    @abstractmethod
    def greedy_target(self, h: int, w: Any) -> Any:
        """z_h as in `target`, with Q_{h+1} = min(phi'w, cap): w (d,) instead of the weights of that step, no bonus."""

    @abstractmethod
    def best_actions(self, h: int, state: State) -> Any:
        """Which actions share the largest Q_h in `state`, (*batch, A)."""

    @abstractmethod
    def best_table(self, h: int) -> Any:
        """The same for all states, (*batch, A, S)."""

    @abstractmethod
    def q_values(self, h: int, state: State) -> Any:
        """Q_h(state, .), (*batch, A)."""

    @abstractmethod
    def bytes_after(self, samples: int) -> int:
        """Bytes once that many samples a step are held."""

    def kept(self, phi: Any) -> Any:
        """phi in the precision in which it is kept, so that the regression rests on the same numbers."""
        return phi

    def gram(self, h: int) -> Any:
        """sum phi phi' over all samples of step h, (d, d); None where they are not held one by one."""
        return None


class Counts(Memory):
    """Exact on finite states in memory that does not grow: z_h = N_h V_{h+1} with N_h = sum_i phi_i e_{s'_i}'.

    Attributes
    ----------
    N : (H-1, *batch, d, S) since nothing follows the last step
    b : (H, *batch, A*S) squared bonus of every state and action, kept up by rank-one changes
    V : (H+1, *batch, S) max_a Q_h, zero after the last step
    best : (H, *batch, A, S) which actions share the largest Q; on a GPU empty, and found when it is asked for
    """

    _arrays: ClassVar = ("N", "b", "V", "best")
    _scratch: ClassVar = ("_own_columns", "_two", "_rows")

    def __init__(
        self,
        H: int,
        features: TableFeatures,
        ridge: Ridge,
        w: Any,
        optimism: Optimism,
        dtype: str,
        *,
        batch: tuple[int, ...] = (),
        backend: Backend = NUMPY,
    ) -> None:
        super().__init__(H, ridge, w, optimism)
        S, A, d = features.S, features.A, features.d
        self.backend, self.batch, self.shape = backend, batch, (*batch, A, S)
        self.columns = backend.array(features.columns, dtype)
        self._own_columns = self.columns if self.columns is not features.columns else np.empty(0)
        self.N = backend.zeros((H - 1, *batch, d, S), dtype)
        self.b = backend.zeros((H, *batch, A * S), dtype)
        self.V = backend.zeros((H + 1, *batch, S), dtype)
        self._cast = partial(backend.cast, dtype=dtype)
        self._kernel = backend.sweep_kernel(d)
        self.best = backend.zeros((H * (self._kernel is None), *batch, A, S), "bool") | True
        self._two = backend.zeros((2, *batch, d), dtype)
        self._rows = backend.zeros((2, *batch, A * S), dtype)
        # the same memory in the shapes that `sweep` wants
        self._two_flat, self._rows_flat = self._two.reshape(-1, d), self._rows.reshape(-1, A * S)
        self._mean, self._change = self._rows.reshape(2, *self.shape)
        self._b = self.b.reshape(H, *self.shape)
        self._product = backend.fused(matvec if backend.is_numpy else _matvec_in_one_pass)
        self._runs = backend.array(np.arange(batch[0]), "int64") if batch else None
        self.restart(np.ones((H, *batch), dtype=np.bool_))

    def add(self, h: int, phi: Any, next_state: State, terminated: bool) -> None:
        if h == self.H - 1 or terminated:  # the value after the end is 0
            return
        self.count(self.N[h], phi, next_state)

    def count(self, N: Any, phi: Any, next_state: State) -> None:
        """N += phi e_{s'}', in every run."""
        if self._runs is None:
            N[:, next_state] += phi
        else:
            N[self._runs, :, next_state] += self._cast(phi)

    def clear(self, runs: Any = ...) -> None:
        self.N[:, runs] = 0.0

    def restart(self, mask: BoolArray) -> None:
        squares = (self.columns * self.columns).sum(0)
        for h, runs in masked_steps(mask):
            first = self.optimism.squared(squares / self.ridge.lam[runs][..., None], runs)
            self.b[h][runs] = self._cast(first)

    def refresh(self) -> None:
        d = len(self.columns)
        at_once = (
            1 if self.backend.is_numpy else 64
        )  # runs: on a CPU the product of one fits the cache, a GPU wants many
        for h in range(self.H):
            inverses, b = self.ridge.Lambda_inv[h].reshape(-1, d, d), self.b[h].reshape(-1, self.b.shape[-1])
            for part in (slice(i, i + at_once) for i in range(0, len(b), at_once)):
                forms = (self.columns * (self._cast(inverses[part]) @ self.columns)).sum(-2)
                b[part] = self._cast(self.optimism.squared(forms, part if self.batch else ...))

    def target(self, h: int) -> Any:
        if h == self.H - 1:
            return 0.0
        return self._product(self.N[h], self.V[h + 1])

    def sweep(self, h: int, v: Any) -> None:
        """One trip over the features: two columns of one product, then a few operations in place.

        The cap is put on the largest value alone: min(max_a q, cap) = max_a min(q, cap), and the actions that share it
        are those with q >= min(max_a q, cap).
        """
        xp, optimism, cap, b, V = self.backend.xp, self.optimism, self.optimism.caps[h], self._b[h], self.V[h]
        self._two[0], self._two[1] = self.w[h], v
        if self._kernel is not None:
            self._kernel(self._two, self.columns, self.b[h], V, cap)
            return
        xp.matmul(self._two_flat, self.columns, out=self._rows_flat)
        change = self._change
        change *= change
        b -= change
        xp.abs(b, out=b)  # b >= 0; rounding may leave it a hair below
        q = optimism.raised(self._mean, b, change)
        optimism.largest(q, -2, out=V)
        xp.minimum(V, cap, out=V)
        xp.greater_equal(q, (V - optimism.tie)[..., None, :], out=self.best[h])

    def rescale(self, factor: float) -> None:
        self.b *= factor

    def greedy_target(self, h: int, w: Any) -> Any:
        V = (self._cast(w) @ self.columns).reshape(self.shape).max(axis=-2)
        return self._product(self.N[h], np.minimum(V, self.optimism.caps[h + 1]))

    def best_actions(self, h: int, state: State) -> Any:
        return self.best_of(*self.values(h), state)

    def values(self, h: int) -> tuple[Any, Any, Any, Any]:
        """What Q_h is made of: w, b, `best` (None on a GPU) and the cap."""
        return self.w[h], self.b[h], self.best[h] if self._kernel is None else None, self.optimism.caps[h]

    def best_of(self, w: Any, b: Any, best: Any, cap: Any, state: State) -> Any:
        """`best_actions` from `values`, as a function of arrays alone, which a GPU can fuse with what follows."""
        if best is None:
            return self.optimism.best(self._q(w, b, cap, state), axis=-1)
        return best[:, state] if self._runs is None else best[self._runs, :, state]

    def best_table(self, h: int) -> Any:
        if self._kernel is not None:
            q = self.optimism.q(self._cast(self.w[h]) @ self.columns, self.b[h], self.optimism.caps[h])
            return self.optimism.best(q.reshape(self.shape), axis=-2)
        return self.best[h]

    def q_values(self, h: int, state: State) -> Any:
        w, b, _, cap = self.values(h)
        return self._q(w, b, cap, state)

    def _q(self, w: Any, b: Any, cap: Any, state: State) -> Any:
        d, A, S = len(self.columns), *self.shape[-2:]
        phi = self.columns.reshape(d, A, S)[:, :, state]  # (d, A, *batch)
        b = b.reshape(self.shape)
        if self._runs is None:
            return self.optimism.q(w @ phi, b[:, state], cap)
        mean = (phi * w.T[:, None, :]).sum(0).T  # (B, A), in the precision of w
        return self.optimism.q(mean, b[self._runs, :, state], cap)

    def bytes_after(self, samples: int) -> int:
        return self.nbytes


def _matvec_in_one_pass(matrices: Any, vectors: Any) -> Any:
    """The same; fused on a GPU it reads M at the speed of the memory, which a batched product there does not."""
    return (matrices * vectors[..., None, :]).sum(-1)
