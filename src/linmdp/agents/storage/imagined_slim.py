"""Transitions that nobody has seen, in little memory: predicted again, a few at a time, for every step planned."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, ClassVar, NamedTuple

import numpy as np

from linmdp.agents import symmetric
from linmdp.agents.storage.imagined import ENOUGH, GROWTH, KINDS, RIDGE, STATES, TOLERATED
from linmdp.agents.storage.merged import Merged
from linmdp.agents.storage.packed import unpacked
from linmdp.agents.storage.slim import Chunk, Slim
from linmdp.features.basis import squared_distances
from linmdp.types import Array, BoolArray

LEFT_OUT = 5
"""One transition in so many is not fitted to, and tells how well the others predict it."""

NEAR = 16
"""States that are compared at once."""

FEW_STATES = (STATES, 500, 250, 125)
"""Imagined states: as many as `max_bytes` has space for."""


EXPONENTIAL: Array = -np.log1p(-(np.arange(256) + 0.5) / 256)
"""Numbers as large as those of an exponential distribution are, evenly spaced."""


def imagined_bytes(A: int, k: int) -> int:
    """Bytes of an imagined state of k coordinates, and of what follows each of A actions, in half precision."""
    return 2 * k + A * (2 * k + 2 + 1)


class Box(NamedTuple):
    """Coordinates in which the states that were visited fill [0, 1]^k: low and width are (k,)."""

    low: Array
    width: Array

    def inside(self, states: Array) -> Array:
        """States (n, k) in these coordinates."""
        return np.asarray((states - self.low) / self.width)

    def outside(self, x: Array) -> Array:
        """States at coordinates (n, k)."""
        return np.asarray(self.low + self.width * x)


class Scene(NamedTuple):
    """What a planning imagines: m states, and what follows each action there; all numbers in half precision.

    x : (m, k) states in coordinates of the box; change : (A, m, k) what follows minus that
    reward : (A, m); over : (A, m) whether the episode is over then
    weight : of an imagined transition
    factor : (n,) what the weights of real transitions are multiplied by, as a number of `EXPONENTIAL`
    """

    box: Box
    x: Array
    change: Array
    reward: Array
    over: BoolArray
    weight: float
    factor: Any


class ImaginedSlim(Slim):
    """`Imagined` in little memory, for one regression.

    As there, but for this: the predictors read the first p - k features and the k coordinates, so that their matrix
    fits where a block of Lambda will lie, and there may be fewer imagined states.

    imagined : the number of samples at the last planning with imagined transitions, 0 before it and after one without
    """

    _counters: ClassVar = (*Merged._counters, "imagined")
    imagined = 0
    _scene: Scene | None = None

    def __init__(self, *given: Any, states: int = STATES, **own: Any) -> None:
        super().__init__(*given, **own)
        self.states = states

    @property
    def restless(self) -> bool:
        return 0 < (1 + GROWTH) * self.imagined <= self._samples

    @property
    def _samples(self) -> int:
        return int(self.sums[0, : self.count].sum(dtype=np.float64))

    def clear(self, runs: Any = ...) -> None:
        super().clear(runs)
        self.imagined = 0

    def forget(self) -> None:
        super().forget()
        self._scene = None

    def ready(self, g: int, scratch: Array) -> None:
        self._scene, self.imagined = None, 0
        n, k, p = self.count, self.scale.size, self.p
        if n < ENOUGH or np.bincount(self.key[:n] // 2, minlength=self.A).min() < ENOUGH // 10 or p <= 2 * k:
            return
        low, high = np.transpose([(x.min(), x.max()) for x in map(self._coordinate, range(k))])
        box, W = Box(low, np.where(high > low, high - low, 1.0)), np.zeros((self.A, p, k + 1), dtype=np.float32)
        if all(self._predictor(a, box, scratch, W[a]) for a in range(self.A)):
            self.imagined = self._samples
            self._scene = self._imagine(box, W, np.random.default_rng(self.imagined))

    def _coordinate(self, i: int) -> Array:
        """Coordinate i of where transitions began, (n,)."""
        numbers = unpacked(self.ends[: self.count, :, i : i + 1])[:, 0, 0]
        return np.asarray(self.origin[i] + self.unit[0, i] * numbers)

    def _fitted_to(self, a: int, box: Box) -> Iterator[tuple[BoolArray, Array, Array]]:
        """Of the transitions with action a: whether they are left out, inputs (n, p) and outputs (n, k + 1)."""
        for chunk in Slim._chunks(self, 0, a):
            x = box.inside(chunk.begin)
            inputs = self.rows(chunk.begin)
            inputs[:, -x.shape[1] :] = x
            change = (chunk.after - chunk.begin) / box.width
            yield np.r_[chunk.at] % LEFT_OUT == 0, inputs, np.concatenate((change, chunk.reward[:, None]), axis=1)

    def _predictor(self, a: int, box: Box, scratch: Array, W: Array) -> bool:
        """Write the weights of change and reward after action a to W; False where they do not predict."""
        self._fit(a, box, scratch, W, everything=False)
        missed = moved = np.zeros(W.shape[1] - 1)
        for left_out, inputs, outputs in self._fitted_to(a, box):
            change = outputs[left_out, :-1]
            missed = missed + ((inputs[left_out] @ W[:, :-1] - change) ** 2).sum(axis=0)
            moved = moved + (change**2).sum(axis=0)
        if not (missed <= TOLERATED**2 * moved).all():
            return False
        self._fit(a, box, scratch, W, everything=True)
        return True

    def _fit(self, a: int, box: Box, scratch: Array, W: Array, *, everything: bool) -> None:
        """W = argmin |F W - outputs|^2 + RIDGE |W|^2, over all transitions with action a or without those left out."""
        scratch[:], products = 0.0, np.zeros(W.shape)
        for left_out, inputs, outputs in self._fitted_to(a, box):
            inputs[left_out & (not everything)] = 0.0
            symmetric.add_outer(scratch, inputs)
            products += inputs.T @ outputs
        symmetric.add_to_diagonal(scratch, RIDGE)
        symmetric.factor(scratch)
        W[:] = symmetric.solve(scratch, products)

    def _imagine(self, box: Box, W: Array, rng: np.random.Generator) -> Scene:
        n, m, k = self.count, self.states, self.scale.size
        factor = rng.integers(len(EXPONENTIAL), size=n, dtype=np.uint8)
        outside, weight = KINDS[rng.integers(len(KINDS))]
        x = np.empty((m, k), dtype=np.float16)
        for i in range(k):
            low, high = np.quantile(self._coordinate(i), (outside, 1 - outside))
            x[:, i] = rng.uniform((low - box.low[i]) / box.width[i], (high - box.low[i]) / box.width[i], m)
        x = x[~self._over(box, x)]
        change, reward = np.empty((self.A, *x.shape), dtype=np.float16), np.empty((self.A, len(x)), dtype=np.float16)
        over, paid = np.zeros(reward.shape, dtype=np.bool_), self.reward[:n]
        bounds = paid.min() * self.paid, paid.max() * self.paid
        for part in (slice(i, i + self.at_once) for i in range(0, len(x), self.at_once)):
            some = x[part].astype(np.float64)
            inputs = self.rows(box.outside(some))
            inputs[:, -k:] = some
            for a in range(self.A):
                output = inputs @ W[a]
                change[a, part], reward[a, part] = output[:, :-1], output[:, -1].clip(*bounds)
                over[a, part] = self._over(box, some + output[:, :-1])
        return Scene(box, x, change, reward, over, weight, factor)

    def _over(self, box: Box, x: Array) -> BoolArray:
        """Whether the nearest state that was seen is one in which an episode had ended, for (m, k) coordinates."""
        found, ended = np.zeros(len(x), dtype=np.bool_), np.flatnonzero(self.key[: self.count] % 2)
        for part in (slice(i, i + NEAR) for i in range(0, len(x), NEAR)):
            some = x[part].astype(np.float64)
            begun, over = np.full((2, len(some)), np.inf)
            for j in range(0, self.count, NEAR):
                seen = box.inside(self.between(slice(j, min(j + NEAR, self.count)))[0])
                np.minimum(begun, squared_distances(some, seen).min(axis=1), out=begun)
            for j in range(0, len(ended), NEAR):
                seen = box.inside(self.between(ended[j : j + NEAR])[1])
                np.minimum(over, squared_distances(some, seen).min(axis=1), out=over)
            found[part] = over < begun
        return found

    def _weighed(self, at: Any, times: Array) -> Array:
        return times if self._scene is None else times * EXPONENTIAL[self._scene.factor[at]]

    @property
    def _planned(self) -> int:
        return self.count + (0 if self._scene is None else self._scene.over.size)

    def _chunks(self, g: int, action: int | None = None) -> Iterator[Chunk]:
        yield from super()._chunks(g, action)
        if (scene := self._scene) is None:
            return
        for i in range(0, len(scene.x), self.at_once):
            part = slice(i, i + self.at_once)
            x = scene.x[part].astype(np.float64)
            for a in range(self.A) if action is None else (action,):
                first, after = self.count + a * len(scene.x) + i, scene.box.outside(x + scene.change[a, part])
                reward, times = scene.reward[a, part].astype(np.float64), np.full(len(x), scene.weight)
                at, actions = slice(first, first + len(x)), np.full(len(x), a)
                yield Chunk(at, actions, times, reward, scene.over[a, part], scene.box.outside(x), after)
