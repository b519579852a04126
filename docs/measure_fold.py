"""The tables of the page on Fold, from the store of its two sweeps. What the store does not have yet is run.

.venv/bin/python docs/measure_fold.py STORE [TABLE...]    about 40 minutes on two cores from an empty store
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

from linmdp.io.files import output_folder
from linmdp.report.narrative import paired_comparisons
from linmdp.report.style import short_name
from linmdp.report.tables import comparison_table, markdown
from linmdp.results.stats import mean_interval
from linmdp.results.store import Store
from linmdp.results.summary import Summary, by_agent
from linmdp.runner.sweep import plan, read_sweep, run_key, run_sweep
from linmdp.types import Array

DOCS = Path(__file__).parent
SPECS = {"fold": "fold-12000.toml", "fold_ablation": "fold.toml", "fold_paths": "paths.toml"}


def paths_table(summaries: list[Summary]) -> str:
    """Regret, and the episodes that went by until an agent had found the path (see `found_after`)."""
    rows = []
    for s in summaries:
        assert s.regret is not None
        assert s.curve is not None
        half = (
            next(t.regret.mean for t in summaries if t.env == s.env and t.agent == "random" and t.regret)
            / s.episodes
            / 2
        )
        found = mean_interval(np.array([found_after(curve, half, s.episodes) for curve in s.curve]))
        regret = f"{s.regret.mean:.0f} [{s.regret.low:.0f}, {s.regret.high:.0f}]"
        rows.append((s.env, short_name(s.agent), regret, f"{found.mean:.0f} [{found.low:.0f}, {found.high:.0f}]"))
    return markdown(("environment", "agent", "regret", "episodes until it loses less than half of random"), rows)


def found_after(curve: Array, half: float, episodes: int) -> float:
    """The last episode in which the regret was still at least `half`, an episode of random play being twice that."""
    step = episodes / len(curve)
    late = np.flatnonzero(np.diff(curve, prepend=0.0) / step >= half)
    return float((late[-1] + 1) * step) if len(late) else 0.0


def main() -> None:
    """Write the tables named, or all."""
    store = Store(output_folder(Path(sys.argv[1])))
    for name, spec in SPECS.items():
        if sys.argv[2:] and name not in sys.argv[2:]:
            continue
        jobs = plan(read_sweep(DOCS.parent / "examples" / spec))
        run_sweep(jobs, store, progress=True)
        place = {(job.env, job.agent): i for i, job in enumerate(jobs)}
        summaries = by_agent(list(store.results({run_key(job) for job in jobs})))
        summaries.sort(key=lambda s: place[s.env, s.agent])
        if name == "fold_paths":
            summaries.sort(key=lambda s: s.env, reverse=True)
        table = paths_table(summaries) if name == "fold_paths" else comparison_table(summaries, short_name)
        words = [sentence for sentence in paired_comparisons(summaries) if name == "fold"]
        (DOCS / f"generated/{name}.md").write_text("\n\n".join([table, *words]) + "\n")


if __name__ == "__main__":
    main()
