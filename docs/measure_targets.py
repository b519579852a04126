"""The table of what the learners are held to on tasks, from the store of examples/tasks.toml; what is missing is run.

.venv/bin/python docs/measure_targets.py STORE     about ten minutes on two cores from an empty store
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

from linmdp.envs.planning import optimum
from linmdp.experiments.stored_runs import grouped
from linmdp.experiments.tasks import ends, lost, returns
from linmdp.io.files import output_folder
from linmdp.io.units import human_bytes
from linmdp.report.tables import markdown
from linmdp.results.stats import mean_interval
from linmdp.results.store import Store
from linmdp.runner.registry import make_model, model_known
from linmdp.runner.sweep import plan, read_sweep, run_key, run_sweep
from linmdp.types import Array

DOCS = Path(__file__).parent


def best_hundred(rewards: Array) -> float:
    """The largest mean of a hundred points of the curve in a row."""
    n = min(100, len(rewards))
    return float(np.convolve(rewards, np.ones(n) / n, "valid").max())


def main() -> None:
    """One row an environment, agent and K."""
    jobs, store = plan(read_sweep(DOCS.parent / "examples" / "tasks.toml")), Store(output_folder(Path(sys.argv[1])))
    run_sweep(jobs, store, progress=True)
    results, rows = list(store.results({run_key(job) for job in jobs})), []
    for K in sorted({r.episodes for r in results}):
        for (env, agent), runs in grouped([r for r in results if r.episodes == K]).items():
            late = ends(runs)
            behind = lost(runs, float(optimum(make_model(env)).V[0, 0])) if model_known(env) else None
            interval = mean_interval(late)
            rows.append(
                (
                    f"`{env}`",
                    f"`{agent}`",
                    f"{K:,}",
                    str(len(runs)),
                    f"{interval.mean:.3g} [{interval.low:.3g}, {interval.high:.3g}]",
                    ", ".join(f"{x:.3g}" for x in np.sort(late)),
                    ", ".join(f"{x:.3g}" for x in np.sort([best_hundred(returns(r)) for r in runs])),
                    "-" if behind is None else f"{behind.max():.1%} at most",
                    human_bytes(max(r.peak_bytes for r in runs)),
                )
            )
    header = (
        "task",
        "agent",
        "K",
        "seeds",
        "return, last tenth",
        "each seed",
        "best 100 in a row",
        "below the optimum",
        "memory",
    )
    (DOCS / "generated/tasks_targets.md").write_text(markdown(header, rows) + "\n")


if __name__ == "__main__":
    main()
