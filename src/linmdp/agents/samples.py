"""Samples kept one by one, where states are not finite: as features (the paper's way) or as states."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np

from linmdp.agents.base import StateDict, load_array, saved_array
from linmdp.agents.memory import Memory
from linmdp.agents.regression import Optimism, Ridge, quadratic_forms
from linmdp.errors import InvalidData
from linmdp.features.base import FeatureMap
from linmdp.features.tabular import TableFeatures
from linmdp.types import Array, BoolArray, State

_BLOCK_BYTES = 5 << 19
"""A block should be large enough that a product over it takes longer than the call."""


def block_size(A: int, d: int, dtype: str, capacity: int | None) -> int:
    """Samples in one block; if it is known how many there will be, equal blocks that hold them with little to spare."""
    size = int(np.clip(_BLOCK_BYTES // (A * d * np.dtype(dtype).itemsize), 8, 256))
    return -(-capacity // -(-capacity // size)) if capacity else size


class _Block:
    """Room for a few samples of one step, side by side; blocks are added, never copied."""

    NAMES: ClassVar = ("phi", "next", "alive", "b", "V")

    def __init__(self, size: int, A: int, d: int, next_shape: tuple[int, ...], next_dtype: Any, dtype: str) -> None:
        self.count = 0
        self.phi = np.zeros((size, d), dtype=dtype)
        self.next = np.zeros((size, *next_shape), dtype=next_dtype)
        self.alive = np.zeros(size, dtype=np.bool_)
        self.b = np.zeros((size, A), dtype=dtype)
        self.V = np.zeros(size, dtype=dtype)

    @property
    def nbytes(self) -> int:
        return sum(getattr(self, name).nbytes for name in self.NAMES)


class Samples(Memory):
    """Every sample of the working space, in blocks.

    A sample of step h holds phi_i, the next state s'_i (as features of all actions, or as itself), and for each
    action of s'_i the squared bonus b = beta^2 phi' Lambda_{h+1}^-1 phi, kept up as Lambda_{h+1} grows.
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
        capacity: int | None = None,
    ) -> None:
        super().__init__(H, ridge, w, optimism)
        self.features, self.keep_features, self.dtype = features, keep_features, dtype
        self.size = block_size(features.A, features.d, dtype, capacity)
        self.blocks: list[list[_Block]] = [[] for _ in range(H)]
        self.valued = [0] * H
        """How many samples of step h have a current b, V with respect to step h+1."""
        self._held = 0

    @property
    def nbytes(self) -> int:
        return self._held

    def bytes_after(self, samples: int) -> int:
        A, d = self.features.A, self.features.d
        state = A * d * np.dtype(self.dtype).itemsize if self.keep_features else 8
        if not self.keep_features and any(self.blocks):
            state = next(b for b in self.blocks if b)[0].next[0].nbytes  # the steps fill up from the first on
        one = (d + A + 1) * np.dtype(self.dtype).itemsize + 1
        return -(-samples // self.size) * self.size * (self.H * one + (self.H - 1) * state)

    def add(self, h: int, phi: Array, next_state: State, terminated: bool) -> None:
        blocks = self.blocks[h]
        if h == self.H - 1:
            entry = np.empty(0)  # nobody asks what follows the last step
        elif self.keep_features:
            entry = np.asarray(self.features.phi(next_state), self.dtype)
        else:
            entry = np.asarray(next_state)
        if not blocks or blocks[-1].count == self.size:
            self._append(h, entry.shape, entry.dtype)
        block = blocks[-1]
        i = block.count
        block.phi[i], block.next[i] = phi, entry
        block.alive[i] = not terminated and h < self.H - 1
        block.count = i + 1

    def _append(self, h: int, next_shape: tuple[int, ...], next_dtype: Any) -> _Block:
        block = _Block(self.size, self.features.A, self.features.d, next_shape, next_dtype, self.dtype)
        self.blocks[h].append(block)
        self._held += block.nbytes
        return block

    def kept(self, phi: Array) -> Array:
        return phi.astype(self.dtype).astype(np.float64, copy=False)

    def gram(self, h: int) -> Array:
        total = np.zeros((self.features.d, self.features.d))
        for block in self.blocks[h]:
            phi = block.phi[: block.count].astype(np.float64, copy=False)
            total += phi.T @ phi
        return total

    def clear(self, runs: Any = ...) -> None:
        self.blocks = [[] for _ in range(self.H)]
        self.valued = [0] * self.H
        self._held = 0

    def restart(self, mask: BoolArray) -> None:
        for h in np.flatnonzero(mask[1:]):  # step h+1 is what the samples of step h look at
            self.valued[h] = 0

    def refresh(self) -> None:
        self.valued = [0] * self.H

    def target(self, h: int) -> Array:
        z = np.zeros(self.features.d)
        if h == self.H - 1:
            return z
        self._value(h, z, new_only=True)
        for block in self.blocks[h]:
            z += block.V[: block.count] @ block.phi[: block.count]
        return z

    def sweep(self, h: int, v: Array) -> None:
        if h > 0:
            self._value(h - 1, v, new_only=False)

    def rescale(self, factor: float) -> None:
        for block in (block for blocks in self.blocks for block in blocks):
            block.b *= factor

    def greedy_target(self, h: int, w: Array) -> Array:
        z = np.zeros(self.features.d)
        for block in self.blocks[h]:
            V = (self._rows(block, 0) @ w.astype(self.dtype)).max(axis=1)
            z += (np.minimum(V, self.optimism.caps[h + 1]) * block.alive[: block.count]) @ block.phi[: block.count]
        return z

    def _value(self, h: int, v: Array, *, new_only: bool) -> None:
        """Renew b and V of the samples of step h, which look at Q_{h+1}: all, or only those never valued."""
        done = self.valued[h]
        if not self.blocks[h] or (new_only and done == self._count(h)):
            return
        two = np.empty((2, len(v)), dtype=self.dtype)
        two[0], two[1] = self.w[h + 1], v
        for index, block in enumerate(self.blocks[h]):
            old = min(max(done - index * self.size, 0), block.count)
            first = old if new_only else 0
            if first == block.count:
                continue
            rows = self._rows(block, first)
            n, A, _ = rows.shape
            both = rows.reshape(n * A, -1) @ two.T
            mean, change = both[:, 0].reshape(n, A), both[:, 1].reshape(n, A)
            b = block.b[first : block.count]
            b[: old - first] -= change[: old - first] ** 2
            if old < block.count:
                b[old - first :] = self._squared(h + 1, rows[old - first :])
            np.abs(b, out=b)  # b >= 0; rounding may leave it a hair below
            q = self.optimism.q(mean, b, self.optimism.caps[h + 1])
            block.V[first : block.count] = q.max(axis=1) * block.alive[first : block.count]
        self.valued[h] = self._count(h)

    def _count(self, h: int) -> int:
        """Samples of step h; only the last block may have room left."""
        return (len(self.blocks[h]) - 1) * self.size + self.blocks[h][-1].count

    def _rows(self, block: _Block, first: int) -> Array:
        """phi(s'_i, .) of the samples from `first` on, (n, A, d)."""
        kept = block.next[first : block.count]
        return kept if self.keep_features else np.asarray(self.features.batch(kept), dtype=self.dtype)

    def q_values(self, h: int, state: State) -> Array:
        return self._q(h, self.features.phi(state))[0]

    def _q(self, h: int, phi: Array) -> tuple[Array, Array]:
        """Q_h and b for the features of one state, (A,) each."""
        b = self._squared(h, phi)
        return self.optimism.q(phi @ self.w[h], b, self.optimism.caps[h]), b

    def _squared(self, h: int, rows: Array) -> Array:
        """The squared bonus of rows (..., d) at step h."""
        b: Array = self.optimism.squared(quadratic_forms(rows, self.ridge.Lambda_inv[h]))
        return b

    def best_actions(self, h: int, state: State) -> BoolArray:
        phi = self.features.phi(state)
        q, b = self._q(h, phi)
        self._keep_value(h - 1, state, phi, b, q.max())
        best: BoolArray = self.optimism.best(q)
        return best

    def _keep_value(self, h: int, state: State, phi: Array, b: Array, V: float) -> None:
        """The state acted in is, as a rule, the next state of the newest sample of the step before: value it now."""
        if h < 0 or not self.blocks[h]:
            return
        block = self.blocks[h][-1]
        newest = self._count(h) - 1
        seen = phi if self.keep_features else np.asarray(state)
        if self.valued[h] == newest and np.array_equal(block.next[block.count - 1], seen):
            block.b[block.count - 1] = b
            block.V[block.count - 1] = V * block.alive[block.count - 1]
            self.valued[h] += 1

    def best_table(self, h: int) -> BoolArray:
        assert isinstance(self.features, TableFeatures)
        F = self.features.columns
        b = self.optimism.squared(np.abs(np.einsum("di,di->i", F, self.ridge.Lambda_inv[h] @ F)))
        q = self.optimism.q(self.w[h] @ F, b, self.optimism.caps[h])
        best: BoolArray = self.optimism.best(q.reshape(self.features.A, self.features.S))
        return best

    def state_dict(self) -> StateDict:
        counts = [[len(blocks), n] for blocks, n in zip(self.blocks, self.valued, strict=True)]
        state = {"counts": np.array(counts, dtype=np.int64)}
        for h, blocks in enumerate(self.blocks):
            for i, block in enumerate(blocks):
                for name in _Block.NAMES:
                    state[f"{h}.{i}.{name}"] = getattr(block, name)[: block.count].copy()
        return state

    def load_state_dict(self, state: Mapping[str, np.ndarray]) -> None:
        counts = np.zeros((self.H, 2), dtype=np.int64)
        load_array(counts, state, "counts")
        self.clear()
        for h, (blocks, valued) in enumerate(counts.tolist()):
            self.valued[h] = valued
            for i in range(blocks):
                self._load_block(h, state, f"{h}.{i}")
            if not 0 <= valued <= (self._count(h) if blocks > 0 else 0):
                raise InvalidData(f"'counts' of a saved agent must be those of its samples. Got {valued} at step {h}.")

    def _load_block(self, h: int, state: Mapping[str, np.ndarray], prefix: str) -> None:
        following, phi = saved_array(state, f"{prefix}.next"), saved_array(state, f"{prefix}.phi")
        n, before = len(phi), self.blocks[h][-1].count if self.blocks[h] else self.size
        shape = (self.features.A, self.features.d) if self.keep_features else following.shape[1:]
        shape = (0,) if h == self.H - 1 else shape
        if following.shape != (n, *shape) or not 0 < n <= self.size or before != self.size:
            raise InvalidData(f"'{prefix}' of a saved agent must be a block of samples. Got {following.shape}.")
        block = self._append(h, shape, following.dtype)
        block.count = n
        for name in _Block.NAMES:
            load_array(getattr(block, name)[: block.count], state, f"{prefix}.{name}")
