"""The scores of `linmdp benchmark general`: tables of halves and families, of variants, of perturbations; profiles."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from linmdp.errors import needed
from linmdp.io.units import human_bytes
from linmdp.report.plots import drawing, save
from linmdp.report.style import line_styles
from linmdp.report.tables import markdown
from linmdp.results.aggregate import aggregate, difference, improvement, iqm, mean, profile
from linmdp.results.stats import Interval
from linmdp.types import Array, BoolArray

if TYPE_CHECKING:
    from matplotlib.figure import Figure

HALVES = ("made", "kept", "memory")
"""Families that learners may be made on, those where they are only judged, and those that need a memory of the past."""
CONSTANT = "best constant action"
TAUS = np.linspace(-0.25, 1.1, 55)


class Score(NamedTuple):
    """An agent on a task, perturbed or not.

    `before` are the steps that were played before the first episode, `steps` those of the episodes.
    `end` and `whole` (n,) are its scores in the last fifth of the episodes and over all of them, one per seed,
    `constant` that of the best constant action, and `false` whether each run says "learned" where it has not. With a
    `reason` it failed there, and its scores are 0.
    """

    family: str
    half: str
    instance: int
    perturb: str
    agent: str
    end: Array
    whole: Array
    constant: float
    false: BoolArray
    agent_bytes: int
    before: float
    steps: float
    cpu_ms: float
    reason: str


class GeneralBenchmark:
    """What agents scored on the general suite: 0 is random play, 1 the best that is known.

    With `leave_out` the first agent is the base, and the others are variants of it.
    """

    def __init__(
        self,
        suite: str,
        fingerprint: str,
        scale: str,
        scores: Sequence[Score],
        *,
        warm_up: str = "counted",
        leave_out: bool = False,
    ) -> None:
        self.suite, self.fingerprint, self.scale, self.leave_out = suite, fingerprint, scale, leave_out
        self.warm_up = warm_up
        self.scores = tuple(s for s in scores if not s.perturb)
        self.perturbed = tuple(s for s in scores if s.perturb)

    @property
    def agents(self) -> list[str]:
        """In the order in which they were given."""
        return list(dict.fromkeys(s.agent for s in self.scores))

    @property
    def halves(self) -> list[str]:
        """Those that have families."""
        return [half for half in HALVES if any(s.half == half for s in self.scores)]

    def of(self, agent: str, half: str | None = None) -> list[Score]:
        """The scores of an agent, of all families or of a half, in the order of the suite."""
        return [s for s in self.scores if s.agent == agent and half in (None, s.half)]

    def end(self, agent: str, half: str | None = None) -> Array:
        """Scores at the end, (seeds, tasks)."""
        return np.stack([s.end for s in self.of(agent, half)], axis=1)

    def whole(self, agent: str, half: str | None = None) -> Array:
        """Scores over the whole run, (seeds, tasks)."""
        return np.stack([s.whole for s in self.of(agent, half)], axis=1)

    @property
    def title(self) -> str:
        """Which suite it is, and how large."""
        tasks, families = self.of(self.agents[0]), len({s.family for s in self.scores})
        return (
            f"linmdp benchmark, suite {self.suite}, {self.scale}: "
            f"{families} families, {len(tasks)} instances, {len(tasks[0].end)} seeds, warm-up {self.warm_up}"
        )

    def table(self, half: str) -> str:
        """Agents on the families of a half."""
        head = (
            "agent",
            "IQM, end",
            "mean, end",
            "IQM, run",
            "mean, run",
            "false",
            "memory",
            "CPU ms",
            "before",
            "steps",
        )
        constant = np.array([[s.constant for s in self.of(self.agents[0], half)]])
        fixed = [two(float(statistic(constant.ravel()))) for statistic in (iqm, mean)]
        rows = [self._row(agent, half) for agent in self.agents]
        return markdown(head, [*rows, (CONSTANT, *fixed, *fixed, "", "", "", "", "")])

    def _row(self, agent: str, half: str) -> tuple[str, ...]:
        own = self.of(agent, half)
        ran = [s for s in own if not s.reason]
        false = sum(int(s.false.sum()) for s in ran)
        figures = [
            shown(aggregate(x, f)) for x in (self.end(agent, half), self.whole(agent, half)) for f in (iqm, mean)
        ]
        if not ran:
            return (agent, *figures, "-", "-", "-", "-", "-")
        cpu = sum(s.cpu_ms * s.steps for s in ran) / sum(s.steps for s in ran)
        return (
            agent,
            *figures,
            f"{false} of {sum(len(s.end) for s in ran)}",
            human_bytes(max(s.agent_bytes for s in ran)),
            f"{cpu:.2g}",
            f"{np.mean([s.before for s in ran]):,.0f}",
            f"{np.mean([s.steps for s in ran]):,.0f}",
        )

    def families(self) -> str:
        """Families by agents: the mean score at the end."""
        rows = []
        for half in self.halves:
            for family in dict.fromkeys(s.family for s in self.of(self.agents[0], half)):
                means = [np.mean([s.end for s in self.of(agent) if s.family == family]) for agent in self.agents]
                constant = np.mean([s.constant for s in self.of(self.agents[0]) if s.family == family])
                rows.append((half, family, *(two(float(x)) for x in (*means, constant))))
        return markdown(("half", "family", *self.agents, CONSTANT), rows)

    def improvements(self) -> str:
        """How probable it is that a run of the first agent is better at the end than one of each other."""
        first, *others = self.agents
        rows = [
            (other, *(shown(improvement(self.end(first, half), self.end(other, half))) for half in self.halves))
            for other in others
        ]
        return markdown((f"{first} is better than", *self.halves), rows)

    def left_out(self) -> str:
        """What each variant scores more than the base, the first agent: on average over the same tasks and seeds."""
        base, *variants = self.agents
        parts: dict[str, Callable[[str, str], Array]] = {"end": self.end, "run": self.whole}
        head = (f"without: against {base}", *(f"{half}, {part}" for half in self.halves for part in parts))
        rows = [
            (
                variant,
                *(
                    signed(difference(part(variant, half), part(base, half)))
                    for half in self.halves
                    for part in parts.values()
                ),
            )
            for variant in variants
        ]
        return markdown(head, rows)

    def costs(self, agent: str) -> str:
        """What each perturbation costs an agent: means over the tasks that it applies to, and their difference."""
        plain = {(s.family, s.instance): s for s in self.of(agent)}
        rows = []
        for name in dict.fromkeys(s.perturb for s in self.perturbed):
            own = [s for s in self.perturbed if s.perturb == name and s.agent == agent]
            before = [plain[s.family, s.instance] for s in own]
            end, end_before = (np.stack([s.end for s in some], axis=1) for some in (own, before))
            run, run_before = (np.stack([s.whole for s in some], axis=1) for some in (own, before))
            tasks, failed = str(len(own)), sum(bool(s.reason) for s in own)
            rows.append(
                (
                    name,
                    tasks + f" ({failed} failed)" * bool(failed),
                    two(float(end_before.mean())),
                    two(float(end.mean())),
                    signed(difference(end, end_before)),
                    signed(difference(run, run_before)),
                )
            )
        return markdown((f"perturbation of {agent}", "tasks", "as it is", "after", "change, end", "change, run"), rows)

    def reasons(self) -> list[str]:
        """Why some agents have 0 on some tasks, a line for each agent and reason."""
        found: dict[tuple[str, str], list[str]] = {}
        for s in (*self.scores, *self.perturbed):
            if s.reason:
                found.setdefault((s.agent, s.reason), []).append(
                    " ".join([f"{s.family}/{s.instance}", s.perturb]).strip()
                )
        return [f"{agent} has 0 on {', '.join(tasks)}: {reason}" for (agent, reason), tasks in found.items()]

    def __str__(self) -> str:
        several = len(self.agents) > 1
        parts = [self.title, *(f"{half} families\n\n{self.table(half)}" for half in self.halves)]
        parts += [self.left_out()] if self.leave_out else []
        parts += [self.improvements()] if several else []
        parts += [self.families()]
        parts += [self.costs(agent) for agent in self.agents if self.perturbed]
        return "\n\n".join([*parts, *self.reasons()])

    def _repr_html_(self) -> str:
        """The tables for notebooks."""
        return f"<pre>{escape(str(self))}</pre>"

    def records(self) -> list[dict[str, Any]]:
        """One object for each agent, as `linmdp benchmark general --json` prints it."""
        head = {"suite": self.suite, "fingerprint": self.fingerprint, "scale": self.scale, "warm_up": self.warm_up}
        return [
            head | {"agent": agent} | {half: self._numbers(agent, half) for half in self.halves} | {"tasks": tasks}
            for agent in self.agents
            if (tasks := [_record(s) for s in (*self.scores, *self.perturbed) if s.agent == agent])
        ]

    def _numbers(self, agent: str, half: str) -> dict[str, Any]:
        parts = {"end": self.end(agent, half), "run": self.whole(agent, half)}
        return {
            f"{name}_{part}": dict(zip(("score", "low", "high"), aggregate(x, f), strict=True))
            for part, x in parts.items()
            for name, f in (("iqm", iqm), ("mean", mean))
        }

    def rows(self) -> list[dict[str, Any]]:
        """One row for each agent and task."""
        return [{"agent": record["agent"]} | task for record in self.records() for task in record["tasks"]]

    def to_pandas(self) -> Any:
        """The `rows` as a `pandas.DataFrame`."""
        pandas = needed("pandas", "to_pandas() needs pandas: install linmdp with its extra 'pandas'.")
        return pandas.DataFrame(self.rows())

    def write_figure(self, folder: Path) -> list[Path]:
        """The performance profiles as general.png and general.svg."""
        halves = self.halves
        with drawing(len(halves), (4.6 * len(halves), 3.8), sharey=True, layout="constrained") as (figure, *panels):
            self._profiles(figure, panels, halves)
            return save(figure, folder / "general")

    def _profiles(self, figure: Figure, panels: Sequence[Any], halves: Sequence[str]) -> None:
        styles = line_styles(self.agents)
        for axes, half in zip(panels, halves, strict=True):
            for index, agent in enumerate(self.agents):
                share, low, high = profile(self.end(agent, half), TAUS)
                axes.plot(TAUS, share, **styles[agent].line(index), label=styles[agent].name)
                axes.fill_between(TAUS, low, high, color=styles[agent].light, alpha=0.12, lw=0)
            axes.set(title=f"{half} families", xlabel="score at the end", xlim=(TAUS[0], TAUS[-1]), ylim=(0, 1.02))
        panels[0].set_ylabel("fraction of runs above it")
        panels[-1].legend(fontsize=8)
        figure.suptitle(self.title, fontsize=9)


def shown(i: Interval) -> str:
    """A score with its interval."""
    return _with_interval([two(x) for x in i])


def signed(i: Interval) -> str:
    """A difference with its interval."""
    return _with_interval([f"{round(x, 2) + 0.0:+.2f}" for x in i])


def two(x: float) -> str:
    """A score with two digits, and no minus before 0."""
    return f"{round(x, 2) + 0.0:.2f}"


def _with_interval(texts: list[str]) -> str:
    middle, low, high = texts
    return middle if low == high else f"{middle} [{low}, {high}]"


def _record(s: Score) -> dict[str, Any]:
    named = s._asdict()
    return {key: x.tolist() if isinstance(x, np.ndarray) else x for key, x in named.items() if key != "agent"}
