"""What is learned with no parameter on Gymnasium's tasks: the table of the README. Hours of one core."""

from __future__ import annotations

from linmdp.io.units import human_bytes
from linmdp.report.tables import markdown
from linmdp.results.summary import most
from research.study import Study, by_env, ends, of_agent, within

RETURN = ("task", "episodes", "return [95% interval]", "worst seed", "random")
TAKEN = ("agent memory", "while planning", "CPU ms a step")


def gym(study: Study) -> str:
    """Returns at the end."""
    rows = []
    for env, here in by_env(study.results()).items():
        mine, random = of_agent(here, "auto"), of_agent(here, "random")
        returns, memory = ends(mine), [most(r.peak_bytes for r in mine), most(r.planning_bytes for r in mine)]
        cpu = 1000 * sum(r.cpu_seconds for r in mine) / sum(r.costs[-1][3] for r in mine)
        numbers = (within(returns), f"{returns.min():.4g}", f"{ends(random).mean():.4g}")
        rows.append((f"`{env}`", f"{mine[0].episodes:,}", *numbers, *map(human_bytes, memory), f"{cpu:.2f}"))
    return markdown((*RETURN, *TAKEN), rows)


PARTS = {"default": gym}
