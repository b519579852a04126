"""The picture of bounded memory at the top of the README: what is lost against the bytes held, and against M.

.venv/bin/python docs/measure_pareto.py STORE    runs what the store of examples/pareto.toml lacks, and draws

With `--stored` at the end nothing is run, and the picture has the runs that are there.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence
from typing import Any

import matplotlib as mpl

mpl.use("Agg")
import matplotlib.pyplot as plt
from matplotlib.ticker import FuncFormatter, NullFormatter, NullLocator
from measure_centres import COLOURS, DOCS, stored

from linmdp.results.summary import Summary

KINDS = {
    "storage=counts": ("everything kept (exact)", "black"),
    "M=8000": ("everything kept (exact)", "black"),
    "M=20000": ("everything kept (exact)", "black"),
    "random": ("random play", "grey"),
    "max_bytes": ("merged, with max_bytes given", "C5"),
    "select": ("select: keeps samples that tell most", "C8"),
    "fixed": ("fixed: forgets all, in fixed phases", COLOURS["fixed"]),
    "adaptive": ("adaptive: forgets all, when it needs to", COLOURS["adaptive"]),
    "centres": ("centres: next states merged, with a certificate", COLOURS["centres"]),
    "merged": ("merged transitions", COLOURS["merged"]),
    "fold": ("fold: old targets folded", COLOURS["fold"]),
}
"""What an agent is called and its colour, by the first of these words in its settings."""

TITLES = {
    "synthetic:S=1000,A=5,d=10,H=20": "linear MDP, 1,000 states",
    "synthetic": "the paper's MDP",
    "gym:MountainCar-v0": "MountainCar",
    "gym:CartPole-v1": "CartPole",
}
ROWS = ("bytes", "M", "certificate")
SIZES = {2.0**i: f"{2 ** (i % 10)} {'KMG'[i // 10 - 1]}iB" for i in range(12, 36, 2)}


def kind(agent: str) -> str:
    """What bounds the memory of an agent."""
    return next(word for word in KINDS if word in agent)


def size(summary: Summary, row: str) -> float | None:
    """Where an agent stands on the axis of a row: the bytes it held, or the M it was given."""
    if row == "bytes":
        return float(summary.agent_bytes) or None
    found = re.search(r"\bM=(\d+)", summary.agent)
    return float(found[1]) if found else None


def draw(axis: Any, summaries: Sequence[Summary], row: str) -> None:
    """What every kind of agent loses, as a line over its sizes; what has no size as a line across."""
    for name in dict.fromkeys(kind(s.agent) for s in summaries):
        mine, (label, colour) = [s for s in summaries if kind(s.agent) == name], KINDS[name]
        mine.sort(key=lambda s: size(s, row) or 0.0)
        exact = colour == "black"
        if row == "certificate":
            points = [(size(s, row), s.certificate) for s in mine if s.certificate is not None and size(s, row)]
            if points and not exact:
                axis.plot(*zip(*points, strict=True), color=colour, marker="o")
            continue
        outcomes = [s.regret or s.reward for s in mine]
        if name == "random" or (exact and row == "M"):
            axis.axhline(outcomes[0].mean, color=colour, linestyle=":", label=label)
        elif all(size(s, row) for s in mine):
            spread = [[o.mean - o.low for o in outcomes], [o.high - o.mean for o in outcomes]]
            style = {"color": colour, "marker": "*" if exact else "o", "markersize": 12 if exact else 5}
            sizes, means = [size(s, row) for s in mine], [o.mean for o in outcomes]
            axis.errorbar(sizes, means, yerr=spread, capsize=2, label=label, **style)
    axis.set_xscale("log", base=2)
    low, high = axis.get_xlim()
    ticks = list(SIZES) if row == "bytes" else [4.0**i for i in range(1, 8)]
    axis.set_xticks([tick for tick in ticks if low <= tick <= high])
    shown = (lambda x, _: SIZES.get(x, "")) if row == "bytes" else (lambda x, _: f"{x:,.0f}")
    axis.xaxis.set_major_formatter(FuncFormatter(shown))
    axis.xaxis.set_minor_formatter(NullFormatter())
    axis.xaxis.set_minor_locator(NullLocator())
    axis.grid(alpha=0.3)


def main() -> None:
    """Run what is missing, and draw."""
    summaries = stored(sys.argv[1], "pareto", run="--stored" not in sys.argv)
    envs = [env for env in TITLES if any(s.env == env for s in summaries)]
    picture, axes = plt.subplots(
        len(ROWS), len(envs), figsize=(3.6 * len(envs), 8.6), squeeze=False, height_ratios=(3, 3, 1.6)
    )
    labels: dict[str, Any] = {}
    for column, env in enumerate(envs):
        mine = [s for s in summaries if s.env == env]
        regret = mine[0].regret is not None
        for axis, row in zip(axes[:, column], ROWS, strict=True):
            draw(axis, mine, row)
            handles = axis.get_legend_handles_labels()
            labels = dict(zip(handles[1], handles[0], strict=True)) | labels
            if row == "certificate":
                axis.set_yscale("symlog", linthresh=1.0)
                axis.set_ylim(bottom=0)
                axis.set_xlim(axes[1, column].get_xlim())
            elif regret:
                axis.set_ylim(bottom=0)
            axis.set_xlabel("most bytes held" if row == "bytes" else "M: transitions, centres or samples")
        seeds = f"{mine[0].seeds} seed" + "s" * (mine[0].seeds > 1)
        axes[0, column].set_title(f"{TITLES[env]}\n{mine[0].episodes:,} episodes, {seeds}", fontsize=10)
        for axis in axes[:2, column]:
            axis.set_ylabel("regret (optimal: 0)" if regret else "mean return (more is better)")
        axes[2, column].set_ylabel("certificate\n(0: nothing lost)" if column == 0 else "")
    names = list(dict.fromkeys(label for label, _ in KINDS.values() if label in labels))
    picture.legend([labels[n] for n in names], names, loc="lower center", ncols=3, fontsize=9, frameon=False)
    picture.tight_layout(rect=(0, 0.07, 1, 1))
    picture.savefig(DOCS / "images/pareto.png", dpi=110)


if __name__ == "__main__":
    main()
