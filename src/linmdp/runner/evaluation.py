"""What a greedy policy earns, and how it settles ties."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from zlib import crc32

import numpy as np

from linmdp.envs.guard import Guard
from linmdp.results.stats import mean_interval
from linmdp.runner.loading import Policy
from linmdp.types import Array, BoolArray, State


@dataclass(frozen=True)
class Evaluation:
    """What a policy earned.

    Attributes
    ----------
    mean : of an episode
    interval : where the mean lies, with 95% confidence
    episodes : the return of each episode, (n,)
    """

    mean: float
    interval: tuple[float, float]
    episodes: Array

    def __repr__(self) -> str:
        low, high = self.interval
        return f"{self.mean:.4g} [{low:.4g}, {high:.4g}] an episode, {len(self.episodes)} episodes"


def settled(policy: Policy, h: int, state: State, mask: BoolArray | None = None) -> int:
    """One of the best actions, always the same in the same state, and over many states each as often as any other.

    An agent draws among equals; the first of them always would be another policy, and where Q is at its cap a bad one.
    """
    best = policy.best(h, state, mask)
    if len(best) == 1:
        return int(best[0])
    return int(best[crc32(np.append(np.asarray(state, dtype=np.float64), h).tobytes()) % len(best)])


def evaluated(guard: Guard, policy: Policy, seeds: Iterable[int]) -> Evaluation:
    """One episode for each seed."""
    returns = list[float]()
    for k, seed in enumerate(seeds):
        state, earned = guard.reset(k, seed), 0.0
        for h in range(guard.task.H):
            state, reward, terminated, truncated = guard.step(k, h, settled(policy, h, state, guard.mask))
            earned += reward
            if terminated or truncated:
                break
        returns.append(guard.original(earned))
    found = mean_interval(np.array(returns))
    return Evaluation(found.mean, (found.low, found.high), np.array(returns))
