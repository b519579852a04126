"""Merged transitions whose features are made a few at a time: little memory while planning, and more time."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from linmdp.agents.exploration.base import Moments, stacked
from linmdp.agents.storage.merged import Merged
from linmdp.types import Array, BoolArray, IntArray

CHUNK = 16
"""Transitions whose features are made at once."""


class Sorted(NamedTuple):
    """The transitions of one regression in the order of their actions, without their features."""

    mine: IntArray  # (n,) their numbers
    cuts: list[int]  # where those of each action begin, and the end
    times: Array  # (n,)
    reward: Array  # (n,) mean reward
    ended: BoolArray  # (n,)
    within: float  # sum of squared rewards around their means


class Slim(Merged):
    """`Merged` for phi(s, a) = psi(s) in the block of action a: the same values, and psi made anew for every step."""

    def _sorted(self, g: int) -> Sorted:
        mine, actions, ended = self._by_action(g)
        times, reward, squared = self.sums[:, mine]
        cuts = np.searchsorted(actions, np.arange(self.A + 1)).tolist()
        return Sorted(mine, cuts, times, reward, ended, float(times @ (squared - reward**2)))

    def _chunks(self, held: Sorted, end: int) -> Iterator[tuple[int, slice, Array]]:
        """Actions, transitions and the features, (n, p), of the states before (`end` 0) or after (1) some of them."""
        for a in range(self.A):
            for i in range(held.cuts[a], held.cuts[a + 1], CHUNK):
                part = slice(i, min(i + CHUNK, held.cuts[a + 1]))
                yield a, part, self.rows(self.ends[held.mine[part], end])

    def gram(self, g: int) -> Array:
        held, total = self._sorted(g), np.zeros(self.ridge.Lambda_inv.shape[1:])
        for a, part, X in self._chunks(held, 0):
            total[a] += (X * held.times[part, None]).T @ X
        for _, part, Y in self._chunks(held, 1):
            if held.ended[part].any():
                total += (Y * (held.times[part] * held.ended[part])[:, None]).T @ Y
        return total

    def refresh(self, mask: BoolArray) -> None:
        self._forms.clear()
        for g in np.flatnonzero(mask).tolist():
            held = self._sorted(g)
            self.ridge.u[g] = self._weighted(held, held.reward)

    def _weighted(self, held: Sorted, values: Array) -> Array:
        """sum phi_i y_i, (d,)."""
        z = np.zeros(self.ridge.Lambda_inv.shape[1:3])
        for a, part, X in self._chunks(held, 0):
            z[a] += (held.times[part] * values[part]) @ X
        return z.ravel()

    def _final(self, held: Sorted) -> Array:
        """sum phi(s', a) over the ends and all actions, (d,)."""
        total = np.zeros(self.ridge.Lambda_inv.shape[-1])
        for _, part, Y in self._chunks(held, 1):
            total += (held.times[part] * held.ended[part]) @ Y
        return np.tile(total, self.A)

    def target(self, h: int) -> Array:
        g, explore = self.horizon.group(h), self.exploration
        held = self._sorted(g)
        self._V = np.zeros(len(held.times))
        if self.horizon.leads_on(h) and len(held.times):
            after = 0 if self.horizon.discounted else h + 1
            forms = self._forms_of(g, held, after)
            for _, part, Y in self._chunks(held, 1):
                products = stacked([self.products(Y, vector) for vector in explore.vectors(after)])
                self._V[part] = explore.largest(explore.q(after, products, forms[part].copy()), axis=-1)
            self._V[held.ended] = explore.terminal[h]
        ended: Array = explore.ended_value[h] / self.horizon.discount * self._final(held)
        return self._weighted(held, self._V) + ended

    def _forms_of(self, g: int, held: Sorted, after: int) -> Array:
        if g not in self._forms:
            found = np.zeros((len(held.times), self.A))
            inverse = self.ridge.Lambda_inv[self.horizon.group(after)]
            for _, part, Y in self._chunks(held, 1):
                found[part] = self.forms(Y, inverse) if self.exploration.keeps_forms else 0.0
            self._forms[g] = found
        return self._forms[g]

    def greedy_target(self, h: int, w: Array) -> Array:
        held, cap = self._sorted(self.horizon.group(h)), self.exploration.caps[self.horizon.level(h + 1)]
        V = np.zeros(len(held.times))
        for _, part, Y in self._chunks(held, 1):
            V[part] = np.minimum(self.products(Y, w), cap).max(axis=-1)
        return self._weighted(held, np.where(held.ended, 0.0, V))

    def moments(self, h: int) -> Moments:
        held = self._sorted(self.horizon.group(h))
        y, final = held.reward + self.horizon.discount * self._V, float(self.exploration.ended_value[h])
        finals = self.A * float(held.times[held.ended].sum())
        squares = float(held.times @ (y * y)) + held.within + finals * final * final
        return Moments(float(held.times.sum()) + finals, float(held.times @ y) + finals * final, squares)
