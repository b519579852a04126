"""Bandits with contexts: what an action pays depends on what is seen before, and nothing that is done matters later."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from gymnasium import spaces

from linmdp.envs.general.base import Instance, family
from linmdp.types import Array


class Bandit(Instance):
    """Contexts from `draw`, and means (A,) of a context from `mean`."""

    def __init__(
        self,
        rng: np.random.Generator,
        A: int,
        space: spaces.Space[Any],
        draw: Callable[[np.random.Generator], Any],
        mean: Callable[[Any], Array],
    ) -> None:
        self.draw, self.mean = draw, mean
        some = np.array([mean(draw(rng)) for _ in range(200)])
        self.coins = bool(rng.random() < 0.4)
        self.low, self.unit = float(some.min()), float(some.max() - some.min())
        self.noise = rng.uniform(0.05, 0.5)
        self.scale, self.shift = float(rng.choice([0.1, 1.0, 20.0])), float(rng.choice([0.0, 0.0, -1.0]))
        super().__init__(H=int(rng.integers(1, 5)), A=A, space=space, ends=bool(rng.random() < 0.5))
        self.context: Any = None

    def paid(self, context: Any) -> Array:
        """The mean rewards of all actions, between 0 and 1 before they are scaled."""
        mean: Array = np.clip((self.mean(context) - self.low) / self.unit, 0, 1)
        return self.scale * (mean + self.shift)

    def begin(self) -> None:
        self.context = self.draw(self.np_random)

    def move(self, action: int) -> tuple[float, bool]:
        mean = float(self.paid(self.context)[action])
        self.context = self.draw(self.np_random)
        if self.coins:
            won = self.np_random.random() < mean / self.scale - self.shift
            return self.scale * (float(won) + self.shift), False
        return mean + self.scale * self.noise * self.np_random.standard_normal(), False

    def show(self) -> Any:
        return self.context


@family("bandits", "made", H=4, episodes={"quick": 600, "full": 1500})
def bandits(rng: np.random.Generator) -> Bandit:
    """Bandits with contexts: what an action pays depends on what is seen before, and nothing that is done matters
    later.

    An episode is one to four steps, each with a context of its own. In a third of the instances the context is one of a
    few numbers, and each number and action has a mean of its own, paid with noise or as 0 or 1. In a third it is a
    vector and the mean of an action is linear in it. In a third the mean is a sum of a few bumps and waves of the
    vector, or of its first two coordinates, so that the others tell nothing.
    """
    A, kind = int(rng.integers(2, 7)), rng.integers(3)
    if kind == 0:
        n = int(rng.integers(3, 16))
        means, chances = rng.random((n, A)), rng.dirichlet(np.full(n, 3.0))
        edges = chances.cumsum()[:-1]
        return Bandit(
            rng, A, spaces.Discrete(n), lambda r: int(edges.searchsorted(r.random())), lambda context: means[context]
        )
    k = int(rng.integers(2, 7))
    units, middle = 10 ** rng.uniform(-1, 2, k), rng.normal(0, 2, k)
    space = spaces.Box(
        (units * (middle - 4)).astype(np.float32), (units * (middle + 4)).astype(np.float32), dtype=np.float32
    )

    def draw(r: np.random.Generator) -> Array:
        seen: Array = (units * (middle + np.clip(r.standard_normal(k), -4, 4))).astype(np.float32)
        return np.clip(seen, space.low, space.high)

    if kind == 1:
        slopes, level = rng.normal(0, 1, (A, k)), rng.normal(0, 1, A)
        return Bandit(rng, A, space, draw, lambda x: slopes @ (x / units - middle) + level)
    told = 2 if rng.random() < 0.5 else k
    centres, waves = rng.normal(0, 1, (A, 3, told)), rng.normal(0, 1, (A, told))
    heights, phases = rng.normal(0, 1, (A, 3)), rng.uniform(0, 2 * np.pi, A)

    def bumps(x: Array) -> Array:
        z = (x / units - middle)[:told]
        near = np.exp(-((centres - z) ** 2).sum(axis=2) / (1 + told / 2))
        mean: Array = (heights * near).sum(axis=1) + np.sin(waves @ z + phases) / 2
        return mean

    return Bandit(rng, A, space, draw, bumps)
