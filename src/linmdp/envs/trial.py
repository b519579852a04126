"""Random play before anything is learned: how long episodes are, and what they pay."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from linmdp.envs.guard import Guard

STEPS_PER_EPISODE = 100
"""Random play ends with the episode in which its steps reach so many times the episodes: some steps take long."""
LONGEST_H = 200
"""The longest episode of an environment that has no limit of its own, where H is not given."""


class Episode(NamedTuple):
    """One of them: its steps, whether the environment itself cut it off, and its different rewards."""

    length: int
    cut: bool
    rewards: frozenset[float]


class Trials:
    """Always the same episodes of random play, of at most H steps; each is played once, however often it is asked for.

    Attributes
    ----------
    steps : how many have been played
    """

    def __init__(self, guard: Guard, H: int) -> None:
        self._guard, self._H, self._rng, self._episodes = guard, H, np.random.default_rng(0), list[Episode]()

    @property
    def steps(self) -> int:
        return sum(episode.length for episode in self._episodes)

    def H(self, episodes: int) -> int:
        """A length for episodes that have none: twice the longest seen, or where the environment cuts them off."""
        longest, cut, _ = max(self._seen(episodes), key=lambda episode: episode[:2])
        return min(longest if cut else 2 * longest, LONGEST_H)

    def rewards(self, episodes: int) -> tuple[float, ...]:
        """The different rewards that were seen, from the least to the largest."""
        return tuple(sorted(frozenset[float]().union(*(episode.rewards for episode in self._seen(episodes)))))

    def _seen(self, episodes: int) -> list[Episode]:
        """So many of them, or fewer where they are long."""
        seen, total = list[Episode](), 0
        while len(seen) < episodes and total < STEPS_PER_EPISODE * episodes:
            if len(seen) == len(self._episodes):
                self._episodes.append(self._played(len(seen)))
            seen.append(self._episodes[len(seen)])
            total += seen[-1].length
        return seen

    def _played(self, k: int) -> Episode:
        steps = list(self._guard.random_episode(k, self._rng, H=self._H, seed=k))
        return Episode(len(steps), steps[-1].truncated, frozenset(step.reward for step in steps))
