"""The paper's figures, drawn from stored runs: one panel for each setting."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from linmdp.experiments.paper import FIGURES
from linmdp.report.plots import MIB, Curve, draw_curve, drawing, regret_curve, save
from linmdp.report.style import is_baseline, line_styles, setting_name
from linmdp.results.stats import Interval, mean_interval
from linmdp.results.summary import Summary

if TYPE_CHECKING:
    from matplotlib.axes import Axes

METRICS: dict[str, tuple[str, Callable[[Summary], Interval]]] = {
    "space": ("peak memory of the agent, MiB", lambda s: mean_interval(s.bytes_each / MIB)),
    "time": ("CPU seconds of a run", lambda s: mean_interval(s.cpu_each)),
}
PANELS = {
    "published": "published: beta = 1e-4 d H sqrt(log 3dHK)",
    "learning": "where the agents learn: beta = {beta:g}",
}


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
