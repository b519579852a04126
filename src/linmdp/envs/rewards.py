"""What one reward may be, and what becomes of rewards outside that range: an error, or clipped to it."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

from linmdp.envs.trial import Trials
from linmdp.errors import check_choice, check_number, one_number

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


class Rewards(NamedTuple):
    """The range of what an agent is paid, how, and what of it was found by random play."""

    low: float
    high: float
    pay: Pay | None
    chosen: dict[str, float]


def reward_rule(id: str, rule: str, low: float | None, high: float | None, reported: Any, play: Trials) -> Rewards:
    """The range of one reward, and how rewards are brought into it.

    "error" has no `Pay`: the run loop refuses a reward outside. "auto" is "error" where both bounds are given, else
    "clip", so that no run ends with a reward that nobody could know of. `reported` is the environment's own range.
    """
    check_choice(id, "reward", rule, RULES)
    given = low is not None and high is not None
    chosen = dict[str, float]()
    known = _finite(reported)
    if known is None and not given:
        known = observed_range(play.rewards(FEW_EPISODES))
        chosen = {"reward_low": known[0]} if low is None else {}
        chosen |= {"reward_high": known[1]} if high is None else {}
    usual = known or (0.0, 1.0)
    low = check_number(id, "reward_low", usual[0] if low is None else low)
    high = check_number(id, "reward_high", usual[1] if high is None else high, low=low)
    strict = rule == "error" or (rule == "auto" and given)
    return Rewards(low, high, None if strict else Pay(low, high, warns=rule == "auto"), chosen)


def is_guessed(id: str, rule: str, low: float | None, high: float | None, reported: Any) -> bool:
    """Whether the range of one reward is taken from random play because nobody says what it is."""
    check_choice(id, "reward", rule, RULES)
    for name, bound in (("reward_low", low), ("reward_high", high)):
        if bound is not None:
            check_number(id, name, bound)
    return (low is None or high is None) and _finite(reported) is None


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
