"""Planning with merged transitions in little memory: their features are made a few at a time, anew for every step."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from linmdp.agents import symmetric
from linmdp.agents.afresh import InPlace
from linmdp.agents.exploration.base import Moments, stacked
from linmdp.agents.storage.base import Parts
from linmdp.agents.storage.packed import Packed
from linmdp.features.base import FeatureMap
from linmdp.types import Array, BoolArray, IntArray


class Chunk(NamedTuple):
    """A few transitions of one regression, ready for planning; n of them."""

    at: Any  # where the values that are kept for them during a planning lie
    action: IntArray  # (n,)
    times: Array  # (n,)
    reward: Array  # (n,) mean reward
    ended: BoolArray  # (n,)
    begin: Array  # (n, k) where they began
    after: Array  # (n, k) what followed


class Once(NamedTuple):
    """What a planning needs to know of a regression once."""

    final: Array  # (p,) sum of psi(s') over the ends
    finals: float  # how many samples these are, one for each action
    within: float  # sum of squared rewards around their means


class Starting(NamedTuple):
    """Weights that a fit starts from, and Lambda times them, (A, p) each."""

    w: Array
    image: Array


class Slim(Packed):
    """`Merged` for phi(s, a) = psi(s) in the block of action a: the same planning, psi made anew for every step."""

    p: int
    _moments: Moments

    def __init__(self, parts: Parts, features: FeatureMap, M: int, state_bytes: int, at_once: int = 64) -> None:
        super().__init__(parts, features, M, state_bytes)
        self.at_once = at_once
        assert isinstance(self.ridge, InPlace)
        self.ridge.ready, self.ridge.gram, self.ridge.image = self.ready, self.gram_block, self.image
        self.p = features.d // self.A
        self._once: dict[int, Once] = {}
        self._moments = Moments(0.0, 0.0, 0.0)

    def _chunks(self, g: int, action: int | None = None) -> Iterator[Chunk]:
        """The transitions of a regression, or those with one action."""
        for first in range(0, self.count, self.at_once):
            part = slice(first, min(first + self.at_once, self.count))
            at, code = part, self.key[part].astype(np.int32) - self._key(g, 0, False)  # type: Any, IntArray
            actions, ended = code >> 1, code & 1
            wanted = (actions >= 0) & (actions < self.A) if action is None else actions == action
            if not wanted.all():
                at = first + np.flatnonzero(wanted)
                if not len(at):
                    continue
                actions, ended = actions[wanted], ended[wanted]
            times, reward = self._weighed(at, self.sums[0, at].astype(np.float64)), self.reward[at] * self.paid
            yield Chunk(at, actions, times, reward, ended != 0, *self.between(at))

    def ready(self, g: int, scratch: Array) -> None:
        """A planning of regression g begins, and its matrix will be made; `scratch` may be used until then."""

    def _weighed(self, at: Any, times: Array) -> Array:
        """What transitions count in this planning."""
        return times

    def gram_block(self, g: int, a: int, out: Array) -> None:
        """Half of the block of action a of sum phi phi'."""
        out[:] = 0.0
        for chunk in self._chunks(g, a):
            symmetric.add_outer(out, weighted(self.rows(chunk.begin), chunk.times))
        for times, Y in self._ended(g):
            symmetric.add_outer(out, weighted(Y, times))

    def image(self, g: int, a: int, x: Array) -> Array:
        """That block times x (p, n)."""
        found = np.zeros_like(x)
        rows = ((chunk.times, self.rows(chunk.begin)) for chunk in self._chunks(g, a))
        for times, Y in itertools.chain(rows, self._ended(g)):
            found += Y.T @ (times[:, None] * (Y @ x))
        return found

    def inverse_of(self, g: int) -> Any:
        """The halves of its factors, for each action."""
        assert isinstance(self.ridge, InPlace)
        return self.ridge.factors(g)

    def forms(self, rows: Array, inverse: Any) -> Array:
        return np.stack([symmetric.forms(half, rows) for half in inverse], axis=1).astype(np.float64)

    def _ended(self, g: int) -> Iterator[tuple[Array, Array]]:
        """Times, and features of what followed, of the transitions that ended an episode, a few at a time."""
        key = self.key[: self.count]
        over = np.flatnonzero((key & 1) & (key >= self._key(g, 0, False)) & (key < self._key(g + 1, 0, False)))
        for at in (over[i : i + self.at_once] for i in range(0, len(over), self.at_once)):
            yield self._weighed(at, self.sums[0, at].astype(np.float64)), self.rows(self.between(at)[1])

    def refresh(self, mask: BoolArray) -> None:
        self._forms.clear()
        self._once.clear()
        for g in np.flatnonzero(mask).tolist():
            z = np.zeros((self.A, self.p))
            for chunk in self._chunks(g):
                self._sum_up(z, chunk, chunk.reward)
            self.ridge.u[g] = z.ravel()

    def _once_of(self, g: int) -> Once:
        if g not in self._once:
            final, finals, within = np.zeros(self.p), 0.0, float(self.squares[g])
            for times, Y in self._ended(g):
                final += times @ Y
                finals += self.A * float(times.sum())
            for chunk in Slim._chunks(self, g):
                within -= float(self.sums[0, chunk.at] @ chunk.reward**2)
            self._once[g] = Once(final, finals, max(0.0, within))
        return self._once[g]

    def _sum_up(self, z: Array, chunk: Chunk, values: Array, start: Starting | None = None) -> None:
        """z += sum phi_i y_i, (A, p)."""
        X, each = self.rows(chunk.begin), np.arange(len(values))
        weights = np.zeros((self.A, len(values)))
        weights[chunk.action, each] = chunk.times * values
        z += weights @ X
        if start is not None:
            weights[chunk.action, each] = chunk.times * (X @ start.w.T)[each, chunk.action]
            start.image[:] += weights @ X

    def _starting(self, g: int, w: Array) -> Starting:
        """What the fits of a regression start from: Lambda w, but for the transitions that `_sum_up` counts."""
        start = Starting(w.reshape(self.A, self.p), self.ridge.lam * w.reshape(self.A, self.p))
        for times, Y in self._ended(g):
            start.image[:] += (times[:, None] * (Y @ start.w.T)).T @ Y
        return start

    def target(self, h: int) -> Array:
        g, explore, discount = self.horizon.group(h), self.exploration, self.horizon.discount
        z, leads_on, after, start = np.zeros((self.A, self.p)), self.horizon.leads_on(h), h + 1, None
        n = total = squares = 0.0
        if leads_on:
            after = 0 if self.horizon.discounted else after
            forms = self._forms_after(g, after)
            vectors, start = explore.vectors(after), self._starting(g, self.w[self.horizon.level(after)])
        for chunk in self._chunks(g):
            V = np.zeros(len(chunk.times))
            if leads_on:
                products = self._products_after(chunk, vectors)
                V = explore.largest(explore.q(after, products, self._read_forms(forms[chunk.at])), axis=-1)
                V[chunk.ended] = explore.terminal[h]
                self._sum_up(z, chunk, V, start)
            y = chunk.reward + discount * V
            n, total = n + float(chunk.times.sum()), total + float(chunk.times @ y)
            squares += float(chunk.times @ (y * y))
        (final, finals, within), ended = self._once_of(g), float(explore.ended_value[h])
        self._moments = Moments(n + finals, total + finals * ended, squares + within + finals * ended * ended)
        z += ended / discount * final
        self._start_from(start)
        return z.ravel()

    def _start_from(self, start: Starting | None) -> None:
        assert isinstance(self.ridge, InPlace)
        self.ridge.near = None if start is None else (start.w.ravel(), start.image.ravel())

    def _products_after(self, chunk: Chunk, vectors: Sequence[Array]) -> Array:
        """phi(s', a)'x for every vector, transition and action, (vectors, n, A)."""
        Y = self.rows(chunk.after)
        return stacked([self.products(Y, vector) for vector in vectors])

    def _forms_after(self, g: int, after: int) -> Array:
        """The forms of what followed, (n, A), in a byte each (see `_read_forms`): they serve the bonus alone."""
        if g not in self._forms:
            self._forms[g] = np.zeros((self._planned, self.A if self.exploration.keeps_forms else 0), dtype=np.uint8)
            inverse = self.inverse_of(self.horizon.group(after))
            for chunk in self._chunks(g) if self.exploration.keeps_forms else ():
                found = self.forms(self.rows(chunk.after), inverse) * self.ridge.lam
                self._forms[g][chunk.at] = np.rint(PER_OCTAVE * -np.log2(found.clip(2.0**-31, 1.0)))
        return self._forms[g]

    def _read_forms(self, written: Array) -> Array:
        """What the bytes say: how often, in eighths, a form must be doubled to be 1 / lam, of which none is larger."""
        return np.asarray(OCTAVES[written] / self.ridge.lam)

    @property
    def _planned(self) -> int:
        """Transitions that a planning goes through."""
        return self.count

    def greedy_target(self, h: int, w: Array) -> Array:
        g, cap = self.horizon.group(h), self.exploration.caps[self.horizon.level(h + 1)]
        z, start = np.zeros((self.A, self.p)), self._starting(g, w)
        for chunk in self._chunks(g):
            V = np.minimum(self._products_after(chunk, [w])[0], cap).max(axis=-1)
            self._sum_up(z, chunk, np.where(chunk.ended, 0.0, V), start)
        self._start_from(start)
        return z.ravel()

    def moments(self, h: int) -> Moments:
        return self._moments  # of the last target, which was that of step h

    def forget(self) -> None:
        super().forget()
        self._once = {}


PER_OCTAVE = 8
OCTAVES: Array = 2.0 ** (-np.arange(256) / PER_OCTAVE)
"""What bytes stand for where only the order of magnitude counts."""


def weighted(rows: Array, weights: Array) -> Array:
    """Rows times the roots of their weights; in place."""
    rows *= np.sqrt(weights)[:, None]
    return rows
