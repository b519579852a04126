"""The scores of `linmdp benchmark`: as a table, as JSON, as a picture, or as a data frame."""

from __future__ import annotations

import math
from collections.abc import Sequence
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from linmdp.errors import needed
from linmdp.report.plots import save
from linmdp.report.style import RC, line_styles, pyplot, short_name
from linmdp.report.tables import markdown
from linmdp.results.stats import Interval, mean_interval
from linmdp.types import Array

if TYPE_CHECKING:
    from matplotlib.figure import Figure

ACROSS = 4
"""Agents that stand side by side: in a table, and in a row of radars."""


class TaskScore(NamedTuple):
    """An agent on a task.

    `scores` (n,), one per seed, are what it earned on the way from `random` to `best`; `value` is what an episode was
    worth on average, None where nothing was played. With a `reason` it could not run there, and all scores are 0.
    """

    task: str
    kind: str
    agent: str
    episodes: int
    scores: Array
    value: float | None
    random: float
    best: float
    agent_bytes: int
    cpu_seconds: float
    reason: str

    @property
    def score(self) -> Interval:
        """The mean over the seeds."""
        return mean_interval(self.scores)


class Benchmark:
    """What agents scored on a suite, by task and on average; 0 is the random policy, 1 the best that is known."""

    def __init__(self, suite: str, fingerprint: str, scale: str, scores: Sequence[TaskScore]) -> None:
        self.suite, self.fingerprint, self.scale, self.scores = suite, fingerprint, scale, tuple(scores)

    @property
    def agents(self) -> list[str]:
        """In the order in which they were given."""
        return list(dict.fromkeys(s.agent for s in self.scores))

    def of(self, agent: str) -> list[TaskScore]:
        """The scores of an agent, in the order of the suite."""
        return [s for s in self.scores if s.agent == agent]

    def mean(self, agent: str, kind: str | None = None) -> Interval:
        """The mean over all tasks, or over those of a kind; its interval is over the seeds."""
        return mean_interval(np.mean([s.scores for s in self.of(agent) if kind in (None, s.kind)], axis=0))

    def table(self) -> str:
        """Tasks by agents or, of many agents, agents by tasks; random and best known beside them."""
        tasks, few = self.of(self.agents[0]), len(self.agents) <= ACROSS
        names = ["mean", *(s.task for s in tasks)]
        columns = [["task", *names]]
        for agent in self.agents:
            own = [self.mean(agent), *(s.score for s in self.of(agent))]
            columns.append([agent, *(_interval(i) if few or not n else f"{i.mean:.2f}" for n, i in enumerate(own))])
        columns += [[policy, *([value] * len(names))] for policy, value in (("random", "0"), ("best known", "1"))]
        rows = list(zip(*columns, strict=True)) if few else [tuple(column) for column in columns]
        return markdown([rows[0][0] if few else "agent", *rows[0][1:]], rows[1:])

    def reasons(self) -> list[str]:
        """Why some agents have 0 on some tasks, a line for each agent and reason."""
        found: dict[tuple[str, str], list[str]] = {}
        for s in self.scores:
            if s.reason:
                found.setdefault((s.agent, s.reason), []).append(s.task)
        return [f"{agent} has 0 on {', '.join(tasks)}: {reason}" for (agent, reason), tasks in found.items()]

    def __str__(self) -> str:
        return "\n\n".join([self.title, self.table(), *self.reasons()])

    @property
    def title(self) -> str:
        """Which suite it is, and how large."""
        seeds = len(self.scores[0].scores)
        return f"linmdp benchmark, suite {self.suite}, {self.scale}, {seeds} seeds"

    def records(self) -> list[dict[str, Any]]:
        """One object for each agent, as `linmdp benchmark --json` prints it."""
        head = {"suite": self.suite, "fingerprint": self.fingerprint, "scale": self.scale}
        return [
            head | {"agent": agent} | _numbers(self.mean(agent)) | {"tasks": [_record(s) for s in self.of(agent)]}
            for agent in self.agents
        ]

    def rows(self) -> list[dict[str, Any]]:
        """One row for each agent and task."""
        return [{"agent": record["agent"]} | task for record in self.records() for task in record["tasks"]]

    def to_pandas(self) -> Any:
        """The `rows` as a `pandas.DataFrame`."""
        pandas = needed("pandas", "to_pandas() needs pandas: install linmdp with its extra 'pandas'.")
        return pandas.DataFrame(self.rows())

    def _repr_html_(self) -> str:
        """A table for notebooks."""
        lines = [[cell.strip() for cell in line.strip("|").split("|")] for line in self.table().splitlines()]
        body = "".join(f"<tr>{''.join(f'<td>{escape(cell)}</td>' for cell in line)}</tr>" for line in lines[2:])
        head = "".join(f"<th>{escape(cell)}</th>" for cell in lines[0])
        said = "".join(f"<p>{escape(words)}</p>" for words in self.reasons())
        caption = f"<caption>{escape(self.title)}</caption>"
        return f"<table>{caption}<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>{said}"

    def plot(self) -> Figure:
        """A radar for each agent: its score on every task, and behind it the best of all that are shown."""
        plt = pyplot(screen=True)
        with plt.rc_context(RC):
            return self._radars(plt)

    def write_figure(self, folder: Path) -> list[Path]:
        """The same as benchmark.png and benchmark.svg."""
        plt = pyplot()
        with plt.rc_context(RC):
            figure = self._radars(plt)
            try:
                return save(figure, folder / "benchmark")
            finally:
                plt.close(figure)

    def _radars(self, plt: Any) -> Figure:
        agents, across = self.agents, min(ACROSS, len(self.agents))
        down = math.ceil(len(agents) / across)
        figure: Figure = plt.figure(figsize=(4.2 * across, 3.9 * down + 0.6), layout="constrained")
        tasks = [s.task for s in self.of(agents[0])]
        best = np.max([[s.score.mean for s in self.of(agent)] for agent in agents], axis=0)
        styles = line_styles(agents)
        for number, agent in enumerate(agents, start=1):
            axes: Any = figure.add_subplot(down, across, number, projection="polar")
            _spokes(axes, tasks)
            if len(agents) > 1:
                _polygon(axes, best, color="#999999", lw=1, ls=(0, (4, 2)))
            own = np.array([s.score.mean for s in self.of(agent)])
            _polygon(axes, own, color=styles[agent].light, lw=2, marker="o", ms=3.5)
            axes.fill(_angles(len(own)), own, color=styles[agent].light, alpha=0.18, lw=0)
            axes.set_title(f"{short_name(agent)}: {_interval(self.mean(agent))}", loc="center", pad=14)
        note = ", dashed: the best shown here" if len(agents) > 1 else ""
        figure.suptitle(f"{self.title}\n0: random policy, 1: best known{note}", fontsize=9)
        return figure


def _angles(count: int) -> Array:
    return np.arange(count) * 2 * np.pi / count


def _spokes(axes: Any, names: Sequence[str]) -> None:
    axes.set_theta_offset(np.pi / 2)
    axes.set_theta_direction(-1)
    axes.set_ylim(0, 1)
    axes.set_yticks([0.25, 0.5, 0.75, 1.0], labels=["", "0.5", "", "1"], fontsize=7, color="#666666")
    axes.set_rlabel_position(180 / len(names))
    axes.set_xticks(_angles(len(names)), labels=names, fontsize=8)
    axes.tick_params(axis="x", pad=1)
    axes.spines["polar"].set_color("#bbbbbb")
    for label, angle in zip(axes.get_xticklabels(), _angles(len(names)), strict=True):
        side = np.sin(angle)
        label.set_horizontalalignment("center" if abs(side) < 0.1 else "left" if side > 0 else "right")


def _polygon(axes: Any, values: Array, **line: Any) -> None:
    axes.plot(np.append(_angles(len(values)), 0.0), np.append(values, values[0]), clip_on=False, **line)


def _interval(i: Interval) -> str:
    return f"{i.mean:.2f}" if i.low == i.high else f"{i.mean:.2f} [{i.low:.2f}, {i.high:.2f}]"


def _numbers(i: Interval) -> dict[str, float]:
    return {"score": i.mean, "low": i.low, "high": i.high}


def _record(s: TaskScore) -> dict[str, Any]:
    return {
        "task": s.task,
        "kind": s.kind,
        "episodes": s.episodes,
        **_numbers(s.score),
        "scores": s.scores.tolist(),
        "value": s.value,
        "random": s.random,
        "best": s.best,
        "agent_bytes": s.agent_bytes,
        "cpu_seconds": s.cpu_seconds,
        "reason": s.reason,
    }
