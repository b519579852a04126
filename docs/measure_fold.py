"""The tables of the page on Fold, from the store of its two sweeps. What the store does not have yet is run.

.venv/bin/python docs/measure_fold.py STORE     about 40 minutes on two cores from an empty store
"""

from __future__ import annotations

import sys
from pathlib import Path

from linmdp.report.style import short_name
from linmdp.report.tables import comparison_table
from linmdp.report.words import in_words
from linmdp.results.files import output_folder
from linmdp.results.store import Store
from linmdp.results.summary import by_agent
from linmdp.runner.sweep import plan, read_sweep, run_key, run_sweep

DOCS = Path(__file__).parent
SPECS = {"fold": "fold-12000.toml", "fold_ablation": "fold.toml"}


def main() -> None:
    store = Store(output_folder(Path(sys.argv[1])))
    for name, spec in SPECS.items():
        jobs = plan(read_sweep(DOCS.parent / "examples" / spec))
        run_sweep(jobs, store, progress=True)
        place = {job.agent: i for i, job in enumerate(jobs)}
        summaries = by_agent(list(store.results({run_key(job) for job in jobs})))
        summaries.sort(key=lambda s: place[s.agent])
        table = comparison_table(summaries, short_name)
        words = [sentence for sentence in in_words(summaries) if name == "fold"]
        (DOCS / f"generated/{name}.md").write_text("\n\n".join([table, *words]) + "\n")


if __name__ == "__main__":
    main()
