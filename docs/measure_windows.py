"""The figure and the tables of docs/lsvi-ucb-restart.md, from examples/windows.toml and examples/still.toml.

.venv/bin/python docs/measure_windows.py STORE     runs what the store lacks; about 6 minutes on one core from nothing
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np

import linmdp
from linmdp.envs.planning import optimum, policy_value
from linmdp.io.files import output_folder
from linmdp.report.plots import drawing, error_bar, save
from linmdp.report.style import line_styles
from linmdp.report.tables import markdown
from linmdp.results.store import Store
from linmdp.results.summary import Summary, by_agent
from linmdp.runner.spec import parse_spec
from linmdp.runner.sweep import plan, read_sweep, run_key, run_sweep
from linmdp.types import Array

DOCS = Path(__file__).parent
TITLES = ("synthetic, switch", "riverswim, switch", "riverswim, drift", "synthetic, drift")
LITERAL = "ada-lsvi-ucb-restart:blocks=fixed"
RIVER, EVERY = "drift:base=riverswim,every=250,kind=switch", 250


def main() -> None:
    """A panel and a column per environment."""
    store = Store(output_folder(Path(sys.argv[1])))
    groups = swept("windows", store)
    (DOCS / "generated/windows.md").write_text(table(groups) + "\n")
    (DOCS / "generated/windows_still.md").write_text(still(swept("still", store)) + "\n")
    (DOCS / "generated/windows_floor.md").write_text(unseen(RIVER, EVERY) + "\n")
    figure(groups)


def swept(name: str, store: Store) -> list[dict[str, Summary]]:
    """The agents of a sweep, for each of its environments."""
    jobs = plan(read_sweep(DOCS.parent / f"examples/{name}.toml"))
    run_sweep(jobs, store, progress=True)
    found = by_agent(list(store.results({run_key(job) for job in jobs})))
    return [{s.agent: s for s in found if s.env == env} for env in dict.fromkeys(job.env for job in jobs)]


def unseen(spec: str, every: int) -> str:
    """What changes cost before they can be known: the best policy of the old model goes on until it meets one."""
    env: Any = linmdp.make_env(spec)
    rows = []
    for k in (every, 2 * every):
        before, after = env.model_of(k - 1), env.model_of(k)
        Q = optimum(before).Q
        policy = Q.max(axis=-1, keepdims=True) == Q
        policy = policy / policy.sum(axis=-1, keepdims=True)
        gap = float((optimum(after).V[0] - policy_value(after, policy.__getitem__)[0])[0])
        chance = meeting(before, after, policy)
        rows.append((f"{k:,}", f"{gap:.2f}", f"{chance:.2f}", f"{gap / chance:.1f}"))
    return markdown(("change", "lost an episode", "chance to meet it in one", "lost until then"), rows)


def meeting(before: Any, after: Any, policy: Array) -> float:
    """The chance that an episode of `policy` from the first state plays a pair whose reward or measure is another."""
    p, met, phi = np.eye(before.S)[0], 0.0, before.features.table()
    for h in range(before.H):
        change = phi @ (after.theta[h] - before.theta[h]), phi @ (after.mu[h] - before.mu[h])
        other = (np.abs(change[0]) > 0) | (np.abs(change[1]).max(axis=-1) > 0)
        pairs = p[:, None] * policy[h]
        met += float(pairs[other].sum())
        p = ((pairs * ~other)[..., None] * (phi @ before.mu[h])).sum(axis=(0, 1))
    return met


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


def still(groups: list[dict[str, Summary]]) -> str:
    """Regret, and how many times that of LSVI-UCB."""
    rows = []
    for agent in groups[0]:
        times = [lost(group[agent]) / lost(group["lsvi-ucb"]) for group in groups]
        rows.append((f"`{agent}`", *(f"{g[agent].regret} ({x:.2f})" for g, x in zip(groups, times, strict=True))))
    return markdown(("agent", *(next(iter(group.values())).env for group in groups)), rows)


def figure(groups: list[dict[str, Summary]]) -> None:
    """Regret over W on logarithmic axes; agents that have no W are lines."""
    others = [agent for agent in groups[0] if window(agent) is None and agent not in ("optimal", LITERAL)]
    styles = line_styles(others)
    with drawing(len(groups), (17, 5)) as (drawn, *panels):
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
