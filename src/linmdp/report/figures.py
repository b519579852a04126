"""The figures of a report on paper: SVG and PNG, on a light ground. Matplotlib is imported when one is drawn."""

from __future__ import annotations

import io
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from linmdp.report.looks import MARKERS, Look, width_of
from linmdp.report.sections import MEASURES, Growth, Section
from linmdp.report.style import RC, pyplot

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Looks = dict[str, Look]
UNITS = (("GiB", 2**30), ("MiB", 2**20), ("KiB", 2**10), ("bytes", 1))
WIDE = 20
"""Memory that differs by more than this factor is drawn on a logarithmic axis."""
LONGEST = 56
YS = {"regret": "cumulative exact regret", "reward": "cumulative reward"}
ENDS = {"regret": "regret at the end", "reward": "reward per episode"}


class Drawn(NamedTuple):
    """A figure in both formats."""

    svg: bytes
    png: bytes


def memory_unit(largest: float) -> tuple[str, int]:
    """The unit for an axis that goes up to `largest` bytes, and its bytes."""
    return next(((name, size) for name, size in UNITS if largest >= size), UNITS[-1])


def memory_is_wide(amounts: Sequence[float]) -> bool:
    """Does memory need a logarithmic axis?"""
    return len(amounts) > 1 and min(amounts) > 0 and max(amounts) > WIDE * min(amounts)


def curves_figure(section: Section, looks: Looks) -> Drawn:
    """Cumulative regret (or reward) over episodes, on a linear axis."""
    with _drawing(len(section.curves)) as (figure, axes):
        for index, (agent, curve) in enumerate(section.curves.items()):
            look = looks[agent]
            axes.plot(curve.episode, curve.mean, label=_label(look.name), **_line(look, index))
            if section.seeds > 1:
                axes.fill_between(curve.episode, curve.low, curve.high, color=look.light, alpha=0.15, lw=0)
        axes.set(title=_title(section), xlabel="episode", ylabel=YS[section.measure])
        axes.margins(x=0)
        axes.set_ylim(bottom=min(0.0, axes.get_ylim()[0]) if section.measure == "reward" else 0)
        _legend(axes, f"mean and 95% interval,\n{section.seeds} seed{'s' * (section.seeds > 1)}")
        return _saved(figure)


def tradeoff_figure(section: Section, looks: Looks) -> Drawn:
    """Peak memory against regret at the end, with the Pareto front; policies that do not learn are lines."""
    unit, size = memory_unit(max((s.agent_bytes for s in section.learners), default=1))
    with _drawing(len(section.summaries)) as (figure, axes):
        front = section.front
        if front:
            xs, ys = [s.agent_bytes / size for s in front], [section.level(s).mean for s in front]
            axes.plot(xs, ys, drawstyle="steps-post", color="#999999", lw=1.2, zorder=1, label="Pareto front")
        best = {s.agent for s in front}
        for s in section.summaries:
            look, level = looks[s.agent], section.level(s)
            if look.baseline:
                axes.axhline(level.mean, label=_label(look.name), **(_line(look, 0) | {"lw": 1.4}))
                continue
            span = [[level.mean - level.low], [level.high - level.mean]]
            fill = look.light if s.agent in best else "white"
            at = (s.agent_bytes / size, level.mean)
            axes.errorbar(*at, yerr=np.maximum(span, 0), fmt="none", capsize=3, ecolor=look.light)
            point = {"marker": MARKERS[look.marker][0], "ms": 8, "mfc": fill, "mec": look.light, "mew": 1.8}
            axes.plot(*at, linestyle="none", label=_label(look.name), **point)
        wide = memory_is_wide([s.agent_bytes for s in section.learners])
        axes.set(title=_title(section), xlabel=f"peak memory of the agent, {unit}", ylabel=ENDS[section.measure])
        if wide:
            _log_x(axes)
        else:
            axes.set_xlim(0, 1.1 * max((s.agent_bytes for s in section.learners), default=1) / size or 1)
        if section.measure == "regret":
            axes.set_ylim(bottom=0)
        _legend(axes, "filled: on the front")
        return _saved(figure)


def growth_figure(env: str, grown: Sequence[Growth], looks: Looks) -> Drawn:
    """Regret, memory and CPU seconds over K, one panel each, on linear axes."""
    amounts = [i.mean for g in grown for i in g.values.get("memory", [])]
    unit, size = memory_unit(max(amounts, default=1))
    with _drawing(len(grown), panels=len(MEASURES)) as (figure, *panels):
        for axes, measure in zip(panels, MEASURES, strict=True):
            scale = size if measure == "memory" else 1
            for index, g in enumerate(grown):
                if measure not in g.values:
                    continue
                look, values = looks[g.agent], np.array(g.values[measure]) / scale
                span = np.maximum([values[:, 0] - values[:, 1], values[:, 2] - values[:, 0]], 0)
                line = _line(look, index) | {"marker": MARKERS[look.marker][0], "ms": 5}
                axes.errorbar(g.sizes, values[:, 0], yerr=span, capsize=2, label=_label(look.name), **line)
            axes.set(title=f"{measure}, {unit}" if measure == "memory" else measure, xlabel="K, episodes")
            axes.set_xlim(left=0)
            axes.set_ylim(bottom=0)
        figure.tight_layout(rect=(0, 0, 1, 0.95))
        figure.suptitle(_label(env), x=0.01, ha="left", fontweight="bold", fontsize=11)
        _legend(max(panels, key=lambda a: len(a.get_legend_handles_labels()[1])), "mean and 95% interval", panels[-1])
        return _saved(figure)


@contextmanager
def _drawing(entries: int, panels: int = 1) -> Iterator[tuple[Any, ...]]:
    """A figure as high as its legend of `entries` needs, and its axes."""
    plt = pyplot()

    with plt.rc_context(RC), warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Glyph")  # a name may hold letters that the font has not
        height = max(3.9, 0.9 + 0.2 * entries)
        figure, axes = plt.subplots(1, panels, figsize=(6.2 if panels == 1 else 11.5, height), squeeze=False)
        try:
            yield figure, *axes[0]
        finally:
            plt.close(figure)


def _saved(figure: Figure) -> Drawn:
    files = []
    for kind in ("svg", "png"):
        data = io.BytesIO()
        figure.savefig(data, format=kind, bbox_inches="tight", metadata={"Date": None} if kind == "svg" else None)
        files.append(data.getvalue())
    return Drawn(*files)


def _legend(axes: Axes, title: str, beside: Axes | None = None) -> None:
    """To the right of everything, where it can hide no curve."""
    handles, labels = axes.get_legend_handles_labels()
    where: dict[str, Any] = {"loc": "upper left", "bbox_to_anchor": (1.02, 1.02), "alignment": "left"}
    (beside or axes).legend(handles, labels, title=title, fontsize=8.5, title_fontsize=8.5, **where)


def _log_x(axes: Axes) -> None:
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    plain: Callable[[float, int], str] = lambda value, _: f"{value:g}"  # noqa: E731  # a formatter is a function
    axes.set_xscale("log")
    axes.xaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    axes.xaxis.set_major_formatter(FuncFormatter(plain))
    axes.xaxis.set_minor_formatter(NullFormatter())
    axes.margins(x=0.1)


def _line(look: Look, index: int) -> dict[str, Any]:
    style = (0, look.dashes) if look.dashes else "-"
    return {"color": look.light, "linestyle": style, "lw": 1.6 if look.baseline else width_of(index)}


def _title(section: Section) -> str:
    return _label(f"{section.env}: {section.episodes:,} episodes")


def _label(text: str) -> str:
    """Text as it is: a dollar starts no formula, a leading underscore does not hide it, and it has an end."""
    text = text if len(text) <= LONGEST else text[: LONGEST - 1] + "…"
    return text.replace("$", r"\$") if not text.startswith("_") else " " + text.replace("$", r"\$")
