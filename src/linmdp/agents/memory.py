"""What an agent keeps of its samples, in three forms with the same result.

`Counts` needs finite states and never grows; `Samples` keeps each sample's next state, as features (the paper's
way) or as the state itself. Both answer the same two questions: the regression target of step h, and the
optimistic values of step h on which the target of step h-1 rests.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np

from linmdp.agents.base import Component, StateDict, saved_array
from linmdp.agents.regression import Optimism, Ridge
from linmdp.errors import InvalidData
from linmdp.features.base import FeatureMap
from linmdp.features.tabular import TableFeatures
from linmdp.types import Array, BoolArray, State

_BLOCK_BYTES = 1 << 19


class Memory(Component, ABC):
    """The samples of one agent. Shares its agent's `ridge` and `w` (H, d)."""

    def __init__(self, H: int, ridge: Ridge, w: Array, optimism: Optimism) -> None:
        self.H, self.ridge, self.w, self.optimism = H, ridge, w, optimism

    @abstractmethod
    def add(self, h: int, phi: Array, next_state: State, terminated: bool) -> None:
        """One sample of step h."""

    @abstractmethod
    def clear(self) -> None:
        """Drop all samples. Q stays as it is: it goes on acting until its step is planned again."""

    @abstractmethod
    def restart(self, h: int) -> None:
        """The ridge of step h has just been restarted: so must be what was derived from it."""

    @abstractmethod
    def target(self, h: int) -> Array:
        """z_h = sum_i phi_i max_a Q_{h+1}(s'_i, a), (d,)."""

    @abstractmethod
    def sweep(self, h: int, v: Array) -> None:
        """Renew the optimistic values of step h after w_h and Lambda_h changed, the latter by v (see `downdate`)."""

    @abstractmethod
    def best_actions(self, h: int, state: State) -> BoolArray:
        """Which actions share the largest Q_h in `state`, (A,)."""

    @abstractmethod
    def best_table(self, h: int) -> BoolArray:
        """The same for all states, (A, S)."""

    @abstractmethod
    def q_values(self, h: int, state: State) -> Array:
        """Q_h(state, .), (A,)."""

    @abstractmethod
    def bytes_after(self, samples: int) -> int:
        """Bytes once that many samples a step are held."""


class Counts(Memory):
    """Exact on finite states in memory that does not grow: z_h = N_h V_{h+1} with N_h = sum_i phi_i e_{s'_i}'.

    Attributes
    ----------
    N : (H-1, d, S) since nothing follows the last step
    b : (H, A*S) phi' Lambda_h^-1 phi for every state and action, kept up by rank-one changes
    V : (H+1, S) max_a Q_h, zero after the last step
    best : (H, A, S) which actions share the largest Q
    """

    _arrays: ClassVar = ("N", "b", "V", "best")
    _scratch: ClassVar = ("_columns_copy", "_rows")

    def __init__(self, H: int, features: TableFeatures, ridge: Ridge, w: Array, optimism: Optimism, dtype: str) -> None:
        super().__init__(H, ridge, w, optimism)
        self.features = features
        S, A, d = features.S, features.A, features.d
        self.columns = features.columns.astype(dtype, copy=False)
        self._columns_copy = self.columns if self.columns is not features.columns else np.empty(0)
        self.N = np.zeros((H - 1, d, S), dtype=dtype)
        self.b = np.empty((H, A * S), dtype=dtype)
        self.V = np.zeros((H + 1, S), dtype=dtype)
        self.best = np.ones((H, A, S), dtype=np.bool_)
        self._rows = np.empty((2, A * S), dtype=dtype)
        for h in range(H):
            self.restart(h)

    def add(self, h: int, phi: Array, next_state: State, terminated: bool) -> None:
        if h < self.H - 1 and not terminated:  # the value after the end is 0
            self.N[h, :, next_state] += phi

    def clear(self) -> None:
        self.N[:] = 0.0

    def restart(self, h: int) -> None:
        np.einsum("di,di->i", self.columns, self.columns, out=self.b[h])
        self.b[h] /= self.ridge.lam

    def target(self, h: int) -> Array:
        if h == self.H - 1:
            return np.zeros(self.columns.shape[0])
        z: Array = self.N[h] @ self.V[h + 1]
        return z

    def sweep(self, h: int, v: Array) -> None:
        two = np.array((self.w[h], v), dtype=self.b.dtype)
        mean, change = np.matmul(two, self.columns, out=self._rows)  # the one trip over the features
        b = self.b[h]
        change *= change
        b -= change
        np.maximum(b, 0.0, out=b)
        q = self.optimism.q(h, mean, b).reshape(self.best.shape[1:])
        np.max(q, axis=0, out=self.V[h])
        np.greater_equal(q, self.V[h] - self.optimism.tie, out=self.best[h])

    def best_actions(self, h: int, state: State) -> BoolArray:
        best: BoolArray = self.best[h, :, state]
        return best

    def best_table(self, h: int) -> BoolArray:
        best: BoolArray = self.best[h]
        return best

    def q_values(self, h: int, state: State) -> Array:
        b = self.b[h].reshape(self.best.shape[1:])[:, state]
        return self.optimism.q(h, self.features.phi(state) @ self.w[h], b)

    def bytes_after(self, samples: int) -> int:
        return self.nbytes


class _Block:
    """Room for a few samples of one step, side by side; blocks are added, never copied."""

    def __init__(self, size: int, A: int, d: int, next_shape: tuple[int, ...], next_dtype: Any, dtype: str) -> None:
        self.count = 0
        self.phi = np.zeros((size, d), dtype=dtype)
        self.next = np.zeros((size, *next_shape), dtype=next_dtype)
        self.alive = np.zeros(size, dtype=np.bool_)
        self.b = np.zeros((size, A), dtype=dtype)
        self.V = np.zeros(size, dtype=dtype)

    NAMES: ClassVar = ("phi", "next", "alive", "b", "V")

    @property
    def nbytes(self) -> int:
        return sum(getattr(self, name).nbytes for name in self.NAMES)


class Samples(Memory):
    """Every sample of the working space, in blocks.

    A sample of step h holds phi_i, the next state s'_i (as features of all actions, or as itself), and for each
    action of s'_i the quadratic form b = phi' Lambda_{h+1}^-1 phi, which falls by (phi'v)^2 when Lambda_{h+1} grows.
    """

    def __init__(
        self,
        H: int,
        features: FeatureMap,
        ridge: Ridge,
        w: Array,
        optimism: Optimism,
        dtype: str,
        *,
        keep_features: bool,
    ) -> None:
        super().__init__(H, ridge, w, optimism)
        self.features, self.keep_features, self.dtype = features, keep_features, dtype
        sample_bytes = features.A * features.d * np.dtype(dtype).itemsize
        self.size = int(np.clip(_BLOCK_BYTES // sample_bytes, 8, 256))
        self.blocks: list[list[_Block]] = [[] for _ in range(H)]
        self.valued = [0] * H
        """How many samples of step h have a current b, V with respect to step h+1."""

    @property
    def nbytes(self) -> int:
        return sum(block.nbytes for blocks in self.blocks for block in blocks)

    def bytes_after(self, samples: int) -> int:
        A, d = self.features.A, self.features.d
        state = A * d * np.dtype(self.dtype).itemsize if self.keep_features else 8
        if not self.keep_features and any(self.blocks):
            state = next(b for b in self.blocks if b)[0].next[0].nbytes
        one = (d + A + 1) * np.dtype(self.dtype).itemsize + 1 + state
        return -(-samples // self.size) * self.size * self.H * one

    def add(self, h: int, phi: Array, next_state: State, terminated: bool) -> None:
        blocks = self.blocks[h]
        entry = np.asarray(self.features.phi(next_state), self.dtype) if self.keep_features else np.asarray(next_state)
        if not blocks or blocks[-1].count == self.size:
            A, d = self.features.A, self.features.d
            blocks.append(_Block(self.size, A, d, entry.shape, entry.dtype, self.dtype))
        block = blocks[-1]
        i = block.count
        block.phi[i], block.next[i] = phi, entry
        block.alive[i] = not terminated and h < self.H - 1
        block.count = i + 1

    def clear(self) -> None:
        self.blocks = [[] for _ in range(self.H)]
        self.valued = [0] * self.H

    def restart(self, h: int) -> None:
        if h > 0:
            self.valued[h - 1] = 0

    def target(self, h: int) -> Array:
        z = np.zeros(self.features.d)
        if h == self.H - 1:
            return z
        self._value(h, np.zeros_like(z), new_only=True)
        for block in self.blocks[h]:
            z += block.V[: block.count] @ block.phi[: block.count]
        return z

    def sweep(self, h: int, v: Array) -> None:
        if h > 0:
            self._value(h - 1, v, new_only=False)

    def _value(self, h: int, v: Array, *, new_only: bool) -> None:
        """Renew b and V of the samples of step h, which look at Q_{h+1}: all, or only those never valued."""
        two = np.stack((self.w[h + 1], v), axis=1).astype(self.dtype)
        done = self.valued[h]
        for index, block in enumerate(self.blocks[h]):
            old = min(max(done - index * self.size, 0), block.count)
            first = old if new_only else 0
            if first == block.count:
                continue
            rows = self._rows(block, first)
            n, A, _ = rows.shape
            both = rows.reshape(n * A, -1) @ two
            mean, change = both[:, 0].reshape(n, A), both[:, 1].reshape(n, A)
            b = block.b[first : block.count]
            b[: old - first] -= change[: old - first] ** 2
            b[old - first :] = quadratic(rows[old - first :], self.ridge.Lambda_inv[h + 1])
            np.maximum(b, 0.0, out=b)
            q = self.optimism.q(h + 1, mean, b)
            block.V[first : block.count] = q.max(axis=1) * block.alive[first : block.count]
        self.valued[h] = sum(block.count for block in self.blocks[h])

    def _rows(self, block: _Block, first: int) -> Array:
        """phi(s'_i, .) of the samples from `first` on, (n, A, d)."""
        kept = block.next[first : block.count]
        return kept if self.keep_features else np.asarray(self.features.batch(kept), dtype=self.dtype)

    def q_values(self, h: int, state: State) -> Array:
        phi = self.features.phi(state)
        return self.optimism.q(h, phi @ self.w[h], np.maximum(quadratic(phi, self.ridge.Lambda_inv[h]), 0.0))

    def best_actions(self, h: int, state: State) -> BoolArray:
        return self.optimism.best(self.q_values(h, state))

    def best_table(self, h: int) -> BoolArray:
        assert isinstance(self.features, TableFeatures)
        F = self.features.columns
        b = np.einsum("di,di->i", F, self.ridge.Lambda_inv[h] @ F)
        q = self.optimism.q(h, self.w[h] @ F, np.maximum(b, 0.0, out=b))
        return self.optimism.best(q.reshape(self.features.A, self.features.S))

    def state_dict(self) -> StateDict:
        state = {"valued": np.array(self.valued, dtype=np.int64)}
        for h, blocks in enumerate(self.blocks):
            for i, block in enumerate(blocks):
                for name in _Block.NAMES:
                    state[f"{h}.{i}.{name}"] = getattr(block, name)[: block.count].copy()
        return state

    def load_state_dict(self, state: Mapping[str, np.ndarray]) -> None:
        self.clear()
        valued = saved_array(state, "valued")
        if valued.shape != (self.H,):
            raise InvalidData(f"'valued' of a saved agent must have shape ({self.H},). Got {valued.shape}.")
        self.valued = [int(n) for n in valued]
        A, d = self.features.A, self.features.d
        for h in range(self.H):
            while f"{h}.{len(self.blocks[h])}.phi" in state:
                saved = {n: saved_array(state, f"{h}.{len(self.blocks[h])}.{n}") for n in _Block.NAMES}
                block = _Block(self.size, A, d, saved["next"].shape[1:], saved["next"].dtype, self.dtype)
                block.count = len(saved["phi"])
                for name, value in saved.items():
                    getattr(block, name)[: block.count] = value
                self.blocks[h].append(block)


def quadratic(rows: Array, matrix: Array) -> Array:
    """x' M x for every row x of (..., d)."""
    form: Array = np.einsum("...d,...d->...", rows @ matrix, rows)
    return form
