"""Bounded memory (docs, bounded-memory): what the theorem says in numbers, and ways to bound memory, measured.

`screen` draws README's picture, in two minutes; `bounded_12000` takes 50 on two cores.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from matplotlib.ticker import NullLocator, PercentFormatter

from linmdp.agents.widths import theorem_width
from linmdp.io.units import human_bytes
from linmdp.report.plots import drawing
from linmdp.report.tables import markdown
from linmdp.results.summary import Summary, by_agent
from linmdp.types import RunResult
from research.study import Study, by_env, ends, of_agent, outcome, save_picture, shown, within

SIZES = ((10, 5, 1000), (10, 20, 10**6), (30, 50, 12_000), (30, 50, 10**9))
P, LAM = 0.1, 1.0
POINTS = {
    "lsvi-ucb:storage=features,replan=0": ("LSVI-UCB", "warm", ("memory", "plans")),
    "lsvi-ucb-fixed:storage=features": ("", "warm", ("memory", "plans")),
    "lsvi-ucb-adaptive:storage=features": ("Fixed, Adaptive", "warm", ("memory", "plans")),
    "auto": ("auto", "accent", ("memory", "plans")),
    "lsvi-ucb:storage=centres,M=16": ("centres", "accent", ("memory",)),
    "lsvi-ucb-batch:batches=20": ("batch", "accent", ("plans",)),
}
"""Of README's picture: what an agent is called, its colour, and its panels."""

THEMES = {
    "": {"ink": "#1c1f24", "soft": "#8a909a", "warm": "#c2570c", "accent": "#1f5f9f"},
    "-dark": {"ink": "#e7e7e4", "soft": "#7d8590", "warm": "#f0a45a", "accent": "#7fb8f0"},
}


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


def screen(study: Study) -> None:
    """README's picture, for light and for dark pages: regret against memory, and against plannings."""
    (found,) = study.summaries("screen").values()
    lost = {s.agent: outcome(s) for s in found}
    size: dict[str, Callable[[Summary], float]] = {
        "memory": lambda s: s.agent_bytes,
        "plans": lambda s: s.updates / 20,
    }  # all 20 steps are planned together
    words: dict[str, Callable[[Any], str]] = {"memory": human_bytes, "plans": lambda n: f"{n:,.0f} times"}
    for theme, colours in THEMES.items():
        with drawing(len(size), (8.2, 3.6), sharey=True) as (picture, *axes):
            picture.patch.set_alpha(0)
            for axis, (panel, at), label in zip(axes, size.items(), ("memory held", "plannings"), strict=True):
                shown = [s for s in found if panel in POINTS.get(s.agent, ("", "", ()))[2]]
                for s in shown:
                    x, (name, colour, _) = at(s), POINTS[s.agent]
                    axis.plot(x, lost[s.agent] / lost["random"], "o", color=colours[colour], markersize=12)
                    where = {"xytext": (0, 12), "textcoords": "offset points", "ha": "center", "fontsize": 12}
                    text = f"{name}\n{words[panel](x)}" if name else ""
                    axis.annotate(text, (x, lost[s.agent] / lost["random"]), color=colours[colour], **where)
                axis.set(xscale="log", ylim=(-0.04, 1.04), xticks=[])
                axis.set_xlim(min(map(at, shown)) / 2, max(map(at, shown)) * 2.5)
                axis.xaxis.set_minor_locator(NullLocator())
                axis.set_xlabel(f"{label} (log scale)", color=colours["ink"], fontsize=12)
                axis.axhline(1.0, color=colours["soft"], linestyle=":")
                axis.tick_params(colors=colours["ink"], labelsize=11)
                axis.patch.set_alpha(0)
                axis.grid(visible=False)
                for spine in axis.spines.values():
                    spine.set_color(colours["soft"])
            for y, name, colour in ((0.86, "the paper's algorithms", "warm"), (0.77, "others in linmdp", "accent")):
                axes[0].text(0.01, y, f"● {name}", color=colours[colour], fontsize=12, transform=axes[0].transAxes)
            axes[0].set_ylabel("regret (random play: 100%)", color=colours["ink"], fontsize=12)
            axes[0].yaxis.set_major_formatter(PercentFormatter(1.0))
            picture.tight_layout()
            save_picture(picture, f"screen{theme}")


def within_bytes(study: Study) -> str:
    """What less memory costs `lsvi-gp`: the return at the end, and what was held and taken to plan, at most."""
    rows, groups = dict[str, list[str]](), by_env(study.results("bytes"))
    for here in groups.values():
        for agent, runs in ((s.agent, of_agent(here, s.agent)) for s in by_agent(here)):
            took = max(run.agent_bytes + (run.planning_bytes or 0) for run in runs)
            rows.setdefault(agent, []).append(f"{within(ends(runs))}, {human_bytes(took)}")
    return markdown(("agent", *groups), [(f"`{agent}`", *cells) for agent, cells in rows.items()])


PARTS = {
    "bytes": within_bytes,
    "centres_bound": bound,
    "bounded_12000": compared("long"),
    "screen": screen,
}
