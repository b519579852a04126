"""Who is best where: the fixed suite (docs, benchmark). About ten minutes on one core."""

from __future__ import annotations

from contextlib import closing

from linmdp.experiments.benchmark import run_benchmark
from linmdp.io.files import output_folder
from linmdp.io.units import human_bytes
from linmdp.report.benchmark import Benchmark
from linmdp.report.tables import markdown
from linmdp.results.store import Store
from research.study import Study, write

AGENTS = (
    "lsvi-ucb",
    "auto",
    "lsvi-ucb-rare-switch",
    "lsvi-ucb-restart",
    "lsvi-ucb-detect",
    "ada-lsvi-ucb-restart",
    "opt-wlsvi",
    "lsvi-ucb-fixed",
    "lsvi-ucb-adaptive",
    "q-learning",
)
TOLD_APART = 0.02
"""Scores that differ by less are shown as equals."""


def benchmark(study: Study) -> None:
    """All tables of one benchmark."""
    with closing(Store(output_folder(study.store))) as store:
        found = run_benchmark(AGENTS, store, scale="quick", progress=True, say=print)
    assert found is not None
    write("benchmark_scores", found.families())
    write("benchmark_kinds", kinds(found))
    write("benchmark_costs", costs(found))
    write("benchmark_reasons", "\n".join(f"- {words}" for words in found.reasons()))


def kinds(found: Benchmark) -> str:
    """The best of each kind of task, and who comes close to it."""
    rows = []
    for kind in dict.fromkeys(s.kind for s in found.scores):
        ranked = sorted(found.agents, key=lambda agent: -found.mean(agent, kind).mean)
        top = found.mean(ranked[0], kind).mean
        close = [agent for agent in ranked if found.mean(agent, kind).mean >= top - TOLD_APART]
        others = [agent for agent in ranked if agent not in close][:3]
        rows.append((kind, *(", ".join(_named(found, agent, kind) for agent in part) for part in (close, others))))
    return markdown(("kind of task", f"best, and all within {TOLD_APART}", "next"), rows)


def _named(found: Benchmark, agent: str, kind: str) -> str:
    return f"`{agent}` {found.mean(agent, kind).mean:.2f}"


def costs(found: Benchmark) -> str:
    """Score beside memory and time."""
    rows = []
    for agent in sorted(found.agents, key=lambda agent: -found.mean(agent).mean):
        own, mean = found.of(agent), found.mean(agent)
        score = f"{mean.mean:.2f} [{mean.low:.2f}, {mean.high:.2f}]"
        most, seconds = human_bytes(max(s.agent_bytes for s in own)), sum(s.cpu_seconds for s in own)
        rows.append((f"`{agent}`", score, f"{sum(not s.reason for s in own)} of {len(own)}", most, f"{seconds:.0f}"))
    rows += [("best known", "1", "", "", ""), ("`random`", "0", "", "", "")]
    return markdown(("agent", "score [95% interval]", "tasks it runs on", "most memory", "CPU s a seed"), rows)


PARTS = {"benchmark": benchmark}
