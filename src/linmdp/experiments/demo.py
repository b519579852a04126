"""`linmdp demo`: what linmdp is for, in a minute: four small studies, in the terminal and on one page."""

from __future__ import annotations

import shlex
import warnings
from contextlib import closing
from pathlib import Path
from typing import NamedTuple

from linmdp.errors import LinMDPWarning, check_int
from linmdp.experiments import paper, study
from linmdp.experiments.paper_findings import paper_figure
from linmdp.experiments.stored_runs import Say
from linmdp.io.files import output_folder, write_atomic
from linmdp.report.figures import curves_figure, returns_figure, tradeoff_figure
from linmdp.report.narrative import paired_comparisons
from linmdp.report.section_data import sections_of
from linmdp.report.story import Chapter, story
from linmdp.report.style import distinct_names, line_styles, pyplot
from linmdp.report.tables import comparison_table
from linmdp.results.run_folder import read_folder
from linmdp.results.store import Store
from linmdp.results.summary import by_agent
from linmdp.results.verdict import verdicts, without_advice
from linmdp.runner.batch import Job
from linmdp.runner.execute import saving
from linmdp.runner.sweep import run_sweep
from linmdp.types import RunResult

PAGE = "demo.html"
DRAW = {"returns": returns_figure, "curves": curves_figure, "tradeoff": tradeoff_figure}
LEAD = (
    "Online reinforcement learning with regret guarantees, in memory that you choose. Everything below was learned "
    "just now, on this machine; the commands under the figures do it again."
)


class Part(NamedTuple):
    """One study of the demo: who learns where, and how it is shown; the agents of `paper` follow from beta."""

    name: str
    title: str
    words: str
    env: str
    episodes: int
    seeds: int
    eval_every: int
    picture: str
    agents: tuple[str, ...] = ()
    beta: float = 0.0

    def jobs(self) -> list[Job]:
        """Every run that it needs."""
        return [
            Job(self.env, agent, self.episodes, i, self.eval_every)
            for agent in self.agents or [agent for panel in self.panels().values() for agent in panel]
            for i in range(self.seeds)
        ]

    def panels(self) -> dict[str, list[str]]:
        """The agents of each setting of the paper."""
        three = paper.agents("algorithms", paper.SCALES["quick"])
        return {
            setting: [*(paper.with_setting(agent, setting, self.beta) for agent in three), "random", "optimal"]
            for setting in paper.SETTINGS
        }

    def command(self) -> str:
        """What runs it again."""
        if self.picture == "paper":
            return "linmdp reproduce fig-regret --out reproduced"
        learners = [agent for agent in self.agents if agent not in paper.BASELINES]
        sizes = {
            "--episodes": self.episodes,
            "--seeds": self.seeds,
            "--eval-every": self.eval_every,
        }
        usual = {"--eval-every": 1}
        options = [str(x) for name, value in sizes.items() if value != usual.get(name) for x in (name, value)]
        return shlex.join(["linmdp", "compare", self.env, *learners, *options])


PARTS = tuple(Part(**part) for part in study("demo")["parts"])


def demo(out: Path, jobs: int | None, say: Say) -> Path:
    """Run what the folder does not have yet, say what came out, and write the page."""
    if jobs is not None:
        check_int("run", "jobs", jobs, low=1)
    pyplot()  # before anything runs that cannot be drawn
    chapters = []
    with closing(Store(output_folder(out))) as store, warnings.catch_warnings():
        warnings.simplefilter("ignore", LinMDPWarning)  # they are kept with each run
        store.note("command", f"linmdp demo --out {out}")
        for number, part in enumerate(PARTS, start=1):
            say(f"\n{number} of {len(PARTS)}: {part.title} ({part.env}, {part.episodes} episodes)")
            planned = list(dict.fromkeys(saving(out, job) for job in part.jobs()))
            run_sweep(planned, store, processes=jobs, progress=True)
            mine = {(job.env, job.agent, job.episodes, job.seed) for job in planned}
            results = [r for r in read_folder(out).results if (r.env, r.agent, r.episodes, r.seed) in mine]
            shown = _shown(part, results)
            say(f"\n{comparison_table(by_agent(shown), _names(shown).__getitem__, chosen=False)}")
            chapters.append(_chapter(part, results, out))
            say("\n".join(chapters[-1].found))
    page = out / PAGE
    write_atomic(page, story("linmdp in a minute", LEAD, chapters, next_steps(out)).encode())
    return page


def next_steps(out: Path) -> list[str]:
    """Commands to go on with."""
    return [
        f"linmdp report {shlex.quote(str(out))}",
        "linmdp run gym:MountainCar-v0 lsvi-ucb-fold --episodes 100",
        "linmdp agents; linmdp envs",
    ]


def _shown(part: Part, results: list[RunResult]) -> list[RunResult]:
    """In the terminal: of the paper's figure the setting in which agents learn."""
    panel = part.panels()["learning"] if part.picture == "paper" else part.agents
    return [r for agent in panel for r in results if r.agent == agent]


def _names(results: list[RunResult]) -> dict[str, str]:
    names = distinct_names(r.agent for r in results)
    return {agent: "greedy (beta=0)" if ":beta=0," in agent else name for agent, name in names.items()}


def _chapter(part: Part, results: list[RunResult], out: Path) -> Chapter:
    shown = _shown(part, results)
    names = _names(shown)
    if part.picture == "paper":
        found = {s.agent: s for s in by_agent(results)}
        panels = {setting: [found[agent] for agent in agents] for setting, agents in part.panels().items()}
        paper_figure("fig-regret", panels, part.beta, out)
        picture = (out / "fig-regret.svg").read_bytes()
    else:
        (section,) = sections_of(shown)
        styles = {agent: style._replace(name=names[agent]) for agent, style in line_styles(names).items()}
        picture = DRAW[part.picture](section, styles).svg
        write_atomic(out / f"{part.name}.svg", picture)
    words = [f"{names[agent]}: {without_advice(found)}" for agent, found in verdicts(shown).items()]
    if part.picture == "tradeoff":
        words += paired_comparisons(by_agent(shown), names)
    return Chapter(part.title, part.words, words, picture, part.command())
