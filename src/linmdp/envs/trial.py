"""Random play before anything is learned: how long episodes are, and what they pay."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from linmdp.envs.actions import Actions
from linmdp.errors import InvalidData, described, one_number

STEPS_PER_EPISODE = 100
"""Random play ends with the episode in which its steps reach so many times the episodes: some steps take long."""
LONGEST_H = 200
"""The longest episode of an environment that has no limit of its own, where H is not given."""


@dataclass(frozen=True, kw_only=True)
class Trial:
    """What was seen in some episodes of random play.

    Attributes
    ----------
    longest : steps of the longest episode
    cut : whether the environment itself cut that one off
    rewards : the different rewards, from the least to the largest
    """

    longest: int
    cut: bool
    rewards: tuple[float, ...]

    @property
    def H(self) -> int:
        """A length for episodes that have none: twice the longest seen, or where the environment cuts them off."""
        return min(self.longest if self.cut else 2 * self.longest, LONGEST_H)


def random_play(env: Any, actions: Actions, *, episodes: int, steps: int) -> Trial:
    """Always the same episodes of at most that many steps; a fault in them is named with its place."""
    rng, lengths, seen = np.random.default_rng(0), list[tuple[int, bool]](), set[float]()
    for k in range(episodes):
        env.reset(seed=k)
        cut = False
        for h in range(steps):
            try:
                _, reward, terminated, truncated, _ = env.step(actions(int(rng.integers(actions.A))))
                value = one_number(reward)
            except Exception as error:
                raise InvalidData(
                    f"Episode {k}, step {h} of random play must not fail. Got {described(error)}."
                ) from error
            if not math.isfinite(value):
                raise InvalidData(f"The reward of episode {k}, step {h} must be one finite number. Got {reward!r}.")
            seen.add(value)
            cut = bool(truncated)
            if terminated or truncated:
                break
        lengths.append((h + 1, cut))
        if sum(length for length, _ in lengths) >= STEPS_PER_EPISODE * episodes:
            break
    longest, cut = max(lengths)
    return Trial(longest=longest, cut=cut, rewards=tuple(sorted(seen)))
