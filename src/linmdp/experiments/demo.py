"""`linmdp demo`: what linmdp is for, in a minute: four small studies, in the terminal and on one page."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path
from typing import NamedTuple

from linmdp.errors import without_warnings
from linmdp.experiments import study
from linmdp.experiments.stored_runs import Say
from linmdp.io.files import output_folder
from linmdp.report.html import plotly_script, write_report
from linmdp.report.narrative import paired_comparisons
from linmdp.report.plots import distinct_names
from linmdp.report.tables import comparison_table
from linmdp.results.store import Store
from linmdp.results.summary import by_agent
from linmdp.results.verdict import verdicts, without_advice
from linmdp.runner.batch import Job
from linmdp.runner.execute import saving
from linmdp.runner.sweep import run_key, run_sweep

PAGE = "demo.html"


class Part(NamedTuple):
    """One study of the demo: what it shows, and who learns where."""

    title: str
    words: str
    env: str
    agents: tuple[str, ...]
    episodes: int
    seeds: int
    eval_every: int

    def jobs(self, out: Path) -> list[Job]:
        """Every run that it needs; agents are saved in the folder."""
        runs = ((agent, seed) for agent in self.agents for seed in range(self.seeds))
        jobs = (Job(self.env, agent, self.episodes, seed, self.eval_every) for agent, seed in runs)
        return [saving(out, job) for job in jobs]


PARTS = tuple(Part(**part) for part in study("demo")["parts"])


def demo(out: Path, jobs: int | None, say: Say) -> Path:
    """Run what the folder does not have yet, say what came out, and write the page."""
    plotly_script()  # before anything runs that cannot be drawn
    with closing(Store(output_folder(out))) as store, without_warnings():  # they are kept with each run
        store.note("command", f"linmdp demo --out {out}")
        for number, part in enumerate(PARTS, start=1):
            say(f"\n{number} of {len(PARTS)}: {part.title} ({part.env}, {part.episodes} episodes)")
            planned = part.jobs(out)
            run_sweep(planned, store, processes=jobs, progress=True)
            results = list(store.results({run_key(job) for job in planned}))
            names, summaries = distinct_names(r.agent for r in results), by_agent(results)
            say(f"\n{comparison_table(summaries, names.__getitem__, chosen=False)}\n")
            said = [f"{names[agent]}: {without_advice(words)}" for agent, words in verdicts(results).items()]
            say("\n".join([*said, *paired_comparisons(summaries, names)]))
    about = {part.env: (part.title, part.words) for part in PARTS}
    return write_report(out, out / PAGE, about).page
