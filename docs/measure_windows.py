"""The figure and the table of docs/lsvi-ucb-restart.md, from examples/windows.toml. What the store lacks is run.

.venv/bin/python docs/measure_windows.py STORE     about 6 minutes on two cores from an empty store
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

from linmdp.io.files import output_folder
from linmdp.report.plots import drawing, error_bar, save
from linmdp.report.style import line_styles
from linmdp.report.tables import markdown
from linmdp.results.store import Store
from linmdp.results.summary import Summary, by_agent
from linmdp.runner.spec import parse_spec
from linmdp.runner.sweep import plan, read_sweep, run_key, run_sweep

DOCS = Path(__file__).parent
TITLES = ("synthetic, switch", "riverswim, switch", "riverswim, drift")


def main() -> None:
    """A panel and a column per environment."""
    jobs, store = plan(read_sweep(DOCS.parent / "examples/windows.toml")), Store(output_folder(Path(sys.argv[1])))
    run_sweep(jobs, store, progress=True)
    found = by_agent(list(store.results({run_key(job) for job in jobs})))
    groups = [{s.agent: s for s in found if s.env == env} for env in dict.fromkeys(job.env for job in jobs)]
    (DOCS / "generated/windows.md").write_text(table(groups) + "\n")
    figure(groups)


def lost(s: Summary) -> float:
    """Mean regret at the end."""
    return s.regret.mean if s.regret else np.inf


def window(agent: str) -> int | None:
    """W of a restart."""
    name, parameters = parse_spec(agent)
    return int(str(parameters["W"])) if name == "lsvi-ucb-restart" else None


def table(groups: list[dict[str, Summary]]) -> str:
    """Regret, and how many times that of the best window."""
    best = [min(lost(s) for s in group.values() if window(s.agent)) for group in groups]
    rows = []
    for agent in groups[0]:
        cells = [f"{group[agent].regret} ({lost(group[agent]) / b:.1f})" for group, b in zip(groups, best, strict=True)]
        rows.append((f"`{agent}`", *cells))
    return markdown(("agent", *TITLES), rows)


def figure(groups: list[dict[str, Summary]]) -> None:
    """Regret over W on logarithmic axes; agents that have no W are lines."""
    others = [agent for agent in groups[0] if window(agent) is None and agent != "optimal"]
    styles = line_styles(others)
    with drawing(len(groups), (14, 5)) as (drawn, *panels):
        for axes, group, title in zip(panels, groups, TITLES, strict=True):
            swept = sorted((W, s.regret) for s in group.values() if (W := window(s.agent)) and s.regret)
            sizes, regret = zip(*swept, strict=True)
            means = [one.mean for one in regret]
            line = {"color": "black", "marker": "o", "ms": 4, "capsize": 2, "label": "lsvi-ucb-restart, window W"}
            axes.errorbar(sizes, means, yerr=error_bar(*regret), **line)
            for index, agent in enumerate(others):
                axes.axhline(lost(group[agent]), **styles[agent].line(index) | {"label": styles[agent].name, "lw": 1.6})
            axes.set(title=title, xlabel="W, episodes", xscale="log", yscale="log")
        panels[0].set_ylabel("dynamic regret")
        drawn.tight_layout(rect=(0, 0.13, 1, 1))
        drawn.legend(*panels[0].get_legend_handles_labels(), fontsize=9, ncols=4, loc="lower center")
        save(drawn, DOCS / "images/windows")
        (DOCS / "images/windows.svg").unlink()


if __name__ == "__main__":
    main()
