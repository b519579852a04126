"""Curves with fewer points: which are kept in a store and on a screen, and what lies between them."""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache

import numpy as np

from linmdp.types import Array, IntArray, RunResult

POINTS = 2000
"""Points of a curve in a store, at most."""

SHOWN = 200
"""Points of a curve that are drawn, at most; more cannot be told apart on a screen."""


def spaced(count: int, points: int) -> IntArray:
    """At most `points` of the places 0, ..., count - 1, evenly spaced, the first and the last among them."""
    return np.unique(np.linspace(0, count - 1, min(count, points)).round().astype(np.int64))


@lru_cache(maxsize=256)
def thinned(episodes: int) -> IntArray:
    """The episodes whose curve points are stored; runs that are read by the thousand share them."""
    found = spaced(episodes, POINTS)
    found.flags.writeable = False
    return found


def curve_at(episodes: int) -> IntArray:
    """The episodes (from 0) of the points of a curve that are drawn: some of those that are stored."""
    stored = thinned(episodes)
    return np.asarray(stored[spaced(len(stored), SHOWN)], dtype=np.int64)


def returns(run: RunResult) -> Array:
    """The reward of an episode, (n,): a stored curve of a long run holds the sums of several episodes each."""
    each: Array = run.rewards * len(run.rewards) / run.episodes
    return each


def whole(stored: RunResult) -> RunResult:
    """A run from a store with curves of all its K episodes: straight lines where the store has no points."""
    every, at = np.arange(stored.episodes), thinned(stored.episodes)
    if len(at) == len(every):
        return stored
    regret = None if stored.regret is None else np.interp(every, at, stored.regret)
    rewards = np.diff(np.interp(every, at, np.cumsum(stored.rewards)), prepend=0.0)
    return replace(stored, regret=regret, rewards=rewards)
