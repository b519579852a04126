"""What each algorithm must show, one picture each, from the sweep of its name. All: about 4 minutes on one core."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np

from linmdp.plugins import import_modules
from linmdp.report.plots import distinct_names, draw_curve, drawing, error_bar, is_baseline, line_styles, regret_curve
from linmdp.results.summary import Summary
from linmdp.runner.spec import parse_spec
from research.study import HERE, Study, save_picture

Panel = Callable[[Any, list[Summary]], None]


def figure(name: str) -> Callable[[Study], None]:
    """Panels side by side, each with the runs whose environment has a word."""

    def draw(study: Study) -> None:
        import_modules(["wide"], str(HERE / "headlines"))  # for the sweep "sketch"
        found = [s for here in study.summaries(name).values() for s in here]
        panels = FIGURES[name]
        with drawing(len(panels), (5 * len(panels), 4.6)) as (drawn, *axes):
            for one, (title, (panel, word)) in zip(axes, panels.items(), strict=True):
                panel(one, [s for s in found if word in (s.env, *re.split("[:,]", s.env))])
                one.set_title(title)
                one.legend(fontsize=8)
            drawn.tight_layout()
            save_picture(drawn, f"headline_{name}")

    return draw


def switches(s: Summary) -> float:
    """Plannings of a run: all steps are planned together."""
    H = dict(part.split("=") for part in s.env.partition(":")[2].split(",") if "=" in part).get("H")
    return s.updates / int(H) if H else s.updates / {"lock": 10, "riverswim": 20, "wide": 20}.get(s.env, 1)


def curves(axes: Any, found: list[Summary]) -> None:
    """Regret over the episodes, of the longest runs."""
    found = [s for s in found if s.episodes == max(x.episodes for x in found)]
    styles, names = line_styles(s.agent for s in found), distinct_names(s.agent for s in found)
    for index, s in enumerate(found):
        draw_curve(axes, regret_curve(s), styles[s.agent].line(index) | {"label": names[s.agent]})
    axes.set(xlabel="episode", ylabel="regret", ylim=(0, None))


def against(x: Callable[[Summary], float], drop: tuple[str, ...], label: str) -> Panel:
    """Regret of the longest runs against a number of each, a line through those that differ in `drop` alone."""

    def draw(axes: Any, found: list[Summary]) -> None:
        found = [s for s in found if s.episodes == max(x.episodes for x in found) and not is_baseline(s.agent)]
        for index, (name, part) in enumerate(families(found, drop).items()):
            known = sorted((x(s), s.regret) for s in part if s.regret)
            xs, regret = zip(*known, strict=True)
            style = line_styles(families(found, drop))[name].line(index)
            axes.errorbar(xs, [r.mean for r in regret], yerr=error_bar(*regret), marker="o", label=name, **style)
        axes.set(xscale="log", xlabel=label, ylabel="regret")
        axes.xaxis.set_minor_formatter("")

    return draw


def families(found: list[Summary], drop: tuple[str, ...]) -> dict[str, list[Summary]]:
    """Agents by their name and parameters, but those in `drop` and beta and lambda."""
    groups: dict[str, list[Summary]] = {}
    for s in found:
        name, given = parse_spec(s.agent)
        shown = [str(given["grid"])] if "grid" in given else []
        shown += [f"{key}={given[key]}" for key in ("growth",) if key in given and key not in drop]
        groups.setdefault(" ".join((name, *shown)), []).append(s)
    return groups


def growing(axes: Any, found: list[Summary]) -> None:
    """Switches against K, on a log axis."""
    swept = [s for s in found if "growth" in s.agent]
    groups = families(swept, ())
    styles = line_styles(groups)
    for index, (name, part) in enumerate(groups.items()):
        xs, ys = zip(*sorted((s.episodes, switches(s)) for s in part), strict=True)
        axes.plot(xs, ys, marker="o", label=name, **styles[name].line(index))
    axes.set(xscale="log", xlabel="K, episodes", ylabel="plannings", ylim=(0, None))
    axes.xaxis.set_minor_formatter("")
    known = sorted({s.episodes for s in swept})
    axes.set_xticks(known, [f"{K:,}" for K in known])


def width(s: Summary) -> float:
    """beta, where it is given."""
    return float(str(parse_spec(s.agent)[1].get("beta", np.nan)))


def directions(axes: Any, found: list[Summary]) -> None:
    """Regret against m of a sketch; whoever has none is a line."""
    known = sorted((int(str(m)), s.regret) for s in found if (m := parse_spec(s.agent)[1].get("m")) and s.regret)
    ms, regret = zip(*known, strict=True)
    axes.errorbar(ms, [r.mean for r in regret], yerr=error_bar(*regret), marker="o", label="lsvi-ucb-sketch")
    others = [s for s in found if "m" not in parse_spec(s.agent)[1] and s.regret]
    styles, names = line_styles(s.agent for s in others), distinct_names(s.agent for s in others)
    for index, s in enumerate(others):
        axes.axhline(s.regret.mean if s.regret else 0.0, **styles[s.agent].line(index + 1) | {"label": names[s.agent]})
    axes.set(xlabel="m, directions", ylabel="regret", ylim=(0, None))


def held(axes: Any, found: list[Summary]) -> None:
    """Bytes against K."""
    part = sorted((s.episodes, s.agent_bytes) for s in found if s.agent.startswith("opt-wlsvi"))
    axes.plot(*zip(*part, strict=True), marker="o", label="opt-wlsvi")
    axes.set(xlabel="K, episodes", ylabel="bytes", ylim=(0, None))


FIGURES: dict[str, dict[str, tuple[Panel, str]]] = {
    "switches": {
        "Plannings against K": (growing, "S=50"),
        "Regret at K=2,000": (against(switches, ("growth", "batches"), "plannings"), "S=50"),
    },
    "forgetting": {
        "At once": (curves, "kind=switch"),
        "In seasons": (curves, "kind=season"),
        "Slowly": (curves, "kind=drift"),
        "Memory": (held, "kind=switch"),
    },
    "randomised": {"Lock": (curves, "lock"), "Riverswim": (curves, "riverswim")},
    "uneven": {
        "Half of the measures certain": (against(width, ("beta",), "beta"), "certain=0.5"),
        "None certain": (against(width, ("beta",), "beta"), "synthetic:S=50,A=5,d=8,H=10"),
    },
    "sketch": {
        "160 features, most of which decay": (directions, "wide"),
        "10 features, none of them small": (directions, "S=100"),
    },
}

PARTS = {name: figure(name) for name in FIGURES}
