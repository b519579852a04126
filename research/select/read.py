"""Select, Fixed and Adaptive in the same memory (docs, lsvi-ucb-select). About 10 minutes on two cores."""

from __future__ import annotations

import numpy as np

from linmdp.io.units import human_bytes
from linmdp.report.tables import markdown
from linmdp.types import RunResult
from research.study import Study, by_env, of_agent, within

HEAD = ("agent", "{} [95% interval]", "memory")


def select(study: Study) -> str:
    """One table per environment, the best agent first."""
    parts = []
    for env, here in by_env(study.results()).items():
        known = here[0].regret is not None
        groups = [of_agent(here, agent) for agent in dict.fromkeys(r.agent for r in here)]
        groups.sort(key=lambda runs: float(np.mean(scores(runs))), reverse=not known)
        head = [name.format("regret" if known else "return of an episode") for name in HEAD]
        table = markdown(head, [row(runs) for runs in groups])
        parts.append(f"`{env}`, {here[0].episodes:,} episodes:\n\n{table}\n")
    return "\n".join(parts)


def scores(runs: list[RunResult]) -> list[float]:
    """Regret at the end or, where V* is not known, the mean return."""
    return [r.reward / r.episodes if r.final_regret is None else r.final_regret for r in runs]


def row(runs: list[RunResult]) -> tuple[str, ...]:
    """What one agent has lost or earned, and what it held."""
    return (f"`{runs[0].agent}`", within(scores(runs)), human_bytes(max(r.peak_bytes for r in runs)))


PARTS = {"select": select}
