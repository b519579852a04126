"""A comparison in words: what each agent costs and loses against the first one."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from linmdp.report.style import BASELINES, short_name
from linmdp.results.stats import paired_ratio
from linmdp.results.summary import Summary


def in_words(summaries: Sequence[Summary]) -> list[str]:
    """One sentence for each learner after the first, over the seeds that both have run."""
    learners = [s for s in summaries if s.agent.partition(":")[0] not in BASELINES and s.curve is not None]
    return [_sentence(learners[0], other) for other in learners[1:] if other.seeds == learners[0].seeds]


def _sentence(base: Summary, other: Summary) -> str:
    assert base.curve is not None
    assert other.curve is not None
    memory = other.agent_bytes / base.agent_bytes if base.agent_bytes else float("inf")
    first = base.curve[:, -1]
    if not np.all(first > 0):
        return (
            f"{short_name(other.agent)} uses {memory:.2f}x the memory of {short_name(base.agent)}, which has no regret."
        )
    ratio = paired_ratio(other.curve[:, -1], first)
    spread = f", 95% interval {ratio.low:.2f} to {ratio.high:.2f}" if other.seeds > 1 else ""
    verb = "loses" if ratio.mean >= 1 else "has only"
    seeds = f"{other.seeds} seed{'s' * (other.seeds > 1)}, paired"
    return (
        f"{short_name(other.agent)} uses {memory:.2f}x the memory of {short_name(base.agent)} "
        f"and {verb} {ratio.mean:.2f}x its regret{spread} ({seeds})."
    )
