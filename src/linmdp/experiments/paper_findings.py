"""What the paper's runs show: its figures, the exponents of K, and what they say in words."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from linmdp.experiments import paper
from linmdp.experiments.paper import BETAS, FIGURES, SETTINGS, Scale, with_setting
from linmdp.report.plots import (
    MIB,
    Curve,
    draw_curve,
    drawing,
    is_baseline,
    line_styles,
    regret_curve,
    save,
    setting_name,
)
from linmdp.report.tables import markdown
from linmdp.results.stats import Interval, growth_exponent, mean_interval, paired_ratio, two
from linmdp.results.summary import Summary
from linmdp.types import Array

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Found = Mapping[tuple[str, int], Summary]
"""Summaries by agent and K."""

METRICS: dict[str, tuple[str, Callable[[Summary], Interval]]] = {
    "space": ("peak memory of the agent, MiB", lambda s: mean_interval(s.bytes_each / MIB)),
    "time": ("CPU seconds of a run", lambda s: mean_interval(s.cpu_each)),
}
PANELS = {
    "published": "published: beta = 1e-4 d H sqrt(log 3dHK)",
    "learning": "where the agents learn: beta = {beta:g}",
    "cost": "samples stored as in the paper; learning setting, beta = {beta:g}",
}


def choose_beta(found: Found, agents: Sequence[str], K: int) -> tuple[float, str]:
    """The beta with the least regret, averaged over the agents, and the table that shows it."""
    rows, totals = [], {}
    for beta in BETAS:
        regrets = [end(found[with_setting(a, "learning", beta), K]).mean() for a in agents]
        totals[beta] = float(np.mean(regrets))
        rows.append((f"{beta:g}", *(f"{r:.1f}" for r in regrets), f"{totals[beta]:.1f}"))
    header = ("beta", *(setting_name(a) for a in agents), "mean")
    return min(BETAS, key=totals.__getitem__), markdown(header, rows)


class Runs(NamedTuple):
    """What is shown and judged: the runs for regret and for cost, at one scale, with the beta that was chosen."""

    regrets: Found
    costs: Found
    scale: Scale
    beta: float

    def regret(self, agent: str, setting: str) -> Summary:
        """The runs with the largest K."""
        return self.regrets[with_setting(agent, setting, self.beta, self.scale.storage), self.scale.K[-1]]

    def regret_growth(self, agent: str, setting: str) -> Interval:
        """p in regret ~ K^p."""
        name = with_setting(agent, setting, self.beta, self.scale.storage)
        return exponent([self.regrets[name, K] for K in self.scale.K], end)

    def cost_growth(self, agent: str, storage: str = "features") -> tuple[Interval, Interval]:
        """The same for time and for space, as the paper stores samples, with every K that it ran with."""
        name = with_setting(agent, "learning", self.beta, storage)
        runs = [self.costs[name, K] for K in self.scale.K if (name, K) in self.costs]
        return exponent(runs, lambda s: s.cpu_each), exponent(runs, lambda s: s.bytes_each)


def exponent(runs: Sequence[Summary], values: Callable[[Summary], np.ndarray]) -> Interval:
    """p in value ~ K^p."""
    return growth_exponent(np.array([s.episodes for s in runs]), np.stack([values(s) for s in runs], axis=1))


def end(s: Summary) -> Array:
    """The regret of each seed after all episodes."""
    assert s.curve is not None
    ends: Array = s.curve[:, -1]
    return ends


def bounds_table(runs: Runs) -> str:
    """The exponents of K that the paper proves, and those fitted to the runs: slope of log value over log K."""
    rows = []
    for bound in paper.BOUNDS:
        grown = [f"K^{runs.regret_growth(bound.agent, s).text(two)}" for s in reversed(SETTINGS)]
        row = _bound_row(bound._replace(agent=setting_name(bound.agent)), runs.cost_growth(bound.agent))
        rows.append((*row, *grown))
    counts_bound = paper.Bound("LSVI-UCB, storage=counts (ours)", "", time=1, space=0, regret=0.5)
    counts = runs.cost_growth(paper.BOUNDS[0].agent, "counts")
    rows.insert(1, (*_bound_row(counts_bound, counts), *rows[0][-2:]))  # which plays the same actions
    fitted = f"fitted, beta={runs.beta:g}", "fitted, published beta"
    scale = runs.scale
    return (
        "## bounds: exponents of K\n\nWhat the paper proves (Remark 1 for LSVI-UCB, Propositions 1 to 3 for the "
        "others; upper bounds), and the slope of log value over log K that was measured, with its 95% interval where "
        f"there are several seeds. K from {scale.K[0]:,} to {scale.K[-1]:,}; time and space as the paper stores its "
        f"samples, of LSVI-UCB to {scale.stored_to:,}.\n\n"
        + markdown(("agent", "time", "fitted", "space", "fitted", "regret", *fitted), rows)
    )


def _bound_row(bound: paper.Bound, found: tuple[Interval, Interval]) -> tuple[str, ...]:
    time, space = (f"K^{p.text(two)}" for p in found)
    proved = "-" if bound.regret is None else f"K^{bound.regret:g}"
    return bound.agent, f"K^{bound.time:g}", time, f"K^{bound.space:g}", space, proved


def _agent_name(agent: str) -> str:
    """Regret does not depend on the storage."""
    return setting_name(agent).removesuffix(", counts")


def regret_table(runs: Runs, agents: Sequence[str], setting: str) -> str:
    """Regret after K episodes beside that of the random policy and, seed by seed, of the first agent."""
    found, K = [runs.regret(agent, setting) for agent in (*agents, *paper.BASELINES)], runs.scale.K[-1]
    random, rows = end(runs.regret("random", setting)).mean(), []
    for s in found:
        mean, ratio = mean_interval(end(s)), paired_ratio(end(s), end(found[0]))
        shares = f"{mean.mean / K:.3f}", f"{mean.mean / random:.2f}", ratio.text(".2f")
        rows.append((_agent_name(s.agent), str(s.seeds), mean.text(".1f"), *shares))
    width = "beta as published" if setting == SETTINGS[0] else f"beta = {runs.beta:g}"
    header = (
        "agent",
        "seeds",
        "regret [95% interval]",
        "per episode",
        "of random",
        f"of {_agent_name(found[0].agent)}",
    )
    words = f"{setting.capitalize()} setting ({width}, lambda = {paper.LAMBDA:g}), {K:,} episodes"
    return f"{words}:\n\n{markdown(header, rows)}"


def cost_table(metric: str, found: Found, agents: Sequence[str], sizes: Sequence[int]) -> str:
    """Space or time of each agent and K."""
    _, measure = METRICS[metric]
    unit = "MiB" if metric == "space" else "CPU s"

    def cell(agent: str, K: int) -> str:
        return measure(found[agent, K]).text(".1f") if (agent, K) in found else "-"

    rows = [(setting_name(agent), *(cell(agent, K) for K in sizes)) for agent in agents]
    return markdown(("agent", *(f"{unit}, K = {K:,}" for K in sizes)), rows)


def paper_figure(name: str, panels: Mapping[str, Sequence[Summary]], beta: float, folder: Path) -> list[Path]:
    """NAME.png and NAME.svg: the summaries of each setting side by side, on axes with the same limits."""
    figure = FIGURES[name]
    with drawing(len(panels), (11 if len(panels) > 1 else 9, 4.6), sharey=True) as (image, *axes):
        for ax, (setting, summaries) in zip(axes, panels.items(), strict=True):
            if figure.metric == "regret":
                _draw_regret(ax, summaries)
            else:
                _draw_cost(ax, figure.metric, summaries)
            ax.set_title(PANELS[setting if figure.metric == "regret" else "cost"].format(beta=beta), fontsize=10)
            ax.margins(x=0.02)
            ax.label_outer()
        # the optimal policy's line is at 0 and should be seen; limits come last, since they end the automatic ones
        axes[0].set_ylim(bottom=-0.02 * axes[0].get_ylim()[1] if figure.metric == "regret" else 0)
        seeds = max(s.seeds for summaries in panels.values() for s in summaries)
        shown = f"mean and 95% interval, {seeds} seeds" if seeds > 1 else "one seed"
        image.suptitle(f"{figure.title}: {shown}", x=0.01, ha="left", weight="bold")
        handles, labels = axes[0].get_legend_handles_labels()
        columns = min(len(labels), 4, (130 if len(panels) > 1 else 105) // (8 + max(map(len, labels))))
        rows = -(-len(labels) // columns)
        image.legend(handles, labels, loc="lower center", ncols=columns, fontsize=9)
        image.tight_layout(rect=(0, 0.02 + 0.046 * rows, 1, 1))
        return save(image, folder / name)


def _draw_regret(ax: Axes, summaries: Sequence[Summary]) -> None:
    """Curves over the episodes of the longest runs; a dot for each run with a smaller K of its own."""
    longest = max(s.episodes for s in summaries)
    for agent, line in _lines(summaries).items():
        mine = {s.episodes: s for s in summaries if s.agent == agent}
        draw_curve(ax, regret_curve(mine[longest]), {**line, "label": _agent_name(agent)})
        for K, s in mine.items():
            if longest > K and s.regret:
                ax.plot(K, s.regret.mean, "o", ms=4, color=line["color"])
    ax.set(xlabel="episode", ylabel="cumulative exact regret")


def _draw_cost(ax: Axes, metric: str, summaries: Sequence[Summary]) -> None:
    """Space or time against K."""
    label, measure = METRICS[metric]
    for agent, line in _lines(summaries).items():
        mine = sorted((s for s in summaries if s.agent == agent), key=lambda s: s.episodes)
        curve = Curve(np.array([s.episodes for s in mine]), *np.array([measure(s) for s in mine]).T)
        draw_curve(ax, curve, {**line, "marker": "o", "ms": 4, "label": setting_name(agent)})
    ax.set(xlabel="K, episodes", ylabel=label)


def _lines(summaries: Sequence[Summary]) -> dict[str, dict[str, Any]]:
    """The line of each agent, the baselines last."""
    styles = line_styles(sorted((s.agent for s in summaries), key=is_baseline))
    return {agent: style.line(i) for i, (agent, style) in enumerate(styles.items())}
