"""The paper's experiments in the docs: claims, tables, exponents and figures.

All but `claims_games` read the folder of `linmdp reproduce --scale paper --device cuda --out DIR`: give it with
--store. What is said of the games is read from the tables that the study "games" has written.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np

from linmdp.experiments.paper_claims import FAILS, HOLDS, SAME, Claim
from linmdp.report.tables import in_pages, markdown
from linmdp.results.rows import StoredRun
from linmdp.results.run_folder import read_folder
from linmdp.results.store import existing_store
from research.study import IMAGES, Study, pages

GAMES = ("Alien", "Phoenix")


def sections(page: Path) -> dict[str, str]:
    """The parts of a reproduce.md by their headings."""
    parts = re.split(r"^## ", page.read_text(), flags=re.MULTILINE)[1:]
    return {part.partition("\n")[0]: part.partition("\n")[2].strip() for part in parts}


def cells(name: str, game: str, mode: str) -> dict[str, dict[str, str]]:
    """The rows of a table of a game by agent, each by the names of its columns."""
    text = in_pages(pages(), f"linearize_{name}")
    part = text.partition(f"### {game}, {mode}")[2].partition("###")[0]
    header, _, *rows = [[c.strip() for c in line.split("|")[1:-1]] for line in part.splitlines() if line[:1] == "|"]
    return {row[0]: dict(zip(header, row, strict=True)) for row in rows}


def games(_: Study) -> str:
    """What the paper says of the games, at the last of the 500 episodes."""
    space, time, overhead, reward = [], [], [], []
    cheaper = more = same = True
    for game in GAMES:
        table = cells("table-space_paper", game, "the real")
        held = {_short(agent): row["500 episodes"] for agent, row in table.items()}
        table = cells("table-time_paper", game, "the real")
        took = {_short(agent): _number(row["CPU s, 500 episodes"]) for agent, row in table.items()}
        table = cells("table-reward_quick", game, "as published")
        paid = {_short(a): _number(row["total reward, 500"]) for a, row in table.items() if "tau_rel" not in a}
        space.append(f"{game}: " + ", ".join(f"{agent} {x}" for agent, x in held.items()))
        time.append(f"{game}: " + ", ".join(f"{agent} {x:.0f} s" for agent, x in took.items()))
        reward.append(f"{game}: " + ", ".join(f"{agent} {x:.0f}" for agent, x in paid.items() if ":" not in agent))
        overhead.append(f"{game}: {held['Adaptive']}, Fixed {held['Fixed']}")
        for agent in ("Fixed", "Adaptive"):
            cheaper &= _mib(held[agent]) < _mib(held["LSVI-UCB"]) and took[agent] < took["LSVI-UCB"]
        more &= _mib(held["Adaptive"]) - _mib(held["Fixed"]) >= 2**10
        three = [paid[agent] for agent in ("LSVI-UCB", "Fixed", "Adaptive")]
        same &= max(three) <= (1 + SAME) * min(three)
    rows = [
        Claim(
            "Tables 2, 3", "both need less space and time than LSVI-UCB", "-", "; ".join(space + time), _told(cheaper)
        ),
        Claim("Table 2", "Adaptive needs 2 GiB more, for m past matrices", "-", "; ".join(overhead), _told(more)),
        Claim("Table 1", "the three have the same total reward", "; ".join(reward), "-", _told(same)),
    ]
    return markdown(("where", "the paper says", "published setting, d = 64", "tuned setting, d = 512", "verdict"), rows)


def _number(cell: str) -> float:
    """The mean, without its interval."""
    return float(cell.split()[0].replace(",", ""))


def _short(agent: str) -> str:
    """Without the setting."""
    return agent.partition(",")[0]


def _mib(size: str) -> float:
    number, unit = size.split()
    return float(number) * {"KiB": 2.0**-10, "MiB": 1.0, "GiB": 2.0**10}[unit]


def _told(holds: bool) -> str:
    return HOLDS if holds else FAILS


def machine(study: Study) -> str:
    """Where, and how long it took: the runs for space and time start with the first of those for regret."""
    store = existing_store(study.store)
    runs = list(store.stored())
    stored = [run for run in runs if "storage=features" in run.result.agent]
    start = min(run.finished - run.result.wall_seconds for run in stored)
    tuning = sum(run.result.wall_seconds for run in runs if run.finished < start)  # in one batch, each with its share
    minutes = (max(run.finished for run in runs) - start + tuning) / 60
    (where,) = read_folder(study.store).machines
    cpu = sum(run.result.cpu_seconds for run in stored) / 60
    return (
        f"{len(runs):,} runs in {minutes:.0f} minutes on one NVIDIA H200 and {where['cores']} cores "
        f"({where['processor']}): those for regret on the GPU and, at the same time, those for space and time "
        f"({len(stored)} with stored samples, {cpu:.0f} CPU minutes) on 14 cores. {_equal(runs)}"
    )


def _equal(runs: Sequence[StoredRun]) -> str:
    """How many runs were played on both, and in how many of them regret is the same."""
    twice: dict[tuple[str, int, int], list[np.ndarray]] = {}
    for run in (run.result for run in runs):
        if "storage=" in run.agent and run.regret is not None:
            agent = run.agent.replace("storage=features", "storage=counts")
            twice.setdefault((agent, run.episodes, run.seed), []).append(run.regret)
    both = [curves for curves in twice.values() if len(curves) > 1]
    same = sum(all(np.array_equal(curves[0], curve) for curve in curves) for curves in both)
    return (
        f"{len(both)} runs were played on the GPU and on a processor, too: in {same} of them the stored curves of "
        "regret are equal bit for bit."
    )


def section(heading: str) -> Callable[[Study], str]:
    """A part of reproduce.md as it is."""
    return lambda study: sections(study.store / "reproduce.md")[heading]


def items(study: Study) -> str:
    """The figures, and what the paper says of each."""
    for picture in study.store.glob("fig-*.png"):
        shutil.copy(picture, IMAGES / picture.name)
    found = sections(study.store / "reproduce.md")
    shown = [f"### {name}\n\n{figures(text)}" for name, text in found.items() if name not in SECTIONS.values()]
    return "\n\n".join(shown).replace("](fig-", "](images/fig-")


def figures(text: str) -> str:
    """Without the tables and what announces them, which the folder has."""
    text = re.sub(r"(?:^[^\n|]+:\n\n)?(?:^\|.*\n?)+\n?", "", f"{text}\n", flags=re.MULTILINE)
    return re.sub(r"\n{3,}", "\n\n", text).strip()


SECTIONS = {"claims": "claims", "bounds": "bounds: exponents of K"}
PARTS = {
    "claims_games": games,
    "claims_machine": machine,
    "reproduce": items,
} | {name: section(heading) for name, heading in SECTIONS.items()}
