"""Who is best where (docs, family): those that forget on tasks that change, and tabular agents beside linear ones.

About 20 minutes on two cores.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import partial

from linmdp.report.tables import markdown
from linmdp.results.summary import Summary
from research.study import Study, outcome


def beside(sweep: str, study: Study) -> str:
    """A table for all environments that the same agents play: the mean regret in each."""
    groups: dict[frozenset[str], dict[str, list[Summary]]] = {}
    for env, here in study.summaries(sweep).items():
        groups.setdefault(frozenset(s.agent for s in here), {})[env] = here
    return "\n\n".join(map(table, groups.values()))


def table(envs: dict[str, list[Summary]]) -> str:
    """A row for each agent but the optimal one."""
    first, *others = envs.values()
    rows = []
    for s in sorted(first, key=outcome):
        mine = (s, *(next(o for o in here if o.agent == s.agent) for here in others))
        rows.append((f"`{s.agent}`", *(f"{float(f'{outcome(one):.4g}'):,g}" for one in mine)))
    return markdown(("agent", *map(title, envs)), [row for row in rows if row[0] != "`optimal`"])


def title(env: str) -> str:
    """The base and the kind of a task that drifts."""
    return ", ".join(re.findall("(?:base|kind)=([a-z]+)", env)) or env


PARTS: dict[str, Callable[[Study], str]] = {"family": partial(beside, "study")}
