"""The scores of `linmdp benchmark`: as tables, as JSON, as a picture, or as a data frame."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from linmdp.errors import needed
from linmdp.io.units import human_bytes
from linmdp.report.plots import RC, drawing, line_styles, pyplot, save
from linmdp.report.tables import markdown
from linmdp.results.stats import Interval, aggregate, difference, improvement, iqm, mean, profile, two
from linmdp.results.summary import most
from linmdp.types import Array, BoolArray

if TYPE_CHECKING:
    from matplotlib.figure import Figure

CONSTANT = "best constant action"
TAUS = np.linspace(-0.25, 1.1, 55)
SHARED: dict[str, Any] = {"sharey": True, "layout": "constrained"}


class Score(NamedTuple):
    """An agent on a task, perturbed or not.

    Attributes
    ----------
    half : where it counts: families that learners may be made on, those where they are only judged, or all
    whole, end : (n,) scores over all episodes and in the last fifth of them, one per seed
    value : what an episode was worth on average; None where nothing was played
    random, best : what it is worth to random play, and to the best known policy: what has score 0 and 1
    constant : the score of the best constant action; NaN where it is not known
    false : (n,) whether each run says "learned" where it has not
    before, steps : of the environment, before the first episode and in the episodes
    reason : why it failed there, and its scores are 0
    """

    task: str
    family: str
    half: str
    kind: str
    perturb: str
    agent: str
    episodes: int
    whole: Array
    end: Array
    value: float | None
    random: float
    best: float
    constant: float
    false: BoolArray
    agent_bytes: int
    planning_bytes: int | None
    before: float
    steps: float
    cpu_seconds: float
    reason: str


class Benchmark:
    """What agents scored on a suite: 0 is random play, 1 the best that is known.

    Parameters
    ----------
    measure : the scores that count: "whole", or those at the "end"
    warm_up : whether steps before the first episode are "counted" or "given"
    leave_out : the first agent is the base, and the others are variants of it
    """

    def __init__(
        self,
        suite: str,
        fingerprint: str,
        scale: str,
        scores: Sequence[Score],
        *,
        measure: str,
        warm_up: str,
        leave_out: bool = False,
    ) -> None:
        self.suite, self.fingerprint, self.scale = suite, fingerprint, scale
        self.measure, self.warm_up, self.leave_out = measure, warm_up, leave_out
        self.scores = tuple(s for s in scores if not s.perturb)
        self.perturbed = tuple(s for s in scores if s.perturb)

    @property
    def agents(self) -> list[str]:
        """In the order in which they were given."""
        return list(dict.fromkeys(s.agent for s in self.scores))

    @property
    def halves(self) -> list[str]:
        """In the order of the suite."""
        return list(dict.fromkeys(s.half for s in self.scores))

    def of(self, agent: str, half: str | None = None) -> list[Score]:
        """The scores of an agent, of all tasks or of a half, in the order of the suite."""
        return [s for s in self.scores if s.agent == agent and half in (None, s.half)]

    def counted(self, agent: str, half: str | None = None, measure: str | None = None) -> Array:
        """The scores that count, or those of another measure, (seeds, tasks)."""
        return _stacked(self.of(agent, half), measure or self.measure)

    def mean(self, agent: str, kind: str | None = None) -> Interval:
        """The mean over all tasks, or over those of a kind."""
        some = [s for s in self.of(agent) if kind in (None, s.kind)]
        return aggregate(_stacked(some, self.measure), mean)

    @property
    def title(self) -> str:
        """Which suite it is, and how large."""
        tasks, families = self.of(self.agents[0]), len({s.family for s in self.scores})
        return (
            f"linmdp benchmark, suite {self.suite}, {self.scale}: {families} families, {len(tasks)} tasks, "
            f"{len(tasks[0].end)} seeds, warm-up {self.warm_up}"
        )

    def table(self, half: str) -> str:
        """Agents on a half: interquartile means and means, at the end and over the run, and what they took."""
        head = ("agent", "IQM, end", "mean, end", "IQM, run", "mean, run", "false")
        rows = [self._row(agent, half) for agent in self.agents]
        constant = np.array([s.constant for s in self.of(self.agents[0], half)])
        if not np.isnan(constant).any():
            fixed = [two(float(statistic(constant))) for statistic in (iqm, mean)]
            rows.append((CONSTANT, *fixed, *fixed, *[""] * 6))
        return markdown((*head, "memory", "while planning", "CPU ms", "before", "steps"), rows)

    def _row(self, agent: str, half: str) -> tuple[str, ...]:
        scores = (self.counted(agent, half, measure) for measure in ("end", "whole"))
        figures = [aggregate(x, statistic).text(two) for x in scores for statistic in (iqm, mean)]
        ran = [s for s in self.of(agent, half) if not s.reason]
        if not ran:
            return (agent, *figures, *["-"] * 6)
        false, steps = sum(int(s.false.sum()) for s in ran), sum(s.steps for s in ran)
        return (
            agent,
            *figures,
            f"{false} of {sum(len(s.end) for s in ran)}",
            human_bytes(max(s.agent_bytes for s in ran)),
            human_bytes(most(s.planning_bytes for s in ran)),
            f"{1e3 * sum(s.cpu_seconds for s in ran) / max(1.0, steps):.2g}",
            f"{np.mean([s.before for s in ran]):,.0f}",
            f"{steps / len(ran):,.0f}",
        )

    def families(self) -> str:
        """Families by agents: the mean of the scores that count."""
        rows = []
        for half, kind, family in dict.fromkeys((s.half, s.kind, s.family) for s in self.scores):
            own = [[s for s in self.of(agent, half) if s.family == family] for agent in self.agents]
            means = [float(np.mean(_stacked(some, self.measure))) for some in own]
            constant = float(np.mean([s.constant for s in own[0]]))
            rows.append((kind, family, *map(two, means), "-" if np.isnan(constant) else two(constant)))
        return markdown(("kind", "task", *self.agents, CONSTANT), rows)

    def improvements(self) -> str:
        """How probable it is that a run of the first agent is better than one of each other."""
        first, *others = self.agents
        rows = [
            (
                other,
                *(improvement(self.counted(first, half), self.counted(other, half)).text(two) for half in self.halves),
            )
            for other in others
        ]
        return markdown((f"{first} is better than", *self.halves), rows)

    def left_out(self) -> str:
        """What each variant scores more than the base, the first agent: on average over the same tasks and seeds."""
        base, *variants = self.agents
        parts = [(half, measure) for half in self.halves for measure in ("end", "whole")]
        rows = [
            (variant, *(signed(difference(self.counted(variant, *p), self.counted(base, *p))) for p in parts))
            for variant in variants
        ]
        return markdown((f"without: against {base}", *(f"{half}, {part}" for half, part in parts)), rows)

    def costs(self, agent: str) -> str:
        """What each perturbation costs an agent: means over the tasks that it applies to, and their difference."""
        plain, rows = {s.task: s for s in self.of(agent)}, []
        for name in dict.fromkeys(s.perturb for s in self.perturbed):
            own = [s for s in self.perturbed if s.perturb == name and s.agent == agent]
            before, failed = [plain[s.task] for s in own], sum(bool(s.reason) for s in own)
            end, whole = ((_stacked(own, m), _stacked(before, m)) for m in ("end", "whole"))
            changes = (signed(difference(*pair)) for pair in (end, whole))
            tasks = str(len(own)) + f" ({failed} failed)" * bool(failed)
            rows.append((name, tasks, two(float(end[1].mean())), two(float(end[0].mean())), *changes))
        return markdown((f"perturbation of {agent}", "tasks", "as it is", "after", "change, end", "change, run"), rows)

    def reasons(self) -> list[str]:
        """Why some agents have 0 on some tasks, a line for each agent and reason."""
        found: dict[tuple[str, str], list[str]] = {}
        for s in (s for s in (*self.scores, *self.perturbed) if s.reason):
            found.setdefault((s.agent, s.reason), []).append(f"{s.task} {s.perturb}".strip())
        return [f"{agent} has 0 on {', '.join(tasks)}: {reason}" for (agent, reason), tasks in found.items()]

    def __str__(self) -> str:
        parts = [self.title, *(f"{half} tasks\n\n{self.table(half)}" for half in self.halves)]
        parts += [self.left_out()] if self.leave_out else []
        parts += [self.improvements()] if len(self.agents) > 1 else []
        parts += [self.families()]
        parts += [self.costs(agent) for agent in self.agents if self.perturbed]
        return "\n\n".join([*parts, *self.reasons()])

    def _repr_html_(self) -> str:
        """The tables for notebooks."""
        return f"<pre>{escape(str(self))}</pre>"

    def records(self) -> list[dict[str, Any]]:
        """One object for each agent, as `linmdp benchmark --json` prints it."""
        head = {"suite": self.suite, "fingerprint": self.fingerprint, "scale": self.scale, "warm_up": self.warm_up}
        return [
            head
            | {"agent": agent, **_numbers(self.mean(agent))}
            | {half: self._aggregates(agent, half) for half in self.halves}
            | {"tasks": [_record(s, self.measure) for s in (*self.scores, *self.perturbed) if s.agent == agent]}
            for agent in self.agents
        ]

    def _aggregates(self, agent: str, half: str) -> dict[str, Any]:
        statistics: dict[str, Callable[[Array], Array]] = {"iqm": iqm, "mean": mean}
        return {
            f"{name}_{measure}": _numbers(aggregate(self.counted(agent, half, measure), statistic))
            for measure in ("end", "whole")
            for name, statistic in statistics.items()
        }

    def rows(self) -> list[dict[str, Any]]:
        """One row for each agent and task."""
        return [{"agent": record["agent"]} | task for record in self.records() for task in record["tasks"]]

    def to_pandas(self) -> Any:
        """The `rows` as a `pandas.DataFrame`."""
        pandas = needed("pandas", "to_pandas() needs pandas: pip install 'linmdp[pandas]'.")
        return pandas.DataFrame(self.rows())

    def plot(self) -> Figure:
        """Performance profiles: the fraction of runs above each score."""
        plt = pyplot(screen=True)
        with plt.rc_context(RC):
            figure: Figure
            figure, panels = plt.subplots(1, len(self.halves), figsize=self._size(), squeeze=False, **SHARED)
            self._profiles(figure, panels[0])
        return figure

    def write_figure(self, folder: Path, name: str = "benchmark") -> list[Path]:
        """The same as NAME.png and NAME.svg."""
        with drawing(len(self.halves), self._size(), **SHARED) as (figure, *panels):
            self._profiles(figure, panels)
            return save(figure, folder / name)

    def _size(self) -> tuple[float, float]:
        return 4.6 * max(1.2, len(self.halves)), 3.8

    def _profiles(self, figure: Figure, panels: Sequence[Any]) -> None:
        styles = line_styles(self.agents)
        for axes, half in zip(panels, self.halves, strict=True):
            for index, agent in enumerate(self.agents):
                share, low, high = profile(self.counted(agent, half), TAUS)
                axes.plot(TAUS, share, **styles[agent].line(index), label=styles[agent].name)
                axes.fill_between(TAUS, low, high, color=styles[agent].light, alpha=0.12, lw=0)
            axes.set(title=f"{half} tasks", xlabel="score", xlim=(TAUS[0], TAUS[-1]), ylim=(0, 1.02))
        panels[0].set_ylabel("fraction of runs above it")
        panels[-1].legend(fontsize=8)
        figure.suptitle(self.title, fontsize=9)


def _stacked(scores: Sequence[Score], measure: str) -> Array:
    """(seeds, tasks)."""
    return np.stack([getattr(s, measure) for s in scores], axis=1)


def signed(i: Interval) -> str:
    """A difference with its interval."""
    return i.text(lambda x: f"{round(x, 2) + 0.0:+.2f}")


def _numbers(i: Interval) -> dict[str, float]:
    return {"score": i.mean, "low": i.low, "high": i.high}


def _record(s: Score, measure: str) -> dict[str, Any]:
    """A score as JSON has it; what is not known is null."""
    fields = {key: x.tolist() if isinstance(x, np.ndarray) else x for key, x in s._asdict().items() if key != "agent"}
    fields["constant"] = None if np.isnan(s.constant) else s.constant
    scores: Array = getattr(s, measure)
    return fields | _numbers(aggregate(scores[:, None], mean)) | {"scores": scores.tolist()}
