"""The picture of the README, memory against regret, and its figures, from the store of its sweep, run if it is missing.

.venv/bin/python docs/measure_memory.py DIR    about 2 minutes on two cores
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

from linmdp.io.files import output_folder
from linmdp.io.units import human_bytes
from linmdp.report.figures import tradeoff_figure
from linmdp.report.section_data import Section, sections_of
from linmdp.report.style import line_styles
from linmdp.results.run_folder import read_folder
from linmdp.results.store import Store
from linmdp.results.summary import Summary
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
    readme = DOCS.parent / "README.md"
    said = "; ".join(sentence(s, styles[s.agent].name) for s in section.learners)
    marks = re.compile(r"(<!-- memory -->\n).*?(\n<!-- /memory -->)", re.DOTALL)
    readme.write_text(
        marks.sub(rf"\g<1>Regret and peak memory: {said}; random {_random(section):.0f}.\2", readme.read_text())
    )


def sentence(s: Summary, name: str) -> str:
    """What an agent loses, and in how much memory."""
    assert s.regret is not None
    return f"{name.partition(':')[0]}: {s.regret.mean:.0f} in {human_bytes(s.agent_bytes)}"


def _random(section: Section) -> float:
    return next(section.level(s).mean for s in section.summaries if s.agent == "random")


if __name__ == "__main__":
    main()
