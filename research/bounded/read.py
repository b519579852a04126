"""Bounded memory (docs, bounded-memory): what the theorem says in numbers, and every way to bound memory, measured.

`pareto` draws the picture at the top of the README: hours of one core from an empty store; `bounded_12000` takes 50
minutes on two.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from typing import Any

from matplotlib.ticker import FuncFormatter, NullFormatter, NullLocator

from linmdp.agents.widths import theorem_width
from linmdp.io.units import human_bytes
from linmdp.report.plots import drawing, error_bar
from linmdp.report.tables import markdown
from linmdp.results.summary import Summary, by_agent
from linmdp.types import RunResult
from research.study import Study, by_env, outcome, save_picture, shown

SIZES = ((10, 5, 1000), (10, 20, 10**6), (30, 50, 12_000), (30, 50, 10**9))
P, LAM = 0.1, 1.0
KINDS = {
    "storage=counts": ("everything kept (exact)", "black"),
    "M=20000": ("everything kept (exact)", "black"),
    "random": ("random play", "grey"),
    "select": ("select: keeps samples that tell most", "C8"),
    "fixed": ("fixed: forgets all, in fixed phases", "C3"),
    "adaptive": ("adaptive: forgets all, when it needs to", "C2"),
    "centres": ("centres: next states merged, with a certificate", "C0"),
    "merged": ("merged transitions", "C4"),
}
"""What an agent is called and its colour, by the first of these words in its settings."""

TITLES = {
    "synthetic:S=1000,A=5,d=10,H=20": "linear MDP, 1,000 states",
    "synthetic": "the paper's MDP",
    "gym:MountainCar-v0": "MountainCar",
    "gym:CartPole-v1": "CartPole",
}
ROWS = ("bytes", "M", "certificate")
TICKS = {2.0**i: f"{2 ** (i % 10)} {'KMG'[i // 10 - 1]}iB" for i in range(12, 36, 2)}


def bound(_: Study) -> str:
    """What the theorem says before the certificate is added."""
    rows = []
    for d, H, K in SIZES:
        beta, T = theorem_width(d=d, H=H, K=K, lam=LAM, p=P), K * H
        first = 2 * H * math.sqrt(2 * T * math.log(1 / P))
        second = 2 * beta * H * math.sqrt(2 * d * K * math.log(1 + K / (LAM * d)))
        constant = beta / (d * H * math.sqrt(math.log(2 * d * T / P)))
        rows.append((f"d={d}, H={H}, K={K:,}", f"{beta:,.0f}", f"{constant:.2f}", f"{first + second:,.0f}", f"{T:,}"))
    return markdown(("sizes", "beta_0", "C", "first two terms", "H K"), rows)


def whole(results: Sequence[RunResult]) -> dict[str, list[Summary]]:
    """The agents of each environment, with the seeds that all of them have."""
    played = {(r.env, r.agent, r.seed) for r in results}
    agents = {env: {r.agent for r in here} for env, here in by_env(results).items()}
    kept = [r for r in results if all((r.env, agent, r.seed) in played for agent in agents[r.env])]
    return by_env(by_agent(kept))


def compared(sweep: str) -> Callable[[Study], str]:
    """What every agent lost or earned, how much that is of what the first one did, and its bytes."""

    def table(study: Study) -> str:
        rows = []
        for env, here in whole(study.results(sweep)).items():
            for s in here:
                mean, first = outcome(s), outcome(here[0])
                end, certificate = shown(s.end.mean if s.end else None), shown(s.certificate)
                numbers = (str(s.seeds), f"{mean:.3g}", f"{mean / first:.2f}", end, certificate)
                rows.append((env, s.agent, *numbers, human_bytes(s.agent_bytes)))
        header = ("environment", "agent", "seeds", "regret or mean return", "of the first", "return at the end")
        return markdown((*header, "certificate", "bytes held"), rows)

    return table


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
            style = {"color": colour, "marker": "*" if exact else "o", "markersize": 12 if exact else 5}
            sizes, means = [size(s, row) for s in mine], [o.mean for o in outcomes]
            axis.errorbar(sizes, means, yerr=error_bar(*outcomes), capsize=2, label=label, **style)
    axis.set_xscale("log", base=2)
    low, high = axis.get_xlim()
    ticks = list(TICKS) if row == "bytes" else [4.0**i for i in range(1, 8)]
    axis.set_xticks([tick for tick in ticks if low <= tick <= high])
    words = (lambda x, _: TICKS.get(x, "")) if row == "bytes" else (lambda x, _: f"{x:,.0f}")
    axis.xaxis.set_major_formatter(FuncFormatter(words))
    axis.xaxis.set_minor_formatter(NullFormatter())
    axis.xaxis.set_minor_locator(NullLocator())
    axis.grid(alpha=0.3)


def pareto(study: Study) -> None:
    """A column for each environment; above what is lost, against bytes and against M, below the certificate."""
    groups = whole(study.results("pareto"))
    envs = [env for env in TITLES if env in groups]
    with drawing(len(envs), (3.6 * len(envs), 8.6)) as (picture, *_):
        picture.clear()
        axes = picture.subplots(len(ROWS), len(envs), squeeze=False, height_ratios=(3, 3, 1.6))
        for column, env in enumerate(envs):
            draw_column(axes[:, column], groups[env], TITLES[env])
        axes[2, 0].set_ylabel("certificate\n(0: nothing lost)")
        found = [axis.get_legend_handles_labels() for axis in axes.flat]
        labels = {name: handle for handles, names in found for handle, name in zip(handles, names, strict=True)}
        names = list(dict.fromkeys(label for label, _ in KINDS.values() if label in labels))
        picture.legend([labels[n] for n in names], names, loc="lower center", ncols=3, fontsize=9, frameon=False)
        picture.tight_layout(rect=(0, 0.07, 1, 1))
        save_picture(picture, "pareto")


def draw_column(axes: Any, here: Sequence[Summary], title: str) -> None:
    """The panels of an environment."""
    regret = here[0].regret is not None
    for axis, row in zip(axes, ROWS, strict=True):
        draw(axis, here, row)
        axis.set_xlabel("most bytes held" if row == "bytes" else "M: transitions, centres or samples")
    for axis in axes[:2]:
        axis.set_ylabel("regret (optimal: 0)" if regret else "mean return (more is better)")
        if regret:
            axis.set_ylim(bottom=0)
    axes[2].set_yscale("symlog", linthresh=1.0)
    axes[2].set_ylim(bottom=0)
    axes[2].set_xlim(axes[1].get_xlim())
    seeds = f"{here[0].seeds} seed" + "s" * (here[0].seeds > 1)
    axes[0].set_title(f"{title}\n{here[0].episodes:,} episodes, {seeds}", fontsize=10)


PARTS = {
    "centres_bound": bound,
    "bounded_12000": compared("long"),
    "pareto": pareto,
}
