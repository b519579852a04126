"""Restarts and their windows (docs, lsvi-ucb-restart): tasks that change, and tasks that do not. About 6 minutes."""

from __future__ import annotations

from linmdp.report.plots import drawing, error_bar, line_styles
from linmdp.report.tables import markdown
from linmdp.results.summary import Summary
from linmdp.runner.spec import parse_spec
from research.study import Study, outcome, save_picture, write

TITLES = ("synthetic, switch", "riverswim, switch", "riverswim, drift", "synthetic, drift")
LITERAL = "ada-lsvi-ucb-restart:blocks=fixed"
Group = dict[str, Summary]
"""The agents of an environment, by name."""


def groups_of(study: Study, sweep: str = "study") -> list[Group]:
    """One for each environment of a sweep."""
    return [{s.agent: s for s in here} for here in study.summaries(sweep).values()]


def windows(study: Study) -> None:
    """Regret, and how many times that of the best window: a table, and a picture with a panel for each environment."""
    groups = groups_of(study)
    best = [min(outcome(s) for s in group.values() if window(s.agent)) for group in groups]
    write("windows", beside(groups, TITLES, best, ".1f"))
    picture(groups)


def still(study: Study) -> str:
    """Regret where nothing changes, and how many times that of LSVI-UCB."""
    groups = groups_of(study, "still")
    envs = tuple(next(iter(group.values())).env for group in groups)
    return beside(groups, envs, [outcome(group["lsvi-ucb"]) for group in groups], ".2f")


def beside(groups: list[Group], titles: tuple[str, ...], of: list[float], form: str) -> str:
    """A row for each agent, a column for each environment: regret, and in how many units."""
    rows = []
    for agent in groups[0]:
        times = (outcome(group[agent]) / unit for group, unit in zip(groups, of, strict=True))
        rows.append((f"`{agent}`", *(f"{g[agent].regret} ({x:{form}})" for g, x in zip(groups, times, strict=True))))
    return markdown(("agent", *titles), rows)


def window(agent: str) -> int | None:
    """W of a restart."""
    name, parameters = parse_spec(agent)
    return int(str(parameters["W"])) if name == "lsvi-ucb-restart" else None


def picture(groups: list[Group]) -> None:
    """Regret over W on logarithmic axes; agents that have no W are lines."""
    others = [agent for agent in groups[0] if window(agent) is None and agent not in ("optimal", LITERAL)]
    styles = line_styles(others)
    with drawing(len(groups), (17, 5)) as (drawn, *panels):
        for axes, group, title in zip(panels, groups, TITLES, strict=True):
            swept = sorted((W, s.regret) for s in group.values() if (W := window(s.agent)) and s.regret)
            sizes, regret = zip(*swept, strict=True)
            line = {"color": "black", "marker": "o", "ms": 4, "capsize": 2, "label": "lsvi-ucb-restart, window W"}
            axes.errorbar(sizes, [one.mean for one in regret], yerr=error_bar(*regret), **line)
            for index, agent in enumerate(others):
                style = styles[agent].line(index) | {"label": styles[agent].name, "lw": 1.6}
                axes.axhline(outcome(group[agent]), **style)
            axes.set(title=title, xlabel="W, episodes", xscale="log", yscale="log")
        panels[0].set_ylabel("dynamic regret")
        drawn.tight_layout(rect=(0, 0.13, 1, 1))
        drawn.legend(*panels[0].get_legend_handles_labels(), fontsize=9, ncols=4, loc="lower center")
        save_picture(drawn, "windows")


PARTS = {"windows": windows, "windows_still": still}
