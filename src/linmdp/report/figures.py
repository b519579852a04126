"""The figure of a comparison: SVG and PNG, on a light background."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from linmdp.io.units import memory_unit
from linmdp.report.payload import SHARE
from linmdp.report.plots import draw_curve, drawing, error_bar, regret_curve, save
from linmdp.report.section_data import ENDS, YS, Section, memory_is_wide
from linmdp.report.style import MARKERS, LineStyle, line_styles
from linmdp.results.summary import Summary

if TYPE_CHECKING:
    from matplotlib.axes import Axes

LONGEST = 56
"""Characters of a name in a figure."""


def comparison_figure(summaries: Sequence[Summary], title: str, folder: Path) -> list[Path]:
    """Regret over episodes, memory against regret, and performance profiles: regret.png and regret.svg in `folder`."""
    shown = [s for s in summaries if s.curve is not None]
    curves_of = {s.agent: regret_curve(s) for s in shown}
    env, episodes = shown[0].env, shown[0].episodes
    section = Section(env=env, episodes=episodes, measure="regret", summaries=shown, curves=curves_of)
    styles = line_styles(s.agent for s in summaries)
    profiles = section.profiles
    ratios, wide = ((1.6, 1, 1), 15) if profiles else ((1.6, 1), 11)
    with drawing(len(ratios), (wide, 4.4), width_ratios=ratios) as (figure, curves, tradeoff, *more):
        _draw_curves(curves, section, styles)
        _draw_tradeoff(tradeoff, section, styles)
        curves.set_title(title)
        note = f"mean and 95% interval, {section.seeds} seed{'s' * (section.seeds > 1)}"
        curves.legend(loc="upper left", title=note, alignment="left")
        tradeoff.set_title("memory against regret (filled: Pareto front)")
        for index, (agent, curve) in enumerate(profiles.items()):
            draw_curve(more[0], curve, styles[agent].line(index))
            more[0].set(title="performance profile", xlabel=ENDS["regret"], ylabel=SHARE)
        figure.tight_layout()
        return save(figure, folder / "regret")


def _draw_curves(axes: Axes, section: Section, styles: dict[str, LineStyle]) -> None:
    for index, (agent, curve) in enumerate(section.curves.items()):
        line = styles[agent].line(index) | {"label": _label(styles[agent].name)}
        draw_curve(axes, curve, line, band=section.seeds > 1)
    axes.set(xlabel="episode", ylabel=YS[section.measure])
    axes.margins(x=0)
    axes.set_ylim(bottom=0)


def _draw_tradeoff(axes: Axes, section: Section, styles: dict[str, LineStyle]) -> None:
    """Peak memory against regret at the end, with the Pareto front; policies that do not learn are lines."""
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
    axes.set_ylim(bottom=0)


def _log_x(axes: Axes) -> None:
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    axes.set_xscale("log")
    axes.xaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axes.xaxis.set_minor_formatter(NullFormatter())
    axes.margins(x=0.1)


def _label(text: str) -> str:
    """Text as it is, cut if long: a dollar starts no formula, and a leading underscore does not hide it."""
    text = text if len(text) <= LONGEST else text[: LONGEST - 1] + "…"
    return (" " if text.startswith("_") else "") + text.replace("$", r"\$")
