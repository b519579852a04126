"""Whether CartPole stays learned: the end of each seed against its best hundred episodes. What DIR lacks is run.

.venv/bin/python docs/measure_relapse.py DIR
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

from linmdp.io.files import output_folder
from linmdp.report.tables import markdown
from linmdp.results.stats import mean_interval
from linmdp.results.store import Store
from linmdp.runner.sweep import plan, read_sweep, run_sweep

DOCS = Path(__file__).parent
WINDOW, KEPT = 100, 0.9
"""Episodes that are averaged, and the share of the best that a seed has to keep."""


def main() -> None:
    """Write the table."""
    store = Store(output_folder(Path(sys.argv[1])))
    run_sweep(plan(read_sweep(DOCS.parent / "examples" / "relapse.toml")), store, progress=True)
    rewards = np.stack([r.rewards for r in store.results()])
    store.close()
    means = np.lib.stride_tricks.sliding_window_view(rewards, WINDOW, axis=1).mean(axis=2)
    last, best = means[:, -1], means.max(axis=1)
    header = ("seeds", "last hundred episodes", "worst seed", "least share of its best hundred", f"below {KEPT:.0%}")
    share, returns = last / best, (str(mean_interval(last)), f"{last.min():.4g}")
    row = (str(len(last)), *returns, f"{share.min():.3f}", str((share < KEPT).sum()))
    (DOCS / "generated" / "relapse.md").write_text(markdown(header, [row]) + "\n")


if __name__ == "__main__":
    main()
