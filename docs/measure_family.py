"""The tables of docs/family.md from the store of examples/family.toml. What the store does not have yet is run.

.venv/bin/python docs/measure_family.py STORE            about 20 minutes on two cores from an empty store
.venv/bin/python docs/measure_family.py STORE mixture    the same for examples/mixture.toml (docs, tabular): a minute
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

from linmdp.io.files import output_folder
from linmdp.io.units import human_bytes
from linmdp.report.tables import markdown
from linmdp.results.store import Store
from linmdp.results.summary import Summary, by_agent
from linmdp.runner.sweep import plan, read_sweep, run_key, run_sweep

DOCS = Path(__file__).parent
HEAD = ("agent", "regret [95% interval]", "worst seed", "of LSVI-UCB", "of random", "resets", "memory", "CPU s")


def main() -> None:
    """One table per environment."""
    name = sys.argv[2] if len(sys.argv) > 2 else "family"
    jobs, store = plan(read_sweep(DOCS.parent / f"examples/{name}.toml")), Store(output_folder(Path(sys.argv[1])))
    run_sweep(jobs, store, progress=True)
    summaries = by_agent(list(store.results({run_key(job) for job in jobs})))
    parts = []
    for env in dict.fromkeys(job.env for job in jobs):
        here = {s.agent: s for s in summaries if s.env == env}
        first = next(iter(here.values()))
        rows = [row(s, here) for s in sorted(here.values(), key=lost)]
        parts.append(f"`{env}`, {first.episodes:,} episodes, {first.seeds} seeds:\n\n{markdown(HEAD, rows)}\n")
    (DOCS / f"generated/{name}.md").write_text("\n".join(parts))


def lost(s: Summary) -> float:
    """Mean regret at the end."""
    return s.regret.mean if s.regret else np.inf


def row(s: Summary, here: dict[str, Summary]) -> tuple[str, ...]:
    """What one agent has lost, and what it took."""
    ratios = (f"{lost(s) / lost(here['lsvi-ucb']):.2f}", f"{lost(s) / lost(here['random']):.3f}")
    worst = f"{s.curve[:, -1].max():.4g}" if s.curve is not None else "-"
    cost = (f"{s.resets:.0f}", human_bytes(s.agent_bytes), f"{s.cpu_seconds:.1f}")
    return (f"`{s.agent}`", str(s.regret), worst, *ratios, *cost)


if __name__ == "__main__":
    main()
