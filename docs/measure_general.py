"""The tables of docs/general-suite.md. What the store does not have is run.

.venv/bin/python docs/measure_general.py STORE [AGENT...]     quick: about 3 minutes on 2 cores for the agents below
.venv/bin/python docs/measure_general.py STORE --full [AGENT...]
"""

from __future__ import annotations

import sys
from contextlib import closing
from pathlib import Path

from linmdp.envs.general import FAMILIES
from linmdp.envs.general.perturb import PERTURBATIONS
from linmdp.experiments.general import general_suite
from linmdp.experiments.general_runs import run_general
from linmdp.io.files import output_folder
from linmdp.report.tables import markdown
from linmdp.results.store import Store

DOCS = Path(__file__).parent
AGENTS = ("random", "lsvi-ucb-fold", "stream-q")


def main() -> None:
    """Run, and write."""
    full = "--full" in sys.argv
    folder, *agents = [word for word in sys.argv[1:] if word != "--full"]
    scale = "full" if full else "quick"
    write("general_families", families())
    write("general_perturbations", perturbations())
    with closing(Store(output_folder(Path(folder)))) as store:
        parts = [
            run_general(agents or AGENTS, store, scale=scale, warm_up=warm_up, progress=True, say=print)
            for warm_up in ("counted", "given")
        ]
    write("general_scores", "\n\n".join(map(str, parts)))


def write(name: str, text: str) -> None:
    """A generated part of a page."""
    (DOCS / f"generated/{name}.md").write_text(text + "\n")


def families() -> str:
    """What the suite is made of."""
    rows = []
    for name in dict.fromkeys(task.family for task in general_suite("quick").tasks):
        family = FAMILIES[name]
        words = (sys.modules[family.make.__module__].__doc__ or "").splitlines()[0].rstrip(".")
        episodes = " / ".join(f"{family.episodes[scale]:,}" for scale in ("quick", "full"))
        rows.append((family.half, name, words, str(family.H), episodes, family.extra or "-"))
    rows.sort(key=lambda row: ("made", "kept", "memory").index(row[0]))
    return markdown(("half", "family", "what it is", "H at most", "episodes, quick / full", "extra"), rows)


def perturbations() -> str:
    """What must not matter."""
    return markdown(("name", "of", "what"), [(f"`{name}`", p.kind, p.words) for name, p in PERTURBATIONS.items()])


if __name__ == "__main__":
    main()
