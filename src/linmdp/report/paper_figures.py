"""The paper's figures, drawn from stored runs: one panel for each setting."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from linmdp.report.paper import BASELINES, FIGURES
from linmdp.report.plots import MIB, draw_curve, save
from linmdp.report.style import BASELINES as MARKS
from linmdp.report.style import PALETTE, RC, pyplot, setting_name
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
    plt = pyplot()

    figure = FIGURES[name]
    draw = _draw_regret if figure.metric == "regret" else _draw_cost
    with plt.rc_context(RC):
        image, axes = plt.subplots(1, len(panels), figsize=(11, 4.6), sharey=True, squeeze=False)
        for ax, (setting, summaries) in zip(axes[0], panels.items(), strict=True):
            draw(ax, figure.metric, summaries)
            ax.set_title(PANELS[setting].format(beta=beta), fontsize=10)
            ax.margins(x=0.02)
            ax.label_outer()
        # the optimal policy's line is at 0 and should be seen; limits come last, since they end the automatic ones
        axes[0][0].set_ylim(bottom=-0.02 * axes[0][0].get_ylim()[1] if figure.metric == "regret" else 0)
        seeds = max(s.seeds for summaries in panels.values() for s in summaries)
        image.suptitle(f"{figure.title}: mean and 95% interval, {seeds} seeds", x=0.01, ha="left", weight="bold")
        handles, labels = axes[0][0].get_legend_handles_labels()
        columns = min(len(labels), 4, 130 // (8 + max(map(len, labels))))
        rows = -(-len(labels) // columns)
        image.legend(handles, labels, loc="lower center", ncols=columns, fontsize=9)
        image.tight_layout(rect=(0, 0.02 + 0.046 * rows, 1, 1))
        paths = save(image, folder / name)
        plt.close(image)
    return paths


def _draw_regret(ax: Axes, metric: str, summaries: Sequence[Summary]) -> None:
    """Curves over the episodes of the longest runs; a dot for each run with a smaller K of its own."""
    longest = max(s.episodes for s in summaries)
    for agent, look in _looks(summaries).items():
        mine = [s for s in summaries if s.agent == agent and s.regret and s.curve is not None]
        name = setting_name(agent).removesuffix(", counts")  # regret does not depend on the storage
        draw_curve(ax, next(s for s in mine if s.episodes == longest), {**look, "label": name})
        for s in mine:
            if s.episodes < longest and s.regret:
                ax.plot(s.episodes, s.regret.mean, "o", ms=4, color=look["color"])
    ax.set(xlabel="episode", ylabel="cumulative exact regret")


def _draw_cost(ax: Axes, metric: str, summaries: Sequence[Summary]) -> None:
    """Space or time against K."""
    label, measure = METRICS[metric]
    for agent, look in _looks(summaries).items():
        mine = sorted((s for s in summaries if s.agent == agent), key=lambda s: s.episodes)
        K, found = [s.episodes for s in mine], [measure(s) for s in mine]
        ax.plot(K, [i.mean for i in found], marker="o", ms=4, label=setting_name(agent), **look)
        ax.fill_between(K, [i.low for i in found], [i.high for i in found], color=look["color"], alpha=0.15, lw=0)
    ax.set(xlabel="K, episodes", ylabel=label)


def _looks(summaries: Sequence[Summary]) -> dict[str, dict[str, Any]]:
    """A colour for each learner, dashes once the colours are used up; the baselines as everywhere."""
    names = list(dict.fromkeys(s.agent for s in summaries))
    looks: dict[str, dict[str, Any]] = {}
    learners = [n for n in names if n not in BASELINES]
    for i, name in enumerate(learners):
        dashes = ("-", "--", ":")[i // len(PALETTE) % 3]
        width = max(1.2, 3.0 - 0.5 * i)  # each thinner than the one under it: curves that coincide are all seen
        looks[name] = {"color": PALETTE[i % len(PALETTE)], "linestyle": dashes, "lw": width}
    for name in names:
        if name in MARKS:
            colour, dashes_of = MARKS[name]
            looks[name] = {"color": colour, "linestyle": dashes_of, "lw": 1.5}
    return looks
