"""What studies share: the runs of a sweep, by environment and agent; cells of tables; where they are written."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from linmdp.io.files import output_folder, write_atomic
from linmdp.report.plots import rendered
from linmdp.report.tables import into_pages, markdown
from linmdp.results.curves import late_return
from linmdp.results.stats import mean_interval
from linmdp.results.store import Store
from linmdp.results.summary import Summary, by_agent
from linmdp.runner.batch import Job
from linmdp.runner.sweep import plan, read_sweep, run_key, run_sweep
from linmdp.types import Array, RunResult

HERE = Path(__file__).parent
ROOT = HERE.parent
DOCS = ROOT / "docs"
IMAGES = DOCS / "images"


@dataclass(frozen=True)
class Study:
    """A study as it was asked for; options that were not given are None.

    name : of its folder
    store : the folder in which its runs are kept
    jobs : processes
    stored : run nothing
    seeds, seed : how many, and the first
    """

    name: str
    store: Path
    jobs: int | None = None
    stored: bool = False
    seeds: int | None = None
    seed: int | None = None

    def runs(self, jobs: Sequence[Job]) -> dict[str, RunResult]:
        """By their keys, these runs; those that the store lacks are run first."""
        keys = {run_key(job) for job in jobs}
        with closing(Store(output_folder(self.store))) as store:
            if not self.stored:
                run_sweep(jobs, store, processes=self.jobs, progress=True)
            return {run.key: run.result for run in store.stored() if run.key in keys}

    def results(self, sweep: str = "study") -> list[RunResult]:
        """The runs of a sweep file of this study, in its order; those that the store lacks are run first."""
        jobs = plan(read_sweep(HERE / self.name / f"{sweep}.toml"))
        found = self.runs(jobs)
        return [found[key] for job in jobs if (key := run_key(job)) in found]

    def summaries(self, sweep: str = "study") -> dict[str, list[Summary]]:
        """The agents of a sweep, for each of its environments."""
        return by_env(by_agent(self.results(sweep)))


def by_env(found: Iterable[Any]) -> dict[str, list[Any]]:
    """Runs or summaries of each environment."""
    groups: dict[str, list[Any]] = {}
    for one in found:
        groups.setdefault(one.env, []).append(one)
    return groups


def write(name: str, text: str) -> None:
    """Show it, and put it into the pages that have a place for it."""
    print(text.rstrip(), flush=True)
    into_pages(pages(), name, text)


def pages() -> list[Path]:
    """Where tables stand: README, docs, and the notes of studies."""
    return [ROOT / "README.md", *sorted(DOCS.glob("*.md")), *sorted(HERE.glob("*/*.md"))]


def columns(table: str, names: Iterable[str]) -> str:
    """A table with some of its columns, in its order."""
    header, _, *rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in table.strip().splitlines()]
    kept = [i for i, name in enumerate(header) if name in set(names)]
    return markdown([header[i] for i in kept], [[row[i] for i in kept] for row in rows])


def save_picture(figure: Any, name: str) -> None:
    """docs/images/NAME.png."""
    write_atomic(IMAGES / f"{name}.png", rendered(figure, "png"))


def outcome(s: Summary) -> float:
    """Mean regret at the end or, where V* is unknown, the mean return of an episode."""
    return (s.regret or s.reward).mean


def ends(runs: Sequence[RunResult]) -> Array:
    """The mean return of an episode in the last tenth of each run."""
    return np.array([late_return(run) for run in runs])


def within(values: Sequence[float] | Array, form: str = ".4g") -> str:
    """The mean and its 95% interval; the mean alone where there is one value, or where all are equal."""
    return mean_interval(np.asarray(values)).text(lambda x: f"{x:{form}}")


def of_agent(results: Iterable[RunResult], agent: str) -> list[RunResult]:
    """The runs of one agent."""
    return [r for r in results if r.agent == agent]


def shown(value: float | None, form: str = ".3g") -> str:
    """A number, or "-" where there is none."""
    return "-" if value is None else f"{value:{form}}"
