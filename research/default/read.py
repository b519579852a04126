"""What is learned with no parameter (docs, auto): on the built-in tasks, and on Gymnasium's. Hours of one core."""

from __future__ import annotations

import re

import numpy as np

from linmdp.experiments.tasks import ends
from linmdp.io.units import human_bytes
from linmdp.report.tables import markdown
from research.study import ROOT, Study, by_env, of_agent, within

LEARNERS = ("lsvi-ucb", "lsvi-ucb-fold")
REGRET = ("task", "agent", "storage", "regret [95% interval]", "worst seed", "of random", "agent memory", "CPU s")
RETURN = ("task", "episodes", "return [95% interval]", "worst seed", "random", "agent memory", "CPU ms a step")


def built_in(study: Study) -> str:
    """Exact regret of both learners."""
    rows = []
    for env, here in by_env(study.results()).items():
        random = np.mean([r.final_regret for r in of_agent(here, "random")])
        for agent in LEARNERS:
            mine = of_agent(here, agent)
            regret = np.array([r.final_regret for r in mine])
            memory, cpu = max(r.peak_bytes for r in mine), np.mean([r.cpu_seconds for r in mine])
            lost = (within(regret), f"{regret.max():.4g}", f"{regret.mean() / random:.3f}")
            rows.append((f"`{env}`", f"`{agent}`", mine[0].chosen["storage"], *lost, human_bytes(memory), f"{cpu:.1f}"))
    return markdown(REGRET, rows)


def gym(study: Study) -> str:
    """Returns at the end, here and in the README."""
    rows = []
    for env, here in by_env(study.results("gym")).items():
        mine, random = of_agent(here, "auto"), of_agent(here, "random")
        returns, memory = ends(mine), human_bytes(max(r.peak_bytes for r in mine))
        steps, cpu = sum(r.costs[-1][3] for r in mine), sum(r.cpu_seconds for r in mine)
        numbers = (f"{returns.min():.4g}", f"{ends(random).mean():.4g}", memory, f"{1000 * cpu / steps:.2f}")
        rows.append((f"`{env}`", f"{mine[0].episodes:,}", within(returns), *numbers))
    table, readme = markdown(RETURN, rows), ROOT / "README.md"
    marks = re.compile(r"(<!-- default -->\n).*?(<!-- /default -->)", re.DOTALL)
    readme.write_text(marks.sub(rf"\1{table}\n\2", readme.read_text()))
    return table


PARTS = {"default": built_in, "default_gym": gym}
