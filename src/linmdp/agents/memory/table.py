"""Finite states: exact in memory that does not grow, since z_h = N V with N = sum_i phi_i e_{s'_i}'."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, ClassVar

import numpy as np

from linmdp.agents.backend import NUMPY, Backend, imagining, zeros
from linmdp.agents.exploration.base import meeting, stacked
from linmdp.agents.memory.base import BUFFERS, Parts, Sample, Storage
from linmdp.agents.ridge import dot, masked_groups, matvec, packed, products, runs_in
from linmdp.features.bilinear import BilinearFeatures
from linmdp.features.tabular import TableFeatures
from linmdp.types import Array, BoolArray, State

LARGEST_PACKED, PRODUCTS_BYTES = 128, 1 << 22
"""Features up to which the forms of many matrices are one product, and the bytes of its right side at a time."""

BLOCK = 1 << 17
"""Columns of the features that are looked at together where Lambda^-1 is new."""


class Counts(Storage):
    """How often phi led to each state.

    With a regression per step the values of every step are kept, because some may be planned without the others. With
    one for all they are made on the way, and again when the agent acts: H times less memory.

    Attributes
    ----------
    N : (G, *batch, d, S) of the regressions that lead to a next step
    forms : (G, *batch, A*S) phi' Lambda^-1 phi of every state and action, kept up by rank-one changes
    seen : (G, *batch, 2, S) how often each state followed, and with which rewards; empty unless lam is "auto"
    V : (H+1, *batch, S) max_a Q_h, zero after the last step; (1, *batch, S) with one regression for all steps
    best : (H, *batch, A, S) which actions share the largest Q; empty where they are found when asked for
    """

    _arrays: ClassVar[tuple[str, ...]] = ("N", "forms", "V", "best", "seen")
    _saved_within: ClassVar = {"forms": (0, np.inf)}
    _scratch: ClassVar[tuple[str, ...]] = ("_own_columns", "_vectors", "_rows")
    keeps_samples = False

    def __init__(
        self,
        parts: Parts,
        features: TableFeatures,
        dtype: str,
        *,
        batch: tuple[int, ...] = (),
        backend: Backend = NUMPY,
    ) -> None:
        super().__init__(parts)
        S, A, d, H, G = features.S, features.A, features.d, self.horizon.H, self.horizon.groups
        explore, self.tables = self.exploration, not self.horizon.shared
        self.features, self.backend, self.shape = features, backend, (*batch, A, S)
        self.columns = backend.array(features.columns, dtype)
        self._own_columns = self.columns if self.columns is not features.columns else np.empty(0)
        kernels = backend.kernels(d, A) if explore.incremental else None
        self.kernels, self.inverting = kernels if explore.plain and self.tables else None, kernels
        self.N = backend.zeros((self.horizon.followed, *batch, d, S), dtype)
        self.seen = backend.zeros((self.horizon.followed * explore.adaptive, *batch, 2, S))
        self.forms = backend.zeros((G * explore.keeps_forms, *batch, A * S), dtype)
        self.V = backend.zeros((H + 1 if self.tables else 1, *batch, S), dtype)
        self.best = backend.zeros((H * (self.tables and self.kernels is None), *batch, A, S), "bool")
        self.best[...] = True
        most = explore.per_step + (explore.keeps_forms and self.tables)
        self._vectors = backend.zeros((most, *batch, d), dtype)
        self._rows = backend.zeros((most, *batch, A * S), dtype)
        # the same memory in the shapes that `sweep` wants, for each number of vectors
        self._forms = self.forms.reshape(-1, *self.shape)
        self._views = {
            n: (x[:n].reshape(-1, d), y[:n].reshape(-1, A * S), y[:n].reshape(n, *self.shape))
            for x, y in [(self._vectors, self._rows)]
            for n in range(1, most + 1)
        }
        self._cast = partial(backend.cast, dtype=dtype)
        self._product = backend.fused(matvec if backend.is_numpy else _matvec_in_one_pass)
        self._runs = backend.array(np.arange(batch[0]), "int64") if batch else None
        if not imagining():
            self.restart(np.ones((G, *batch), dtype=np.bool_))

    def add(self, h: int, sample: Sample) -> None:
        g = self.horizon.group(h)
        if not sample.terminated and g < len(self.N):  # the value after the end is 0
            phi = sample.phi if sample.weight == 1 else sample.weight * sample.phi
            self.count(self.N[g], phi, sample.next_state)
            if len(self.seen):
                self.seen[g, :, sample.next_state] += sample.weight, sample.weight * sample.reward

    def followed(self, h: int, next_state: Any, reward: Any, store: Any) -> None:
        """`seen` of a step of B runs in lockstep, (B,) each; N has been counted."""
        if (g := self.horizon.group(h)) < len(self.seen):
            self.seen[g][self._runs, :, next_state] += self.backend.xp.stack((store, store * reward), -1)

    def count(self, N: Any, phi: Any, next_state: State) -> None:
        """N += phi e_{s'}', in every run."""
        if self._runs is None:
            N[:, next_state] += phi
        else:
            N[self._runs, :, next_state] += self._cast(phi)

    def working_bytes(self, samples: int) -> int:
        return int(BUFFERS + 24 * self.columns.size)  # forms made afresh

    def clear(self, runs: Any = ...) -> None:
        self.N[:, runs] = 0.0
        self.seen[:, runs] = 0.0

    def fade(self, factor: float) -> None:
        self.N *= factor
        self.seen *= factor

    def restart(self, mask: BoolArray) -> None:
        if not len(self.forms):
            return
        squares = self._by_blocks(lambda columns: (columns * columns).sum(0))
        for g in masked_groups(mask):
            runs = runs_in(mask, g)
            scale = self.exploration.scale(g, runs) / self.ridge.lam[runs]
            self.forms[g][runs] = self._cast(squares * scale[..., None])

    def refresh(self, mask: BoolArray) -> None:
        if not len(self.forms):
            return
        many = len(self.columns) <= min(LARGEST_PACKED, int(mask.sum()))
        if many and self.ridge.exact and self.backend.is_numpy:  # a sketch has no matrices, a GPU is as fast without
            self._refresh_together(mask)
            return
        # runs at once: on a CPU the product of one fits the cache, a GPU wants many
        size = 1 if self.backend.is_numpy else 64
        for g in masked_groups(mask):
            which = np.flatnonzero(mask[g])
            for part in [...] if mask.ndim == 1 else [which[i : i + size] for i in range(0, len(which), size)]:
                metric = self.exploration.metric(g)
                inverses = self._cast(metric if part is ... else metric[part])
                forms = self._by_blocks(partial(_forms, inverses))
                if self.exploration.scaled:
                    forms = self._cast(forms * self.exploration.scale(g, part)[..., None])
                self.forms[g][part] = forms

    def _refresh_together(self, mask: BoolArray) -> None:
        """`refresh` of at least d matrices: one product of all of them with x x', which takes half the arithmetic."""
        whole, metric = mask.all(), np.stack([self.exploration.metric(g) for g in range(len(mask))])
        left = packed(metric if whole else metric[mask]).reshape(int(mask.sum()), -1)
        if self.exploration.scaled:
            scales = np.stack([np.broadcast_to(self.exploration.scale(g), mask.shape[1:]) for g in range(len(mask))])
            left *= scales[mask][:, None]
        left, forms = self._cast(left), self.forms.reshape(mask.size, -1)
        allowed = min(PRODUCTS_BYTES, forms.itemsize * forms.shape[1] * len(self.columns) // 2 * mask[0].size)
        size = max(64, allowed // (left.shape[1] * forms.itemsize))  # for each run less than the product of one matrix
        for part in (slice(i, i + size) for i in range(0, forms.shape[1], size)):
            found = left @ products(self.columns[:, part])
            if whole:
                np.abs(found, out=forms[:, part])
            else:
                forms[mask.ravel(), part] = np.abs(found, out=found)

    def _by_blocks(self, function: Callable[[Any], Any]) -> Any:
        """A function of the columns, some at a time: its temporary arrays need not be as large as the features."""
        rows = self.columns.shape[-1]
        if rows <= BLOCK or not self.backend.is_numpy:
            return function(self.columns)
        return np.concatenate([function(self.columns[:, i : i + BLOCK]) for i in range(0, rows, BLOCK)], axis=-1)

    def rescale(self, factors: Array) -> None:
        self.forms *= factors[:, None].astype(self.forms.dtype)

    def target(self, h: int) -> Any:
        return self.followed_by(h, self.V[h + 1]) if self.tables else self.followed_by(0, self.V[0])

    def followed_by(self, g: int, V: Any, runs: Any = ...) -> Any:
        """N V of regression g (in some of the runs in lockstep): sum_i phi_i V(s'_i)."""
        return self._product(self.N[g][runs], V)

    def ahead(self, h: int) -> tuple[Any, Any]:
        seen, V = self.seen[self.horizon.group(h)], self.V[h + 1 if self.tables else 0]
        times, rewards, V = seen[..., 0, :], seen[..., 1, :], self.horizon.discount * V
        return dot(times, V), dot(times * V + 2 * rewards, V)

    def sweep(self, h: int, v: Any) -> None:
        """One pass over the features: a product with a few vectors, then a few operations in place."""
        if not self.tables and h == 0 and not self.horizon.discounted:
            return  # nobody asks for the value of the first step
        explore, g = self.exploration, h if self.tables else 0
        V, vectors = self.V[h if self.tables else 0], explore.vectors(h, v)
        n = len(vectors)
        for i in range(n):
            self._vectors[i] = vectors[i]
        vectors, flat, rows = self._views[n]
        self.backend.xp.matmul(vectors, self.columns, out=flat)
        forms = self._forms[g] if explore.keeps_forms else self.forms
        self._valued(h, rows, forms, V, self.best[h] if self.tables else None)

    def sweep_runs(self, h: int, v: Any, runs: Any) -> None:
        """`sweep` for some of the runs in lockstep; what the others have does not change."""
        vectors = self._cast(np.stack([x[runs] for x in self.exploration.vectors(h, v)]))
        rows = (vectors.reshape(-1, vectors.shape[-1]) @ self.columns).reshape(*vectors.shape[:2], *self.shape[1:])
        forms, V, best = self._forms[h][runs], self.V[h][runs], self.best[h][runs]
        self._valued(h, rows, forms, V, best)
        if isinstance(runs, slice):  # the arrays themselves, no copies
            return
        if len(vectors) > 1:
            self._forms[h][runs] = forms
        self.V[h][runs], self.best[h][runs] = V, best

    def _valued(self, h: int, rows: Any, forms: Any, V: Any, best: Any) -> None:
        """V and the best actions of step h from the products with its vectors, in place.

        The cap is put on the largest value alone: min(max_a q, cap) = max_a min(q, cap), and the actions that share it
        are those with q >= min(max_a q, cap).
        """
        xp, explore = self.backend.xp, self.exploration
        q = explore.raised(h, rows, forms)
        explore.largest(q, -2, out=V)
        xp.minimum(V, meeting(explore.caps[h], V), out=V)
        if best is not None:
            xp.greater_equal(q, (V - explore.tie)[..., None, :], out=best)

    def greedy_target(self, h: int, w: Any) -> Any:
        V = (self._cast(w) @ self.columns).reshape(self.shape).max(axis=-2)
        cap = self.exploration.caps[self.horizon.level(h + 1)]
        return self._product(self.N[self.horizon.group(h)], np.minimum(V, cap))

    def best_actions(self, h: int, state: State) -> Any:
        if self.tables and self._runs is None:
            return self.best[h][:, state]
        return super().best_actions(h, state)

    def _columns_of(self, state: State) -> Any:
        """Features of a state, or of one per run, (d, A, *batch)."""
        return self.columns.reshape(len(self.columns), *self.shape[-2:])[:, :, state]

    def best_table(self, h: int) -> Any:
        if self.tables and self.kernels is None:
            return self.best[h]
        explore = self.exploration
        if not self.tables and self._runs is None:
            q = explore.q_of_rows(h, self.features.columns.T)
        else:
            vectors = self._cast(self.backend.xp.stack(tuple(explore.vectors(h))))
            q = explore.q(
                h, vectors @ self.columns, self.forms[self.horizon.group(h)] if len(self.forms) else self.forms
            )
        return explore.best(q.reshape(self.shape), axis=-2)

    def q_values(self, h: int, state: State) -> Any:
        explore, xp = self.exploration, self.backend.xp
        if not self.tables and self._runs is None:
            return explore.q_of_rows(h, self.features.phi(state))
        vectors = self._cast(xp.stack(tuple(explore.vectors(h))))
        forms = self._forms[self.horizon.group(h)] if explore.keeps_forms else self.forms
        if self._runs is None:
            return explore.q(h, vectors @ self._columns_of(state), forms[:, state] if len(forms) else forms)
        products = xp.einsum("nbd,dab->nba", vectors, self._columns_of(state))
        return explore.q(h, products, forms[self._runs, :, state] if len(forms) else forms)

    def take_run(self, batched: Any, i: int) -> None:
        for name in ("N", "forms", "V", "seen"):
            getattr(self, name)[:] = batched.backend.host(getattr(batched, name)[:, i])
        for h in range(len(self.best)):  # which a GPU does not keep
            self.best[h] = batched.backend.host(batched.best_table(h)[i])


class Searched(Counts):
    """`Counts` of bilinear features: nothing is kept per action, and Q is that of `BilinearFeatures.scan`.

    Attributes
    ----------
    N, seen, V : as in `Counts`
    """

    _arrays: ClassVar = ("N", "V", "seen")
    _scratch: ClassVar = ()
    incremental = False

    def __init__(self, parts: Parts, features: BilinearFeatures) -> None:
        Storage.__init__(self, parts)
        self.bilinear, self.tables = features, not self.horizon.shared
        self.N = zeros((self.horizon.followed, features.d, features.S))
        self.seen = zeros((self.horizon.followed * self.exploration.adaptive, 2, features.S))
        self.V = zeros((self.horizon.H + 1 if self.tables else 1, features.S))
        self.forms, self._runs, self._product = np.zeros(0), None, matvec

    def working_bytes(self, samples: int) -> int:
        A, S, p = self.bilinear.A, self.bilinear.S, self.bilinear.p
        return int(BUFFERS + 8 * A * (3 * p + 14) + A * S)

    def sweep(self, h: int, v: Any) -> None:
        if self.tables or h > 0 or self.horizon.discounted:  # with one regression nobody asks for that of step 0
            vectors, metric = self._linear(h)
            self.V[h if self.tables else 0] = [
                self.bilinear.scan(state, vectors, metric, partial(self._score, h)).max()
                for state in range(self.bilinear.S)
            ]

    def _score(self, h: int, products: Array, forms: Array) -> Array:
        q: Array = self.exploration.q(h, products, forms)
        return q

    def _linear(self, h: int) -> tuple[Array, Array]:
        explore = self.exploration
        return stacked(explore.vectors(h)), explore.metric(self.horizon.group(h))

    def q_values(self, h: int, state: State) -> Array:
        return self.bilinear.scan(state, *self._linear(h), partial(self._score, h))

    def best_actions(self, h: int, state: State) -> BoolArray:
        best: BoolArray = self.exploration.best(self.q_values(h, state))
        return best

    def best_table(self, h: int) -> BoolArray:
        return np.stack([self.best_actions(h, state) for state in range(self.bilinear.S)], axis=1)


def _forms(inverses: Any, columns: Any) -> Any:
    """phi' Lambda^-1 phi of every column phi, (*runs, columns)."""
    return abs((columns * (inverses @ columns)).sum(-2))


def _matvec_in_one_pass(matrices: Any, vectors: Any) -> Any:
    """`matvec`; fused on a GPU it reads M at the speed of the memory, which a batched product there does not."""
    return (matrices * vectors[..., None, :]).sum(-1)
