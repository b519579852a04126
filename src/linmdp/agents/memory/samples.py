"""Samples kept one by one, where states are not finite: as features (the paper's way) or as states."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np

from linmdp.agents.base import StateDict, load_array, saved_array
from linmdp.agents.exploration.base import stacked
from linmdp.agents.held import check_range
from linmdp.agents.memory.base import BUFFERS, FADED, Parts, Sample, Storage
from linmdp.errors import InvalidData
from linmdp.features.base import FeatureMap
from linmdp.features.tabular import TableFeatures
from linmdp.types import Array, BoolArray, State

_BLOCK_BYTES = 5 << 19
"""A block should be large enough that a product over it takes longer than the call."""


LARGEST_BLOCK = 256


def faded_after(factor: float) -> int:
    """How often a sample must fade by `factor` until it is dropped."""
    return 1 if factor <= FADED else math.ceil(math.log(FADED) / math.log(factor))


def block_size(A: int, d: int, dtype: str, capacity: int | None) -> int:
    """Samples in one block; if it is known how many there will be, equal blocks that hold them with little to spare."""
    size = min(max(_BLOCK_BYTES // (A * d * np.dtype(dtype).itemsize), 8), LARGEST_BLOCK)
    return -(-capacity // -(-capacity // size)) if capacity else size


class _Block:
    """Space for a few samples of one regression, side by side; blocks are added, never copied.

    phi is scaled by the root of the sample's weight. `numbers` has a row per sample: V, that root or 0 where nothing
    follows (`scale`) and, where they are needed, the reward times the root.
    """

    NAMES: ClassVar = ("phi", "next", "forms", "numbers")
    __slots__ = ("count", "forms", "next", "numbers", "phi")

    def __init__(
        self, size: int, d: int, next_shape: tuple[int, ...], next_dtype: Any, dtype: str, forms: int, rewards: bool
    ) -> None:
        self.count = 0
        self.phi = np.zeros((size, d), dtype=dtype)
        self.next = np.zeros((size, *next_shape), dtype=next_dtype)
        self.forms = np.zeros((size, forms), dtype=dtype)
        self.numbers = np.zeros((size, 2 + rewards), dtype=dtype)

    @property
    def V(self) -> Array:
        """Values of what followed, times the root of the weight, (size,)."""
        return self.numbers[:, 0]

    @property
    def scale(self) -> Array:
        """Roots of the weights, (size,); 0 where nothing follows."""
        return self.numbers[:, 1]

    @property
    def nbytes(self) -> int:
        return sum(getattr(self, name).nbytes for name in self.NAMES)


class Samples(Storage):
    """Every sample of the working space, in blocks: as features of all actions (the paper's way) or as states.

    A sample of step h holds phi_i, the next state s'_i (as features of all actions, or as itself), and for each action
    of s'_i the form phi' Lambda^-1 phi with the Lambda of the next step, kept up as that grows.
    """

    def __init__(
        self,
        parts: Parts,
        features: FeatureMap,
        dtype: str,
        *,
        keep_features: bool,
        state_bytes: int,
        capacity: int | None = None,
    ) -> None:
        super().__init__(parts)
        self.features, self.keep_features, self.dtype, self._state_bytes = features, keep_features, dtype, state_bytes
        self.size = block_size(features.A, features.d, dtype, capacity)
        G = self.horizon.groups
        self.blocks: list[list[_Block]] = [[] for _ in range(G)]
        self.valued = [0] * G
        """How many samples of each regression have forms and values of the current Q that follows."""
        self._held = 0

    @property
    def nbytes(self) -> int:
        return self._held

    def bytes_after(self, samples: int) -> int:
        A, d, explore = self.features.A, self.features.d, self.exploration
        state = A * d * np.dtype(self.dtype).itemsize if self.keep_features else self._state_bytes
        if not self.keep_features and any(self.blocks):
            state = next(b for b in self.blocks if b)[0].next[0].nbytes  # the steps fill up from the first on
        one = (d + A * explore.keeps_forms + 2 + explore.adaptive) * np.dtype(self.dtype).itemsize
        return -(-samples // self.size) * self.size * (self.horizon.groups * one + self.horizon.followed * state)

    def working_bytes(self, samples: int) -> int:
        return BUFFERS + 32 * self.size * self.features.A * self.features.d

    def add(self, h: int, sample: Sample) -> None:
        g = self.horizon.group(h)
        followed, blocks = g < self.horizon.followed, self.blocks[g]
        if not followed:
            entry = np.empty(0)  # nobody asks what follows the last step
        elif self.keep_features:
            entry = np.asarray(self.features.phi(sample.next_state), self.dtype)
        else:
            entry = np.asarray(sample.next_state)
        if not blocks or blocks[-1].count == self.size:
            self._append(g, entry.shape, entry.dtype)
        block, root = blocks[-1], sample.weight**0.5
        i = block.count
        block.phi[i], block.next[i] = sample.phi if root == 1 else root * sample.phi, entry
        block.scale[i] = root * (followed and not sample.terminated)
        if self.exploration.adaptive:
            block.numbers[i, 2] = root * sample.reward
        block.count = i + 1

    def _append(self, g: int, next_shape: tuple[int, ...], next_dtype: Any) -> _Block:
        d, forms = self.features.d, self.features.A * self.exploration.keeps_forms
        block = _Block(self.size, d, next_shape, next_dtype, self.dtype, forms, self.exploration.adaptive)
        self.blocks[g].append(block)
        self._held += block.nbytes
        return block

    def prepare(self, sample: Sample) -> None:
        sample.phi = sample.phi.astype(self.dtype).astype(np.float64, copy=False)

    def gram(self, g: int) -> Array:
        total = np.zeros((self.features.d, self.features.d))
        for block in self.blocks[g]:
            phi = block.phi[: block.count].astype(np.float64, copy=False)
            total += phi.T @ phi
        return total

    def clear(self, runs: Any = ...) -> None:
        G = self.horizon.groups
        self.blocks, self.valued, self._held = [[] for _ in range(G)], [0] * G, 0

    def fade(self, factor: float) -> None:
        most = faded_after(factor) * self.horizon.samples_per_episode
        for g, blocks in enumerate(self.blocks):
            while blocks and self._count(g) - self.size >= most:  # all of the oldest block has faded
                self._held -= blocks.pop(0).nbytes
                self.valued[g] = max(0, self.valued[g] - self.size)
            for block in blocks:
                block.phi *= factor**0.5
                block.numbers *= factor**0.5

    def refresh(self, mask: BoolArray) -> None:
        for g in np.flatnonzero(mask if self.horizon.shared else mask[1:]):  # samples of step h look at step h+1
            self.valued[g] = 0

    def rescale(self, factors: Array) -> None:
        for h, blocks in enumerate(self.blocks[:-1]):
            for block in blocks:
                block.forms *= factors[h + 1]

    def target(self, h: int) -> Array:
        g, z = self.horizon.group(h), np.zeros(self.features.d)
        self._value(h, None, new_only=True)
        for block in self.blocks[g]:
            z += block.V[: block.count] @ block.phi[: block.count]
        return z

    def ahead(self, h: int) -> tuple[float, float]:
        total = squares = 0.0
        for block in self.blocks[self.horizon.group(h)]:
            V, roots, rewards = block.numbers[: block.count].astype(np.float64).T
            V = self.horizon.discount * V
            total, squares = total + float(roots @ V), squares + float(V @ V + 2 * rewards @ V)
        return total, squares

    def sweep(self, h: int, v: Array | None) -> None:
        if h > 0 or self.horizon.discounted:
            self._value(max(h - 1, 0), v, new_only=False)

    def greedy_target(self, h: int, w: Array) -> Array:
        z, cap = np.zeros(self.features.d), self.exploration.caps[self.horizon.level(h + 1)]
        for block in self.blocks[self.horizon.group(h)]:
            V = (self._rows(block, 0) @ w.astype(self.dtype)).max(axis=1)
            z += (np.minimum(V, cap) * block.scale[: block.count]) @ block.phi[: block.count]
        return z

    def _value(self, h: int, v: Array | None, *, new_only: bool) -> None:
        """Renew forms and V of the samples of step h with the Q that follows: all, or only those never valued."""
        g, after = self.horizon.group(h), self.horizon.level(h + 1)
        done = self.valued[g]
        if not self.blocks[g] or (new_only and done == self._count(g)):
            return
        cap, vectors = self.exploration.caps[after], stacked(self.exploration.vectors(after, v), self.dtype)
        for index, block in enumerate(self.blocks[g]):
            old = min(max(done - index * self.size, 0), block.count)
            first = old if new_only else 0
            if first == block.count:
                continue
            rows = self._rows(block, first)
            products = (vectors @ rows.reshape(-1, rows.shape[-1]).T).reshape(len(vectors), *rows.shape[:2])
            forms = block.forms[first : block.count]
            if forms.size and old < block.count:
                forms[old - first :] = self.exploration.forms(after, rows[old - first :])
                products[1:, old - first :] = 0.0  # v is in them
            V = self.exploration.raised(after, products, forms).max(axis=1)
            block.V[first : block.count] = np.minimum(V, cap) * block.scale[first : block.count]
        self.valued[g] = self._count(g)

    def _count(self, g: int) -> int:
        """Samples of a regression; only the last block may have space left."""
        return (len(self.blocks[g]) - 1) * self.size + self.blocks[g][-1].count

    def _rows(self, block: _Block, first: int) -> Array:
        """phi(s'_i, .) of the samples from `first` on, (n, A, d)."""
        kept = block.next[first : block.count]
        return kept if self.keep_features else np.asarray(self.features.batch(kept), dtype=self.dtype)

    def q_values(self, h: int, state: State) -> Array:
        return self.exploration.q_of_rows(h, self.features.phi(state))

    def best_actions(self, h: int, state: State) -> BoolArray:
        explore, phi = self.exploration, self.features.phi(state)
        forms = explore.forms(h, phi)
        q = explore.q_of_rows(h, phi, forms)
        if forms.size and h > 0 and not self.horizon.shared:
            self._keep_value(h - 1, phi if self.keep_features else np.asarray(state), forms, q.max())
        best: BoolArray = explore.best(q)
        return best

    def _keep_value(self, g: int, state: Array, forms: Array, V: float) -> None:
        """The state acted in is, as a rule, the next state of the newest sample of the step before: value it now."""
        if not self.blocks[g]:
            return
        block, newest = self.blocks[g][-1], self._count(g) - 1
        i = block.count - 1
        if self.valued[g] == newest and np.array_equal(block.next[i], state):
            block.forms[i], block.V[i] = forms, V * block.scale[i]
            self.valued[g] += 1

    def best_table(self, h: int) -> BoolArray:
        assert isinstance(self.features, TableFeatures)
        q = self.exploration.q_of_rows(h, self.features.columns.T)
        best: BoolArray = self.exploration.best(q.reshape(self.features.A, self.features.S))
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
        counts = np.zeros((self.horizon.groups, 2), dtype=np.int64)
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
        shape = (0,) if h >= self.horizon.followed else shape
        if following.shape != (n, *shape) or not 0 < n <= self.size or before != self.size:
            raise InvalidData(f"'{prefix}' of a saved agent must be a block of samples. Got {following.shape}.")
        if not self.keep_features and isinstance(self.features, TableFeatures) and h < self.horizon.followed:
            if following.dtype.kind not in "iu" or following.ndim != 1:
                raise InvalidData(f"'{prefix}.next' of a saved agent must be states. Got {following.dtype}.")
            check_range(f"{prefix}.next", following, 0, self.features.S - 1)
        block = self._append(h, shape, following.dtype)
        block.count = n
        for name in _Block.NAMES:
            load_array(getattr(block, name)[: block.count], state, f"{prefix}.{name}")
