"""Curves over episodes: means over seeds with their intervals, at as many points as a figure can show."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from linmdp.results.curves import spaced
from linmdp.results.stats import mean_interval
from linmdp.types import Array

INTERVALS = 60
"""Points of a curve where its interval is computed; between them it is a straight line."""


class Curve(NamedTuple):
    """A mean over seeds and its 95% interval at `episode`, each (points,)."""

    episode: Array
    mean: Array
    low: Array
    high: Array


def mean_curve(values: Array, episode: Array) -> Curve:
    """The mean of curves (seeds, points) that were taken after the episodes (points,)."""
    knots = spaced(len(episode), INTERVALS)
    intervals = np.array([mean_interval(values[:, i]) for i in knots])
    mean = values.mean(axis=0)
    below, above = (np.interp(episode, episode[knots], intervals[:, i] - intervals[:, 0]) for i in (1, 2))
    return Curve(episode, mean, mean + below, mean + above)
