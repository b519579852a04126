"""One look an agent, the same in every figure of a report, on paper and on a light or dark screen."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from linmdp.report.style import BASELINES, PALETTE, short_name

DARK = ("#6cb0f0", "#f29a4a", "#6cc46c", "#c19af0", "#f07fa8", "#cdb83a", "#45c4d4")
"""PALETTE on a dark ground."""
DARK_BASELINES = {"random": "#a6a6a6", "optimal": "#f2f2f2", "constant": "#7d7d7d"}

Dashes = tuple[float, ...]
DASHES: tuple[Dashes, ...] = ((), (6, 2), (2, 1.5), (8, 2, 2, 2), (4, 4))
MARKERS = (("o", "circle"), ("s", "square"), ("D", "diamond"), ("^", "triangle-up"), ("v", "triangle-down"))
"""Once the colours are used up they come again with other dashes and markers (Matplotlib's name, plotly's name)."""


class Look(NamedTuple):
    """`dashes` are lengths in line widths, none for a whole line; `marker` is an index into MARKERS."""

    name: str
    light: str
    dark: str
    dashes: Dashes
    marker: int
    baseline: bool


def is_baseline(agent: str) -> bool:
    """Is it one of the policies that do not learn?"""
    return agent.partition(":")[0] in BASELINES


def looks_of(agents: Iterable[str]) -> dict[str, Look]:
    """A look for each agent, in their order."""
    looks: dict[str, Look] = {}
    learners = 0
    for agent in dict.fromkeys(agents):
        kind = agent.partition(":")[0]
        if is_baseline(agent):
            light, dashes = BASELINES[kind]
            looks[agent] = Look(short_name(agent), light, DARK_BASELINES[kind], dashes[1], 0, True)
            continue
        turn, colour = divmod(learners, len(PALETTE))
        turn %= len(DASHES)
        looks[agent] = Look(short_name(agent), PALETTE[colour], DARK[colour], DASHES[turn], turn, False)
        learners += 1
    return looks


def width_of(index: int) -> float:
    """Each line thinner than the one under it: curves that coincide are all seen."""
    return max(1.4, 3.2 - 0.45 * index)
