"""The picture of the docs' first page, memory against regret, from the store of its sweep, run if it is missing.

.venv/bin/python docs/measure_memory.py DIR    about 2 minutes on two cores
"""

from __future__ import annotations

import sys
from pathlib import Path

from linmdp.io.files import output_folder
from linmdp.report.figures import tradeoff_figure
from linmdp.report.section_data import sections_of
from linmdp.report.style import line_styles
from linmdp.results.run_folder import read_folder
from linmdp.results.store import Store
from linmdp.runner.sweep import plan, read_sweep, run_sweep

DOCS = Path(__file__).parent
NAMES = {
    "lsvi-ucb:": "LSVI-UCB, exact: every sample is stored",
    "lsvi-ucb-fixed:beta=0.05,lam=0.1,storage=features,rho=0.5": "Fixed, resets (rho=0.5)",
    "lsvi-ucb-fixed:beta=0.05,lam=0.1,storage=features,rho=0.75": "Fixed, resets (rho=0.75)",
    "lsvi-ucb-adaptive": "Adaptive, resets",
    "lsvi-ucb-fold:": "Fold, the same beta and lambda",
    "lsvi-ucb-fold": "Fold, no parameter",
    "random": "random",
    "optimal": "optimal",
}
"""What the agents are called, by how they begin."""


def main() -> None:
    """Run what is missing, and draw."""
    folder = output_folder(Path(sys.argv[1]))
    run_sweep(plan(read_sweep(DOCS.parent / "examples/memory.toml")), Store(folder), progress=True)
    (section,) = sections_of(read_folder(folder).results)
    styles = {
        agent: style._replace(name=next(words for start, words in NAMES.items() if agent.startswith(start)))
        for agent, style in line_styles(s.agent for s in section.summaries).items()
    }
    (DOCS / "images/memory.png").write_bytes(tradeoff_figure(section, styles).png)


if __name__ == "__main__":
    main()
