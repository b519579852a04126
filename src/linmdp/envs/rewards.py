"""What one reward may be, what becomes of one outside that range, and the random play that tells where nobody does."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from linmdp.envs.guard import Guard
from linmdp.errors import check_choice, check_number, one_number

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


RULES = ("auto", "error", "clip")
FEW_EPISODES = 20
"""Episodes in which the range of rewards is looked for where nothing is known of it."""
FEW_VALUES = 10
"""Rewards that take more different values than these are taken for any number in their range, and beyond."""
ROUNDING = 1e-9


class Pay:
    """What an agent is paid for a reward: clipped to [low, high].

    What is no finite number is left as it is, for the run loop to refuse.

    Attributes
    ----------
    low, high : the range of what an agent is paid
    warns : whether a user who hears that a reward was clipped would be surprised
    earned : the sum of an episode's rewards as they were
    clipped : whether a reward was outside the range
    """

    def __init__(self, low: float, high: float, *, warns: bool) -> None:
        self.low, self.high, self.warns = low, high, warns
        self.earned, self.clipped = 0.0, False

    def __call__(self, reward: Any) -> Any:
        """`reward` as an agent sees it."""
        try:
            value = one_number(reward)
        except (TypeError, ValueError):
            return reward
        if not math.isfinite(value):
            return reward
        self.earned += value
        if self.low <= value <= self.high:
            return value
        self.clipped |= not self.low - ROUNDING <= value <= self.high + ROUNDING
        return min(max(value, self.low), self.high)


class RewardRule:
    """The range of one reward, and what becomes of one outside.

    "error": the run loop refuses it. "clip": it is brought into the range. "auto" is "error" where both bounds are
    given, else "clip", so that no run ends with a reward that nobody could know of.

    Attributes
    ----------
    known : the range, with the environment's own for a bound that is not given; None where it has to be guessed
    """

    def __init__(self, id: str, rule: str, low: float | None, high: float | None, reported: Any) -> None:
        check_choice(id, "reward", rule, RULES)
        self.id, self.given = id, {"reward_low": low, "reward_high": high}
        for name, bound in self.given.items():
            if bound is not None:
                check_number(id, name, bound)
        given = low is not None and high is not None
        self.strict, self.warns = rule == "error" or (rule == "auto" and given), rule == "auto"
        self.known = (0.0, 1.0) if given else _finite(reported)

    def found(self, play: Trials) -> tuple[float, float, dict[str, float]]:
        """The range, and what of it was found by random play."""
        usual = self.known or observed_range(play.rewards(FEW_EPISODES))
        names = dict(zip(self.given, usual, strict=True))
        chosen = {} if self.known else {name: value for name, value in names.items() if self.given[name] is None}
        low, high = (names[name] if bound is None else bound for name, bound in self.given.items())
        low = check_number(self.id, "reward_low", low)
        return low, check_number(self.id, "reward_high", high, low=low), chosen


def _finite(reported: Any) -> tuple[float, float] | None:
    """The range that an environment reports, with 0 in it, if it is one."""
    try:
        low, high = (float(bound) for bound in reported)
    except (TypeError, ValueError):
        return None
    return (min(low, 0.0), max(high, 0.0)) if math.isfinite(low) and math.isfinite(high) and low < high else None


def observed_range(rewards: tuple[float, ...]) -> tuple[float, float]:
    """A range for all rewards, from those seen in random play, in order.

    It contains 0. Rewards of many different values will take others: the bounds are then rounded outwards, to 1, 2 or
    5 times a power of ten. Where nothing but 0 was paid, something is hidden, and [0, 1] is the custom.
    """
    low, high = min(rewards[0], 0.0), max(rewards[-1], 0.0)
    if low == high:
        return 0.0, 1.0
    return (-_rounded(-low), _rounded(high)) if len(rewards) > FEW_VALUES else (low, high)


def _rounded(bound: float) -> float:
    """The next of 1, 2 and 5 times a power of ten; 0 stays 0."""
    if bound <= 0:
        return 0.0
    power = 10.0 ** math.floor(math.log10(bound))
    return power * next(step for step in (1, 2, 5, 10) if bound <= step * power * (1 + ROUNDING))
