"""The figures of a comparison and of a report: SVG and PNG, on a light background."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from linmdp.io.units import memory_unit
from linmdp.report.plots import draw_curve, drawing, error_bar, regret_curve, rendered, save, spread_labels
from linmdp.report.section_data import MEASURES, Growth, Section
from linmdp.report.style import MARKERS, LineStyle, line_styles
from linmdp.results.summary import Summary

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Styles = dict[str, LineStyle]
WIDE = 20
"""Memory that differs by more than this factor is drawn on a logarithmic axis."""
LONGEST = 56
MOST_LABELS = 8
"""Agents whose points have their names beside them; more go into a legend."""
YS = {"regret": "cumulative exact regret", "reward": "cumulative reward"}
RETURN = "return of an episode"
ENDS = {"regret": "regret at the end", "reward": "reward per episode"}


class Drawn(NamedTuple):
    """A figure in both formats."""

    svg: bytes
    png: bytes


def memory_is_wide(amounts: Sequence[float]) -> bool:
    """Whether memory needs a logarithmic axis."""
    return len(amounts) > 1 and min(amounts) > 0 and max(amounts) > WIDE * min(amounts)


def comparison_figure(summaries: Sequence[Summary], title: str, folder: Path) -> list[Path]:
    """Regret over episodes on a linear axis, and memory against regret: regret.png and regret.svg in `folder`."""
    shown = [s for s in summaries if s.curve is not None]
    curves_of = {s.agent: regret_curve(s) for s in shown}
    env, episodes = shown[0].env, shown[0].episodes
    section = Section(env=env, episodes=episodes, measure="regret", summaries=shown, curves=curves_of)
    styles = line_styles(s.agent for s in summaries)
    with drawing(2, (11, 4.4), width_ratios=(1.6, 1)) as (figure, curves, tradeoff):
        _draw_curves(curves, section, styles)
        _draw_tradeoff(tradeoff, section, styles)
        curves.set_title(title)
        curves.legend(loc="upper left", title=_interval_note(section), alignment="left")
        tradeoff.set_title("memory against regret (filled: Pareto front)")
        figure.tight_layout()
        return save(figure, folder / "regret")


def curves_figure(section: Section, styles: Styles) -> Drawn:
    """Cumulative regret (or reward) over episodes, on a linear axis."""
    with drawing(1, (6.2, _height(len(section.curves)))) as (figure, axes):
        _draw_curves(axes, section, styles)
        axes.set_title(_title(section))
        _legend(axes, _interval_note(section).replace(", ", ",\n"))
        return _drawn(figure)


def returns_figure(section: Section, styles: Styles) -> Drawn:
    """The reward of an episode, over episodes."""
    with drawing(1, (6.2, _height(len(section.returns)))) as (figure, axes):
        for index, (agent, curve) in enumerate(section.returns.items()):
            line = styles[agent].line(index) | {"label": _label(styles[agent].name)}
            draw_curve(axes, curve, line, band=section.seeds > 1)
        axes.set(xlabel="episode", ylabel=RETURN, title=_title(section))
        axes.margins(x=0)
        _legend(axes, _interval_note(section).replace(", ", ",\n"))
        return _drawn(figure)


def tradeoff_figure(section: Section, styles: Styles) -> Drawn:
    """Peak memory against regret at the end, with the Pareto front; policies that do not learn are lines."""
    labelled = len(section.learners) <= MOST_LABELS
    size = (8.2, 4.8) if labelled else (6.2, _height(len(section.summaries)))
    with drawing(1, size) as (figure, axes):
        _draw_tradeoff(axes, section, styles)
        axes.set_title(_title(section))
        if labelled:
            _label_points(axes, section, styles)
            figure.draw_without_rendering()  # the limits of the axes are known from here on
            spread_labels(axes)
        else:
            _legend(axes, "filled: on the front")
        return _drawn(figure)


def _label_points(axes: Axes, section: Section, styles: Styles) -> None:
    """The name of each agent beside its point or line, so that nobody looks it up in a legend."""
    _, size = memory_unit(max((s.agent_bytes for s in section.learners), default=1))
    for s in section.summaries:
        style, y = styles[s.agent], section.level(s).mean
        words: dict[str, Any] = {"color": style.light, "fontsize": 9.5, "textcoords": "offset points"}
        if style.baseline:
            axes.annotate(
                _label(style.name), (0.99, y), (0, 3), xycoords=("axes fraction", "data"), ha="right", **words
            )
        else:
            axes.annotate(_label(style.name), (s.agent_bytes / size, y), (8, 4), **words)
    axes.margins(x=0.2)


def _draw_curves(axes: Axes, section: Section, styles: Styles) -> None:
    for index, (agent, curve) in enumerate(section.curves.items()):
        line = styles[agent].line(index) | {"label": _label(styles[agent].name)}
        draw_curve(axes, curve, line, band=section.seeds > 1)
    axes.set(xlabel="episode", ylabel=YS[section.measure])
    axes.margins(x=0)
    axes.set_ylim(bottom=min(0.0, axes.get_ylim()[0]) if section.measure == "reward" else 0)


def _draw_tradeoff(axes: Axes, section: Section, styles: Styles) -> None:
    amounts = [s.agent_bytes for s in section.learners]
    unit, size = memory_unit(max(amounts, default=1))
    front = section.front
    if front:
        xs, ys = [s.agent_bytes / size for s in front], [section.level(s).mean for s in front]
        axes.plot(xs, ys, drawstyle="steps-post", color="#999999", lw=1.2, zorder=1, label="Pareto front")
    best = {s.agent for s in front}
    for s in section.summaries:
        style, level = styles[s.agent], section.level(s)
        if style.baseline:
            axes.axhline(level.mean, label=_label(style.name), **(style.line(0) | {"lw": 1.4}))
            continue
        fill = style.light if s.agent in best else "white"
        at = (s.agent_bytes / size, level.mean)
        axes.errorbar(*at, yerr=error_bar(level), fmt="none", capsize=3, ecolor=style.light)
        point: Any = {"marker": MARKERS[style.marker][0], "ms": 8, "mfc": fill, "mec": style.light, "mew": 1.8}
        axes.plot(*at, linestyle="none", label=_label(style.name), **point)
    axes.set(xlabel=f"peak memory of the agent, {unit}", ylabel=ENDS[section.measure])
    if memory_is_wide(amounts):
        _log_x(axes)
    else:
        axes.set_xlim(0, 1.1 * max(amounts, default=1) / size or 1)
    if section.measure == "regret":
        axes.set_ylim(bottom=0)


def growth_figure(env: str, grown: Sequence[Growth], styles: Styles) -> Drawn:
    """Regret, memory and CPU seconds over K, one panel each, on linear axes."""
    amounts = [i.mean for g in grown for i in g.values.get("memory", [])]
    unit, size = memory_unit(max(amounts, default=1))
    with drawing(len(MEASURES), (11.5, _height(len(grown)))) as (figure, *panels):
        for axes, measure in zip(panels, MEASURES, strict=True):
            scale = size if measure == "memory" else 1
            for index, g in enumerate(grown):
                if measure not in g.values:
                    continue
                style, values = styles[g.agent], g.values[measure]
                line = style.line(index) | {"marker": MARKERS[style.marker][0], "ms": 5, "label": _label(style.name)}
                means = [i.mean / scale for i in values]
                axes.errorbar(g.sizes, means, yerr=error_bar(*values) / scale, capsize=2, **line)
            axes.set(title=f"{measure}, {unit}" if measure == "memory" else measure, xlabel="K, episodes")
            axes.set_xlim(left=0)
            axes.set_ylim(bottom=0)
        figure.tight_layout(rect=(0, 0, 1, 0.95))
        figure.suptitle(_label(env), x=0.01, ha="left", fontweight="bold", fontsize=11)
        _legend(max(panels, key=lambda a: len(a.get_legend_handles_labels()[1])), "mean and 95% interval", panels[-1])
        return _drawn(figure)


def _height(entries: int) -> float:
    """Of a figure with that many entries in its legend."""
    return max(3.9, 0.9 + 0.2 * entries)


def _drawn(figure: Figure) -> Drawn:
    return Drawn(*(rendered(figure, kind, bbox_inches="tight") for kind in ("svg", "png")))


def _legend(axes: Axes, title: str, beside: Axes | None = None) -> None:
    """To the right of everything, where it can hide no curve."""
    handles, labels = axes.get_legend_handles_labels()
    where: dict[str, Any] = {"loc": "upper left", "bbox_to_anchor": (1.02, 1.02), "alignment": "left"}
    (beside or axes).legend(handles, labels, title=title, fontsize=8.5, title_fontsize=8.5, **where)


def _log_x(axes: Axes) -> None:
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    axes.set_xscale("log")
    axes.xaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axes.xaxis.set_minor_formatter(NullFormatter())
    axes.margins(x=0.1)


def _interval_note(section: Section) -> str:
    return f"mean and 95% interval, {section.seeds} seed{'s' * (section.seeds > 1)}"


def _title(section: Section) -> str:
    return _label(f"{section.env}: {section.episodes:,} episodes")


def _label(text: str) -> str:
    """Text as it is, cut if long: a dollar starts no formula, and a leading underscore does not hide it."""
    text = text if len(text) <= LONGEST else text[: LONGEST - 1] + "…"
    return (" " if text.startswith("_") else "") + text.replace("$", r"\$")
