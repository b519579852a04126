"""How figures are drawn and saved, and the figure of a comparison. Matplotlib is imported when one is drawn."""

from __future__ import annotations

import io
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from linmdp.io.files import write_atomic
from linmdp.report.curves import INTERVALS, Curve, evenly_spaced, mean_curve
from linmdp.report.line_styles import LineStyle, line_styles
from linmdp.report.style import RC, pyplot
from linmdp.results.stats import Interval
from linmdp.results.summary import Summary

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

MIB = 2**20


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


def rendered(figure: Figure, kind: str, **options: Any) -> bytes:
    """The figure as "png" or "svg"; the same figure gives the same bytes."""
    data = io.BytesIO()
    figure.savefig(data, format=kind, metadata={"Date": None} if kind == "svg" else None, **options)
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
    shown = evenly_spaced(points, INTERVALS)
    return mean_curve(s.curve[:, shown], 1 + np.linspace(0, s.episodes - 1, points)[shown])


def comparison_figure(summaries: Sequence[Summary], title: str, folder: Path) -> list[Path]:
    """Regret over episodes on a linear axis, and memory against regret: regret.png and regret.svg in `folder`."""
    with drawing(2, (11, 4.4), width_ratios=(1.6, 1)) as (figure, curves, tradeoff):
        styles = line_styles(s.agent for s in summaries)
        for index, s in enumerate(s for s in summaries if s.curve is not None):
            style = styles[s.agent]
            line = style.line(index)
            draw_curve(curves, regret_curve(s), {**line, "label": style.name}, band=s.seeds > 1)
            _draw_point(tradeoff, s, style, line)
        seeds = max(s.seeds for s in summaries)
        curves.set(title=title, xlabel="episode", ylabel="cumulative exact regret")
        curves.margins(x=0)
        curves.set_ylim(bottom=0)
        legend = f"mean and 95% interval, {seeds} seed{'s' * (seeds > 1)}"
        curves.legend(loc="upper left", title=legend, alignment="left")
        tradeoff.set(title="memory against regret", xlabel="peak memory of the agent, MiB", ylabel="regret at the end")
        tradeoff.set_ylim(bottom=0)
        tradeoff.margins(y=0.15)
        tradeoff.set_xlim(0, 1.15 * max(s.agent_bytes for s in summaries) / MIB or 1)
        figure.tight_layout()
        return save(figure, folder / "regret")


def _draw_point(axes: Axes, s: Summary, style: LineStyle, line: dict[str, Any]) -> None:
    assert s.regret is not None
    y, colour = s.regret.mean, style.light
    if style.baseline:
        axes.axhline(y, label=s.agent, **line)
        place: Any = {"xy": (0.99, y), "xycoords": ("axes fraction", "data"), "ha": "right", "va": "bottom"}
        axes.annotate(s.agent, color=colour, fontsize=9, **place)
    else:
        axes.errorbar(s.agent_bytes / MIB, y, yerr=error_bar(s.regret), fmt="o", ms=7, capsize=3, color=colour)
