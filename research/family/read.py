"""Who is best where (docs, family): those that forget on tasks that change, and tabular agents beside linear ones.

About 20 minutes on two cores; `mixture`, the agents that are told the models of a task that drifts, a minute.
"""

from __future__ import annotations

from collections.abc import Callable

from linmdp.io.units import human_bytes
from linmdp.report.tables import markdown
from linmdp.results.summary import Summary
from research.study import Study, outcome

HEAD = ("agent", "regret [95% interval]", "worst seed", "of LSVI-UCB", "of random", "resets", "memory", "CPU s")


def ranked(sweep: str) -> Callable[[Study], str]:
    """A table for each environment, the best agent first."""
    return lambda study: "\n".join(table(env, here) for env, here in study.summaries(sweep).items())


def table(env: str, here: list[Summary]) -> str:
    """What each agent has lost, and what it took."""
    lost, rows = {s.agent: outcome(s) for s in here}, []
    for s in sorted(here, key=outcome):
        ratios = (f"{outcome(s) / lost['lsvi-ucb']:.2f}", f"{outcome(s) / lost['random']:.3f}")
        worst = "-" if s.curve is None else f"{s.curve[:, -1].max():.4g}"
        cost = (f"{s.resets:.0f}", human_bytes(s.agent_bytes), f"{s.cpu_seconds:.1f}")
        rows.append((f"`{s.agent}`", str(s.regret), worst, *ratios, *cost))
    return f"`{env}`, {here[0].episodes:,} episodes, {here[0].seeds} seeds:\n\n{markdown(HEAD, rows)}\n"


PARTS = {"family": ranked("study"), "mixture": ranked("mixture")}
