"""What the paper's runs show: its figures, the exponents of K, and what they say in words."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from linmdp.experiments import paper
from linmdp.experiments.paper import BETAS, FIGURES, SETTINGS, with_setting
from linmdp.io.units import human_bytes
from linmdp.report.plots import MIB, Curve, draw_curve, drawing, regret_curve, save
from linmdp.report.style import is_baseline, line_styles, setting_name
from linmdp.report.tables import markdown
from linmdp.results.stats import Interval, growth_exponent, mean_interval, paired_ratio
from linmdp.results.summary import Summary

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
}


def choose_beta(found: Found, agents: Sequence[str], K: int) -> tuple[float, str]:
    """The beta with the least regret, averaged over the agents, and the table that shows it."""
    rows, totals = [], {}
    for beta in BETAS:
        regrets = [_end(found[with_setting(a, "learning", beta), K]).mean() for a in agents]
        totals[beta] = float(np.mean(regrets))
        rows.append((f"{beta:g}", *(f"{r:.1f}" for r in regrets), f"{totals[beta]:.1f}"))
    header = ("beta", *(setting_name(a) for a in agents), "mean")
    return min(BETAS, key=totals.__getitem__), markdown(header, rows)


def bounds_table(found: Found, beta: float) -> str:
    """The exponents of K that the paper proves, and those fitted to the runs: slope of log value over log K."""
    rows = []
    for bound in paper.BOUNDS:
        stored = _series(found, with_setting(bound.agent, "learning", beta, "features"))
        regrets = [stored, _series(found, with_setting(bound.agent, "published", beta))]
        rows.append(_bound_row(bound._replace(agent=setting_name(bound.agent)), stored, regrets))
    counts = _series(found, with_setting(paper.BOUNDS[0].agent, "learning", beta))
    ours = paper.Bound("LSVI-UCB, storage=counts (ours)", "", time=1, space=0, regret=0.5)
    rows.insert(1, _bound_row(ours, counts, [counts]))
    regret = ("regret", f"fitted, beta={beta:g}", "fitted, published beta")
    return (
        "## bounds: exponents of K\n\nWhat the paper proves (Remark 1 for LSVI-UCB, Propositions 1 to 3 for the "
        "others; upper bounds), and the slope of log value over log K that was measured, with its 95% interval. Time "
        "and space as the paper stores its samples.\n\n"
        + markdown(("agent", "time", "fitted", "space", "fitted", *regret), rows)
    )


def _bound_row(bound: paper.Bound, costs: Sequence[Summary], regrets: Sequence[Sequence[Summary]]) -> tuple[str, ...]:
    seconds, held = _fitted(s.cpu_each for s in costs), _fitted(s.bytes_each for s in costs)
    fitted = [_fitted(_end(s) for s in series) for series in regrets]
    proved = "-" if bound.regret is None else f"K^{bound.regret:g}"
    row = (bound.agent, f"K^{bound.time:g}", seconds, f"K^{bound.space:g}", held, proved, *fitted)
    return row + ("-",) * (8 - len(row))


def _series(found: Found, agent: str) -> list[Summary]:
    return [found[agent, K] for K in paper.BOUNDS_K]


def _fitted(values: Iterable[np.ndarray]) -> str:
    p = growth_exponent(np.array(paper.BOUNDS_K), np.stack(list(values), axis=1))
    return f"K^{p.mean:.2f} [{p.low:.2f}, {p.high:.2f}]"


def _end(s: Summary) -> np.ndarray:
    assert s.curve is not None
    return s.curve[:, -1]


def verdict(found: Found, agents: Sequence[str], K: int, setting: str, beta: float, storage: str) -> list[str]:
    """One sentence per agent: what it costs and loses against LSVI-UCB, and where the random policy stands."""
    mine = [found[with_setting(a, setting, beta, storage), K] for a in agents]
    costs = [found.get((with_setting(a, setting, beta, "features"), K), s) for a, s in zip(agents, mine, strict=True)]
    random = _end(found["random", K]).mean()
    base, cost = mine[0], costs[0]
    width = "the published beta" if setting == SETTINGS[0] else f"beta = {beta:g}"
    share = _end(base).mean() / random
    lines = [
        f"With {width}, {K:,} episodes: {setting_name(cost.agent)} has {share:.2f} of the random policy's regret, "
        f"in {human_bytes(cost.agent_bytes)} and {cost.cpu_seconds:.1f} CPU seconds."
    ]
    for s, own in zip(mine[1:], costs[1:], strict=True):
        ratio = paired_ratio(_end(s), _end(base))
        lines.append(
            f"{setting_name(own.agent)} uses {own.agent_bytes / cost.agent_bytes:.2f}x its memory and "
            f"{own.cpu_seconds / cost.cpu_seconds:.2f}x its time, and has {ratio.mean:.2f}x its regret (95% interval "
            f"{ratio.low:.2f} to {ratio.high:.2f}): {_end(s).mean() / random:.2f} of the random policy's."
        )
    return lines


def paper_figure(name: str, panels: Mapping[str, Sequence[Summary]], beta: float, folder: Path) -> list[Path]:
    """NAME.png and NAME.svg: the summaries of each setting side by side, on axes with the same limits."""
    figure = FIGURES[name]
    with drawing(len(panels), (11, 4.6), sharey=True) as (image, *axes):
        for ax, (setting, summaries) in zip(axes, panels.items(), strict=True):
            if figure.metric == "regret":
                _draw_regret(ax, summaries)
            else:
                _draw_cost(ax, figure.metric, summaries)
            ax.set_title(PANELS[setting].format(beta=beta), fontsize=10)
            ax.margins(x=0.02)
            ax.label_outer()
        # the optimal policy's line is at 0 and should be seen; limits come last, since they end the automatic ones
        axes[0].set_ylim(bottom=-0.02 * axes[0].get_ylim()[1] if figure.metric == "regret" else 0)
        seeds = max(s.seeds for summaries in panels.values() for s in summaries)
        image.suptitle(f"{figure.title}: mean and 95% interval, {seeds} seeds", x=0.01, ha="left", weight="bold")
        handles, labels = axes[0].get_legend_handles_labels()
        columns = min(len(labels), 4, 130 // (8 + max(map(len, labels))))
        rows = -(-len(labels) // columns)
        image.legend(handles, labels, loc="lower center", ncols=columns, fontsize=9)
        image.tight_layout(rect=(0, 0.02 + 0.046 * rows, 1, 1))
        return save(image, folder / name)


def _draw_regret(ax: Axes, summaries: Sequence[Summary]) -> None:
    """Curves over the episodes of the longest runs; a dot for each run with a smaller K of its own."""
    longest = max(s.episodes for s in summaries)
    for agent, line in _lines(summaries).items():
        mine = {s.episodes: s for s in summaries if s.agent == agent}
        name = setting_name(agent).removesuffix(", counts")  # regret does not depend on the storage
        draw_curve(ax, regret_curve(mine[longest]), {**line, "label": name})
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
