"""LSVI over groups of cells, transcribed from docs/cells.md: slow, plain, the judge of the fast code."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from linmdp.types import Array, Task


class ReferenceStagewise:
    """LSVI over groups of cells, as docs/cells.md has it: one discounted Q, fitted group by group, with dictionaries.

    Weights are those of phi with entries 1 / sqrt(2 G): w[g, cell] of a cell, w[g, cell, class] with an action.
    """

    def __init__(self, task: Task, *, beta: float, lam: float, discount: float, M: int) -> None:
        self.task, self.beta, self.lam, self.discount, self.M = task, beta, lam, discount, M
        self.map: Any = task.features
        self.samples: list[tuple[list[int], int, float, list[int] | None]] = []
        self.w: dict[tuple[int, ...], float] = {}
        self.cap = max(task.reward_range[1], 0.0) * sum(discount**h for h in range(task.H))

    def visits(self, key: tuple[int, ...]) -> int:
        g, cell, *action = key
        return sum(here[g] == cell and action in ([], [c]) for here, c, _, _ in self.samples)

    def mean(self, cells: list[int], c: int) -> float:
        scale = 1 / math.sqrt(2 * len(cells))
        return scale * sum(self.w.get((g, cell), 0.0) + self.w.get((g, cell, c), 0.0) for g, cell in enumerate(cells))

    def q(self, cells: list[int], c: int) -> float:
        scale, finest = 1 / math.sqrt(2 * len(cells)), (len(cells) - 1, cells[-1], c)
        form = scale**2 / (scale**2 * self.visits(finest) + self.lam)
        return min(self.mean(cells, c) + self.beta * math.sqrt(form), self.cap)

    def V(self, cells: list[int]) -> float:
        return max(self.q(cells, c) for c in range(max(self.map.classes) + 1))

    def target(self, i: int) -> float:
        """r + discount z of sample i: z is V, and where the next action was greedy most of what came instead of it."""
        _, _, reward, there = self.samples[i]
        if there is None:
            return reward
        z = self.V(there)
        if i + 1 < len(self.samples):
            here, c, _, _ = self.samples[i + 1]
            if here == there and self.q(here, c) >= z - 1e-9 * max(1.0, self.cap):
                z += 0.9 * (self.target(i + 1) - min(self.mean(here, c), self.cap))
        return reward + self.discount * z

    def fit(self, y: list[float]) -> dict[tuple[int, ...], float]:
        left, w = list(y), dict[tuple[int, ...], float]()
        scale, G = 1 / math.sqrt(2 * self.map.G), self.map.G
        for g in range(G):
            for with_action in (False, True):
                keys = [(g, here[g], c) if with_action else (g, here[g]) for here, c, _, _ in self.samples]
                for key in set(keys):
                    mine = [left[i] for i, other in enumerate(keys) if other == key]
                    w[key] = scale * sum(mine) / (scale**2 * len(mine) + self.lam)
                left = [value - scale * w[key] for value, key in zip(left, keys, strict=True)]
        return w

    def begin_episode(self) -> None:
        """At most 10 backups, until no weight moves; the weights that moved least if they begin to run away."""
        best, least, tolerance = self.w, math.inf, 1e-4 * max(1.0, self.cap)
        for _ in range(10):
            new = self.fit([self.target(i) for i in range(len(self.samples))])
            moved = max((abs(new.get(k, 0.0) - self.w.get(k, 0.0)) for k in {**new, **self.w}), default=0.0)
            if moved > 10 * least:
                self.w = best
                return
            if moved < least:
                best, least = new, moved
            self.w = new
            if moved <= tolerance:
                return

    def q_values(self, h: int, state: Any) -> Array:
        cells = self.map.active(np.asarray(state)[None])[0].tolist()
        return np.array([self.q(cells, int(c)) for c in self.map.classes])

    def observe(self, h: int, state: Any, action: int, reward: float, next_state: Any, terminated: bool) -> None:
        here, there = (self.map.active(np.asarray(s)[None])[0].tolist() for s in (state, next_state))
        over = terminated or h == self.task.H - 1
        self.samples.append((here, int(self.map.classes[action]), reward, None if over else there))
        self.samples = self.samples[-self.M :]
