"""Merged transitions, and others that nobody has seen, where the next state can be predicted."""

from __future__ import annotations

from typing import Any, ClassVar, NamedTuple

import numpy as np

from linmdp.agents.storage.merged import Held, Merged
from linmdp.features.basis import squared_distances
from linmdp.types import Array, BoolArray

STATES = 1000
"""Imagined states, each with every action."""

KINDS = ((0.0, 0.1), (0.05, 10.0))
"""Two kinds of imagined transitions, of which one is drawn at each planning: the share of the visited states that is
left out at either end of each coordinate, and what a transition counts, in samples. All of the box and next to nothing
where there are real ones, or its middle and much."""

ENOUGH = 200
"""Transitions that must be there before any is imagined, and a tenth of them with each action."""

TOLERATED = 0.1
"""The error of prediction, at most, as a fraction of the change in a step."""

RIDGE = 1e-6

GROWTH = 0.03
"""Another plan is tried when there are so many more samples, as a fraction."""


class Scene(NamedTuple):
    """n real transitions in coordinates in which the states that were visited fill [0, 1]^k.

    x, y : (n, k) before and after; low, width : (k,)
    ended : (n,)
    """

    x: Array
    y: Array
    ended: BoolArray
    low: Array
    width: Array

    def over(self, states: Array) -> BoolArray:
        """Whether the nearest state that was seen is one in which an episode had ended, for (m, k) states."""
        seen = np.concatenate((self.x, self.y[self.ended]))
        nearest: BoolArray = squared_distances(states, seen).argmin(axis=1) >= len(self.x)
        return nearest


class Imagined(Merged):
    """`Merged` for phi(s, a) = psi(s) in the block of action a, planned with transitions that nobody has seen as well.

    An agent sees most of what it does best, and little else. A regression on that alone errs elsewhere, and the maximum
    over actions looks for just these errors; an agent that repeats one mistake learns nothing new. So the next state is
    predicted, by a regression of change and reward on psi(s) and s for each action. Where it is right about transitions
    that it was not fitted to, states are drawn evenly from the box that was visited, and what follows them is predicted
    and counts as well; the weights of real transitions are multiplied by random numbers of mean 1, so that another plan
    follows one that fails. Where the next state cannot be predicted, as with chance, a wall or a wrapped angle,
    nothing is imagined, and this is `Merged`. Nothing more is kept than there, but

    imagined : the number of samples at the last planning with imagined transitions, 0 before it and after one without
    """

    _counters: ClassVar = (*Merged._counters, "imagined")
    imagined = 0

    @property
    def restless(self) -> bool:
        return 0 < (1 + GROWTH) * self.imagined <= self._samples

    @property
    def _samples(self) -> int:
        return int(self.sums[0, : self.count].sum())

    def clear(self, runs: Any = ...) -> None:
        super().clear(runs)
        self.imagined = 0

    def _make_held(self, g: int) -> Held:
        self.imagined = 0
        held = self._seen(g)
        enough = min(part.stop - part.start for part in held.part) >= ENOUGH // 10
        if len(held.times) < ENOUGH or not enough:
            return held
        mine, _, ended = self._by_action(g)
        x, y = np.moveaxis(self.ends[mine].reshape(len(mine), 2, -1).astype(np.float64), 1, 0)
        low, width = x.min(axis=0), np.ptp(x, axis=0)
        width[width == 0] = 1.0
        scene = Scene((x - low) / width, (y - low) / width, ended, low, width)
        weights = self._predictors(held, scene)
        if weights is None:
            return held
        self.imagined = self._samples
        rng = np.random.default_rng(self.imagined)  # the same again from a saved agent
        held = self._seen(g, rng.exponential(size=len(mine)))
        return self._with_imagined(held, scene, weights, rng)

    def _predictors(self, held: Held, scene: Scene) -> list[Array] | None:
        """For each action the weights of change and reward, (p + k, k + 1); None where they do not predict."""
        inputs = np.concatenate((held.X, scene.x), axis=1)
        outputs = np.concatenate((scene.y - scene.x, held.reward[:, None]), axis=1)
        found = []
        for part in held.part:
            F, change = inputs[part], outputs[part]
            test = np.arange(len(F)) % 5 == 0
            error = F[test] @ ridge_weights(F[~test], change[~test]) - change[test]
            missed, moved = ((values[:, :-1] ** 2).mean(axis=0) for values in (error, change[test]))
            if not (missed <= TOLERATED**2 * moved).all():
                return None
            found.append(ridge_weights(F, change))
        return found

    def _with_imagined(self, held: Held, scene: Scene, weights: list[Array], rng: np.random.Generator) -> Held:
        outside, weight = KINDS[rng.integers(len(KINDS))]
        low, high = np.quantile(scene.x, (outside, 1 - outside), axis=0)
        x = rng.uniform(low, high, (STATES, len(low)))
        x = x[~scene.over(x)]
        X, m = self.rows(scene.low + scene.width * x), len(x)
        inputs, bounds = np.concatenate((X, x), axis=1), (held.reward.min(), held.reward.max())
        blocks, part, first = [], [], 0
        for real, W in zip(held.part, weights, strict=True):
            output = inputs @ W
            y, paid = x + output[:, :-1], output[:, -1].clip(*bounds)
            Y, unseen = self.rows(scene.low + scene.width * y), np.zeros(m, dtype=np.bool_)
            old = (held.X, held.Y, held.times, held.reward, held.ended, held.over)
            new = (X, Y, np.full(m, weight), paid, scene.over(y), unseen)
            blocks.append([np.concatenate((a[real], b)) for a, b in zip(old, new, strict=True)])
            part.append(slice(first, first + real.stop - real.start + m))
            first = part[-1].stop
        X, Y, times, reward, ended, over = (np.concatenate(parts) for parts in zip(*blocks, strict=True))
        return held._replace(X=X, Y=Y, times=times, reward=reward, ended=ended, over=over, part=part)


def ridge_weights(F: Array, outputs: Array) -> Array:
    """argmin |F W - outputs|^2 + RIDGE |W|^2."""
    weights: Array = np.linalg.solve(F.T @ F + RIDGE * np.eye(F.shape[1]), F.T @ outputs)
    return weights
