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
from matplotlib.ticker import FuncFormatter, NullFormatter
from measure_centres import DOCS, stored

from linmdp.results.summary import Summary

KINDS = {
    "counts": ("exact: counts", "black"),
    "random": ("random play", "grey"),
    "max_bytes": ("merged, in little memory", "C5"),
    "centres": ("centres", "C0"),
    "merged": ("merged", "C4"),
    "fold": ("fold", "C1"),
    "select": ("select", "C8"),
    "fixed": ("fixed: resets", "C3"),
    "adaptive": ("adaptive: resets", "C2"),
}
"""What an agent is called and its colour, by the first of these words in its settings."""

BYTES, NUMBERS = [4.0**i for i in range(2, 9)], [4.0**i for i in range(2, 7)]


def kind(agent: str) -> str:
    """What bounds the memory of an agent."""
    return next(word for word in KINDS if word in agent)


def given_M(agent: str) -> int | None:
    """The M of an agent, where it was given one."""
    found = re.search(r"\bM=(\d+)", agent)
    return int(found[1]) if found else None


def draw(axis: Any, summaries: Sequence[Summary], *, by_bytes: bool) -> None:
    """What every kind of agent loses, as a line over its sizes; what has no size as a line across."""
    for name in dict.fromkeys(kind(s.agent) for s in summaries):
        mine, (label, colour) = [s for s in summaries if kind(s.agent) == name], KINDS[name]
        outcomes = {s.agent: s.regret or s.reward for s in mine}
        sizes = {s.agent: s.agent_bytes / 1024 if by_bytes else given_M(s.agent) for s in mine}
        if name == "random" or (name == "counts" and not by_bytes):
            axis.axhline(outcomes[mine[0].agent].mean, color=colour, linestyle=":", label=label)
        elif all(sizes.values()):
            points = sorted((sizes[a], o.mean, o.mean - o.low, o.high - o.mean) for a, o in outcomes.items())
            x, y, *spread = zip(*points, strict=True)
            axis.errorbar(x, y, yerr=spread, color=colour, marker="o", capsize=2, label=label)
    axis.set_xscale("log")
    ticks, (low, high) = BYTES if by_bytes else NUMBERS, axis.get_xlim()
    axis.set_xticks([tick for tick in ticks if low <= tick <= high])
    axis.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axis.xaxis.set_minor_formatter(NullFormatter())
    axis.grid(alpha=0.3)


def main() -> None:
    """Run what is missing, and draw."""
    summaries = stored(sys.argv[1], "pareto", run="--stored" not in sys.argv)
    envs = list(dict.fromkeys(s.env for s in summaries))
    picture, axes = plt.subplots(2, len(envs), figsize=(4.2 * len(envs), 7), squeeze=False)
    for column, env in enumerate(envs):
        mine = [s for s in summaries if s.env == env]
        what = "regret" if mine[0].regret else "mean return of an episode"
        for axis, by_bytes in zip(axes[:, column], (True, False), strict=True):
            draw(axis, mine, by_bytes=by_bytes)
            axis.set_ylabel(what)
            if mine[0].regret:
                axis.set_ylim(bottom=0)
            axis.set_xlabel("KiB held" if by_bytes else "M: transitions, next states or samples")
        axes[0, column].set_title(f"{env}\n{mine[0].episodes:,} episodes", fontsize=9)
        axes[0, column].legend(fontsize=7, framealpha=0.6)
    picture.tight_layout()
    picture.savefig(DOCS / "images/pareto.png", dpi=110)


if __name__ == "__main__":
    main()
