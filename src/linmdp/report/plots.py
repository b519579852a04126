"""Figures of a comparison. Matplotlib is imported here and only when a figure is drawn."""

from __future__ import annotations

import io
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from linmdp.io.files import write_atomic
from linmdp.report.style import BASELINES, PALETTE, RC, pyplot, short_name
from linmdp.results.stats import mean_interval
from linmdp.results.summary import Summary

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

MIB = 2**20
POINTS = 60
"""Points of a curve where its interval is computed; a curve of exact regret is smooth."""


def comparison_figure(summaries: Sequence[Summary], title: str, folder: Path) -> list[Path]:
    """Regret over episodes on a linear axis, and memory against regret: regret.png and regret.svg in `folder`."""
    plt = pyplot()

    with plt.rc_context(RC):
        figure, (curves, trade) = plt.subplots(1, 2, figsize=(11, 4.4), width_ratios=(1.6, 1))
        looks = _looks(summaries)
        for s in summaries:
            if s.curve is not None and s.regret is not None:
                draw_curve(curves, s, {**looks[s.agent], "label": short_name(s.agent)})
                _draw_point(trade, s, looks[s.agent])
        seeds = max(s.seeds for s in summaries)
        curves.set(title=title, xlabel="episode", ylabel="cumulative exact regret")
        curves.margins(x=0)
        curves.set_ylim(bottom=0)
        curves.legend(
            loc="upper left",
            title=f"mean and 95% interval, {seeds} seed{'s' * (seeds > 1)}",
            alignment="left",
        )
        trade.set(title="memory against regret", xlabel="peak memory of the agent, MiB", ylabel="regret at the end")
        trade.set_ylim(bottom=0)
        trade.margins(y=0.15)
        trade.set_xlim(0, 1.15 * max(s.agent_bytes for s in summaries) / MIB or 1)
        figure.tight_layout()
        paths = save(figure, folder / "regret")
        plt.close(figure)
    return paths


def save(figure: Figure, stem: Path) -> list[Path]:
    """The figure as STEM.png and STEM.svg; the same figure gives the same bytes."""
    paths = []
    for kind in ("png", "svg"):
        data = io.BytesIO()
        figure.savefig(data, format=kind, metadata={"Date": None} if kind == "svg" else None)
        paths.append(stem.with_name(f"{stem.name}.{kind}"))
        write_atomic(paths[-1], data.getvalue())
    return paths


def _looks(summaries: Sequence[Summary]) -> dict[str, dict[str, Any]]:
    looks: dict[str, dict[str, Any]] = {}
    colours = iter(PALETTE * (1 + len(summaries) // len(PALETTE)))
    for s in summaries:
        colour, dashes = BASELINES.get(s.agent.partition(":")[0], ("", "-"))
        # each line thinner than the one under it: curves that coincide are all seen
        width = 1.6 if colour else max(1.2, 3.4 - 0.7 * len(looks))
        looks[s.agent] = {"color": colour or next(colours), "linestyle": dashes, "lw": width}
    return looks


def draw_curve(axes: Axes, s: Summary, look: dict[str, Any]) -> None:
    """The mean regret over the episodes, and its 95% interval as a band."""
    assert s.curve is not None
    points = np.unique(np.linspace(0, s.curve.shape[1] - 1, POINTS).astype(int))
    intervals = [mean_interval(s.curve[:, i]) for i in points]
    at = np.linspace(0, s.episodes - 1, s.curve.shape[1])[points]  # a stored curve may be thinned
    axes.plot(at + 1, [i.mean for i in intervals], **look)
    if s.seeds > 1:
        low, high = [i.low for i in intervals], [i.high for i in intervals]
        axes.fill_between(at + 1, low, high, color=look["color"], alpha=0.15, lw=0)


def _draw_point(axes: Axes, s: Summary, look: dict[str, Any]) -> None:
    assert s.regret is not None
    if s.agent.partition(":")[0] in BASELINES:
        axes.axhline(s.regret.mean, label=s.agent, **look)
        axes.annotate(
            s.agent,
            (0.99, s.regret.mean),
            xycoords=("axes fraction", "data"),
            ha="right",
            va="bottom",
            color=look["color"],
            fontsize=9,
        )
        return
    span = [[s.regret.mean - s.regret.low], [s.regret.high - s.regret.mean]]
    axes.errorbar(s.agent_bytes / MIB, s.regret.mean, yerr=span, fmt="o", ms=7, capsize=3, color=look["color"])
