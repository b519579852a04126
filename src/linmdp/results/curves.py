"""Curves with fewer points: which are kept in a store and on a screen, and what lies between them."""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache

import numpy as np

from linmdp.types import Array, IntArray, RunResult

POINTS = 2000
"""Points of a curve in a store, at most."""

LONG = 100_000
"""Episodes from which on a run keeps its curves at `POINTS` points alone, as a store does."""

SHOWN = 200
"""Points of a curve that are drawn, at most; more cannot be told apart on a screen."""


@lru_cache(maxsize=256)
def spaced(count: int, points: int) -> IntArray:
    """At most `points` of the places 0, ..., count - 1, evenly spaced, the first and the last among them."""
    found = np.unique(np.linspace(0, count - 1, min(count, points)).round().astype(np.int64))
    found.flags.writeable = False  # runs that are read by the thousand share it
    return found


def thinned(episodes: int) -> IntArray:
    """The episodes whose curve points are stored."""
    return spaced(episodes, POINTS)


def is_long(episodes: int) -> bool:
    """Whether the curves of a run have the points of `thinned` from the beginning, not those of every episode."""
    return episodes > LONG


def curve_at(episodes: int) -> IntArray:
    """The episodes (from 0) of the points of a curve that are drawn: some of those that are stored."""
    stored = thinned(episodes)
    return np.asarray(stored[spaced(len(stored), SHOWN)], dtype=np.int64)


def returns(run: RunResult) -> Array:
    """The reward of an episode, (n,): a stored curve of a long run holds the sums of several episodes each."""
    each: Array = run.rewards / spans(len(run.rewards), run.episodes)
    return each


@lru_cache(maxsize=256)
def spans(points: int, episodes: int) -> Array:
    """How many episodes each of the points of a curve stands for, (points,): of each episode, as stored, or drawn."""
    if points == episodes:
        return np.broadcast_to(1.0, points)
    at = curve_at(episodes) if points == SHOWN else spaced(episodes, points)
    if len(at) != points or points == 1:
        return np.full(points, episodes / points)
    return np.diff(at, prepend=-1).astype(np.float64)


def last_tenth(values: Array) -> Array:
    """Of values in the order of the episodes."""
    return values[-max(1, len(values) // 10) :]


def late_return(run: RunResult) -> float:
    """The mean reward of the episodes in the last tenth of the points."""
    return float(last_tenth(run.rewards).sum() / last_tenth(spans(len(run.rewards), run.episodes)).sum())


def whole(stored: RunResult) -> RunResult:
    """A run from a store with curves of all its K episodes: straight lines where the store has no points.

    One of more than `LONG` episodes never had others.
    """
    every, at = np.arange(stored.episodes), thinned(stored.episodes)
    if len(at) == len(every) or is_long(stored.episodes):
        return stored
    regret = None if stored.regret is None else np.interp(every, at, stored.regret)
    rewards = np.diff(np.interp(every, at, np.cumsum(stored.rewards)), prepend=0.0)
    return replace(stored, regret=regret, rewards=rewards)
