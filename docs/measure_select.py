"""The tables of docs/lsvi-ucb-select.md from the store of examples/select.toml. What the store lacks is run.

.venv/bin/python docs/measure_select.py STORE     about 10 minutes on two cores from an empty store
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

from linmdp.io.files import output_folder
from linmdp.io.units import human_bytes
from linmdp.report.tables import markdown
from linmdp.results.stats import mean_interval
from linmdp.results.store import Store
from linmdp.runner.sweep import plan, read_sweep, run_key, run_sweep
from linmdp.types import RunResult

DOCS = Path(__file__).parent
HEAD = ("agent", "{} [95% interval]", "worst seed", "stored", "sum of x, skipped", "plannings", "memory", "CPU s")


def main() -> None:
    """One table per environment, the best agent first."""
    jobs, store = plan(read_sweep(DOCS.parent / "examples" / "select.toml")), Store(output_folder(Path(sys.argv[1])))
    run_sweep(jobs, store, progress=True)
    results = list(store.results({run_key(job) for job in jobs}))
    parts = []
    for env in dict.fromkeys(job.env for job in jobs):
        here = [r for r in results if r.env == env]
        known = here[0].regret is not None
        agents = sorted(dict.fromkeys(r.agent for r in here), key=lambda agent: np.mean(scores(of(agent, here))))
        rows = [row(agent, of(agent, here)) for agent in (agents if known else agents[::-1])]
        head = [name.format("regret" if known else "return of an episode") for name in HEAD]
        parts.append(f"`{env}`, {here[0].episodes:,} episodes:\n\n{markdown(head, rows)}\n")
    (DOCS / "generated/select.md").write_text("\n".join(parts))


def of(agent: str, results: list[RunResult]) -> list[RunResult]:
    """The runs of one agent."""
    return [r for r in results if r.agent == agent]


def scores(runs: list[RunResult]) -> list[float]:
    """Regret at the end or, where V* is not known, the mean return."""
    return [r.reward / r.episodes if r.final_regret is None else r.final_regret for r in runs]


def row(agent: str, runs: list[RunResult]) -> tuple[str, ...]:
    """What one agent has lost or earned, and what it took."""
    found, told = scores(runs), [r.diagnostics for r in runs if r.diagnostics]
    worst = min(found) if runs[0].regret is None else max(found)
    selected = ("-", "-")
    if told:
        selected = (
            f"{np.mean([t['stored'] for t in told]):,.0f}",
            f"{np.mean([t['skipped_norms'] for t in told]):,.0f}",
        )
    cost = (human_bytes(max(r.peak_bytes for r in runs)), f"{np.mean([r.cpu_seconds for r in runs]):.1f}")
    plannings = f"{np.mean([r.switches for r in runs]):,.0f}"
    return (f"`{agent}`", str(mean_interval(np.array(found))), f"{worst:.4g}", *selected, plannings, *cost)


if __name__ == "__main__":
    main()
