"""How figures are drawn and saved. Matplotlib is imported when one is drawn."""

from __future__ import annotations

import io
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from linmdp.io.files import write_atomic
from linmdp.report.style import RC, pyplot
from linmdp.results.curves import spaced
from linmdp.results.stats import Interval, mean_intervals
from linmdp.results.summary import Summary
from linmdp.types import Array

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

MIB = 2**20
INTERVALS, KNOTS = 60, 30
"""Points of a curve that is drawn, and those where its interval is computed; between them it is a straight line."""


class Curve(NamedTuple):
    """A mean over seeds and its 95% interval at `episode`, each (points,)."""

    episode: Array
    mean: Array
    low: Array
    high: Array


def mean_curve(values: Array, episode: Array) -> Curve:
    """The mean of curves (seeds, points) that were taken after the episodes (points,)."""
    knots = spaced(len(episode), KNOTS)
    intervals = np.array(mean_intervals(values[:, knots]))
    mean = values.mean(axis=0)
    below, above = (np.interp(episode, episode[knots], intervals[:, i] - intervals[:, 0]) for i in (1, 2))
    return Curve(episode, mean, mean + below, mean + above)


@contextmanager
def drawing(panels: int, size: tuple[float, float], **options: Any) -> Iterator[tuple[Any, ...]]:
    """A figure of panels side by side, and their axes."""
    plt = pyplot()
    with plt.rc_context(RC), warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Glyph")  # the font may lack letters of a name
        figure, axes = plt.subplots(1, panels, figsize=size, squeeze=False, **options)
        try:
            yield figure, *axes[0]
        finally:
            plt.close(figure)


def rendered(figure: Figure, kind: str) -> bytes:
    """The figure as "png" or "svg"; the same figure gives the same bytes."""
    data = io.BytesIO()
    figure.savefig(data, format=kind, metadata={"Date": None} if kind == "svg" else None)
    return data.getvalue()


def save(figure: Figure, stem: Path) -> list[Path]:
    """Write the figure as STEM.png and STEM.svg."""
    paths = [stem.with_name(f"{stem.name}.{kind}") for kind in ("png", "svg")]
    for path in paths:
        write_atomic(path, rendered(figure, path.suffix[1:]))
    return paths


def draw_curve(axes: Axes, curve: Curve, line: dict[str, Any], *, band: bool = True) -> None:
    """A mean over the episodes and, as a band, its 95% interval."""
    axes.plot(curve.episode, curve.mean, **line)
    if band:
        axes.fill_between(curve.episode, curve.low, curve.high, color=line["color"], alpha=0.15, lw=0)


def error_bar(*values: Interval) -> Any:
    """Distances from the means to the ends of their intervals, (2, n)."""
    mean, low, high = np.array(values).T
    return np.maximum([mean - low, high - mean], 0)


def regret_curve(s: Summary) -> Curve:
    """The mean regret of an agent, at a few points; a stored curve has fewer than there were episodes."""
    assert s.curve is not None
    points = s.curve.shape[1]
    shown = spaced(points, INTERVALS)
    return mean_curve(s.curve[:, shown], 1 + np.linspace(0, s.episodes - 1, points)[shown])
