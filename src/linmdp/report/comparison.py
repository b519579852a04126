"""Several runs to look at: as text, as a table in a notebook, as figures, or as a data frame."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any, overload

from linmdp.errors import InvalidParameter, needed
from linmdp.io.units import memory_unit
from linmdp.report.narrative import distributions, paired_comparisons
from linmdp.report.plots import (
    MARKERS,
    RC,
    LineStyle,
    draw_curve,
    drawing,
    error_bar,
    line_styles,
    pyplot,
    regret_curve,
    save,
)
from linmdp.report.section_data import ENDS, SHARE, YS, Section, memory_is_wide, returns_curve
from linmdp.report.tables import columns_of, comparison_table, html_table
from linmdp.results.curves import spaced
from linmdp.results.run_folder import points, run_row
from linmdp.results.summary import Summary, by_agent, by_setting, grouped, summarize
from linmdp.results.verdict import verdict, verdicts
from linmdp.types import RunResult

if TYPE_CHECKING:
    from matplotlib.axes import Axes

COLUMNS = (
    *("agent", "seeds", "regret [95% interval]", "return at the end", "interactions"),
    *("agent memory", "while planning", "CPU s"),
)


class Comparison(Sequence[RunResult]):
    """The runs of a comparison or a sweep, in the order in which they were planned.

    `len`, indices and slices are those of a tuple of `RunResult`; a slice is a `Comparison` again. `decisions` say who
    differs from whom, where the seeds were `auto`.
    """

    def __init__(self, results: Iterable[RunResult], decisions: Sequence[str] = ()) -> None:
        self.results, self.decisions = tuple(results), list(decisions)

    def __len__(self) -> int:
        return len(self.results)

    @overload
    def __getitem__(self, index: int) -> RunResult: ...
    @overload
    def __getitem__(self, index: slice) -> Comparison: ...
    def __getitem__(self, index: int | slice) -> RunResult | Comparison:
        return Comparison(self.results[index]) if isinstance(index, slice) else self.results[index]

    @property
    def summaries(self) -> list[Summary]:
        """One for each agent, environment and number of episodes, over its seeds."""
        return by_agent(self.results)

    def select(self, **fields: Any) -> Comparison:
        """The runs that have these values: `select(env="lock", episodes=500)`."""
        return Comparison(r for r in self.results if all(getattr(r, name) == fields[name] for name in fields))

    def table(self) -> str:
        """A Markdown table for each environment and number of episodes, and what it says in words."""
        return "\n\n".join([comparison_text(by_setting(self.results)), *self.decisions])

    __str__ = table

    def verdicts(self) -> list[str]:
        """For each agent that learns, environment and number of episodes: is it better than random play?"""
        return [f"{agent}: {words}" for _, _, runs in self._groups() for agent, words in verdicts(runs.results).items()]

    def _groups(self) -> list[tuple[str, int, Comparison]]:
        groups = grouped(self.results, lambda r: (r.env, r.episodes))
        return [(env, episodes, Comparison(runs)) for (env, episodes), runs in groups.items()]

    def rows(self, curves: bool = False) -> list[dict[str, Any]]:
        """One row per run, as `linmdp table --csv` has them; or one per point of its curves, with sums up to it."""
        found = [(r, spaced(r.episodes, len(r.rewards))) for r in self.results]
        return [row for r, at in found for row in points(r, at)] if curves else [run_row(r, at) for r, at in found]

    def to_pandas(self, curves: bool = False) -> Any:
        """The `rows` as a `pandas.DataFrame`."""
        pandas = needed("pandas", "to_pandas() needs pandas: pip install 'linmdp[pandas]'.")
        return pandas.DataFrame(self.rows(curves))

    def plot(self, ax: Axes | None = None) -> Axes:
        """Regret over the episodes, mean and 95% interval over the seeds; the return, where regret is unknown."""
        groups = self._groups()
        if len(groups) != 1:
            rule = "one environment and one number of episodes: use select(env=..., episodes=...)"
            raise InvalidParameter(f"A figure must be of {rule}. Got {len(groups)} of them.")
        (env, episodes, _), plt, summaries = groups[0], pyplot(screen=True), self.summaries
        known, styles = any(s.curve is not None for s in summaries), line_styles(s.agent for s in summaries)
        with plt.rc_context(RC):
            axes: Axes = ax or plt.subplots(figsize=(7, 4.4), layout="constrained")[1]
            for index, s in enumerate(summaries):
                earned = None if known else returns_curve(self.select(agent=s.agent))
                if curve := regret_curve(s) if s.curve is not None else earned:
                    draw_curve(axes, curve, styles[s.agent].line(index) | {"label": styles[s.agent].name})
            what = "cumulative exact regret" if known else "return of an episode"
            axes.set(title=f"{env}: {episodes:,} episodes", xlabel="episode", ylabel=what)
            axes.margins(x=0)
            axes.legend(title="mean and 95% interval")
        return axes

    def _repr_html_(self) -> str:
        """A table for notebooks."""
        return "".join(
            html_table(f"{env}: {episodes:,} episodes", COLUMNS, columns_of(runs.summaries, COLUMNS))
            + "".join(f"<p>{escape(words)}</p>" for words in runs.verdicts())
            for env, episodes, runs in self._groups()
        )


def comparison_text(settings: Iterable[Sequence[RunResult]]) -> str:
    """A Markdown table for each environment and number of episodes, and what it says in words.

    Each of the `settings` is the runs of one agent there. Of their curves nothing but the end is kept, so that a store
    is shown without being in memory.
    """
    groups: dict[tuple[str, int], list[tuple[Summary, str]]] = {}
    for runs in settings:
        found, words = summarize(runs), verdict(runs)
        found = found._replace(curve=None if found.curve is None else found.curve[:, -1:].copy())
        groups.setdefault((found.env, found.episodes), []).append((found, f"{found.agent}: {words}" if words else ""))
    parts = []
    for (env, episodes), shown in groups.items():
        rows = [summary for summary, _ in shown]
        said = [*paired_comparisons(rows), *distributions(rows), *(line for _, line in shown if line)]
        parts.append("\n\n".join([f"{env}: {episodes:,} episodes", comparison_table(rows), *said]))
    return "\n\n".join(parts) or "There are no runs yet."


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
