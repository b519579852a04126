"""What is learned with no parameter on Gymnasium's tasks: the table of the README. Hours of one core."""

from __future__ import annotations

from linmdp.io.units import human_bytes
from linmdp.report.tables import markdown
from research.study import Study, by_env, ends, of_agent, within

RETURN = ("task", "episodes", "return [95% interval]", "worst seed", "random", "agent memory", "CPU ms a step")


def gym(study: Study) -> str:
    """Returns at the end."""
    rows = []
    for env, here in by_env(study.results()).items():
        mine, random = of_agent(here, "auto"), of_agent(here, "random")
        returns, memory = ends(mine), human_bytes(max(r.peak_bytes for r in mine))
        steps, cpu = sum(r.costs[-1][3] for r in mine), sum(r.cpu_seconds for r in mine)
        numbers = (f"{returns.min():.4g}", f"{ends(random).mean():.4g}", memory, f"{1000 * cpu / steps:.2f}")
        rows.append((f"`{env}`", f"{mine[0].episodes:,}", within(returns), *numbers))
    return markdown(RETURN, rows)


PARTS = {"default": gym}
