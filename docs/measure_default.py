"""The table of `lsvi-ucb` with no parameter, from the store of its sweep. What the store does not have yet is run.

.venv/bin/python docs/measure_default.py DIR
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
from linmdp.runner.sweep import plan, read_sweep, run_sweep

DOCS = Path(__file__).parent
HEAD = ("task", "episodes", "regret [95% interval]", "worst seed", "of random", "agent memory", "CPU s")


def main() -> None:
    """Run what is missing, and write docs/generated/default.md."""
    jobs, store = plan(read_sweep(DOCS.parent / "examples" / "default.toml")), Store(output_folder(Path(sys.argv[1])))
    run_sweep(jobs, store, progress=True)
    results = list(store.results())
    rows = []
    for env in dict.fromkeys(r.env for r in results):
        mine = [r for r in results if (r.env, r.agent) == (env, "lsvi-ucb")]
        regret = np.array([r.final_regret for r in mine])
        random = np.mean([r.final_regret for r in results if (r.env, r.agent) == (env, "random")])
        memory, cpu = max(r.peak_bytes for r in mine), np.mean([r.cpu_seconds for r in mine])
        numbers = (f"{regret.max():.4g}", f"{regret.mean() / random:.3f}", human_bytes(memory), f"{cpu:.1f}")
        rows.append((f"`{env}`", f"{mine[0].episodes:,}", str(mean_interval(regret)), *numbers))
    (DOCS / "generated/default.md").write_text(markdown(HEAD, rows) + "\n")


if __name__ == "__main__":
    main()
