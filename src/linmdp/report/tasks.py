"""`linmdp reproduce tasks`: learners on tasks that people have, as data, and how the comparison is shown."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from linmdp.report.plots import save
from linmdp.report.style import PALETTE, RC, human_bytes, pyplot
from linmdp.report.tables import markdown
from linmdp.results.stats import mean_interval
from linmdp.types import Array, RunResult

FINITE = {
    "lsvi-ucb:stationary=true": "LSVI-UCB, counts",
    "lsvi-ucb-fold:stationary=true": "Fold",
    "lsvi-ucb-fixed:stationary=true": "Fixed",
    "lsvi-ucb-adaptive:stationary=true": "Adaptive",
    "q-learning:stationary=true": "Q-learning, optimistic",
    "q-learning-greedy:stationary=true": "Q-learning, greedy",
}
"""beta is "auto", everything else the default."""

CONTINUOUS = {"lsvi-ucb-fold:stationary=true,discount=0.99,beta=0.01,lam=0.001": "Fold, tuned"}
AUTO = {"lsvi-ucb-fold:stationary=true,discount=0.99": "Fold, beta=auto"}
SAMPLED = {
    "lsvi-ucb:stationary=true,discount=0.99,beta=0.01,lam=0.001,dtype=float32": "LSVI-UCB, all samples",
    "lsvi-ucb-fixed:stationary=true,discount=0.99,beta=0.01,lam=0.001,rho=0.5,dtype=float32": "Fixed, tuned",
    "lsvi-ucb-adaptive:stationary=true,discount=0.99,beta=0.01,lam=0.001,rho=0.5,budget=0.5,dtype=float32": (
        "Adaptive, tuned"
    ),
}
OTHERS = {
    "sb3-dqn": "DQN, defaults",
    "sb3-dqn:learning_rate=0.002,learning_starts=500,target_update_interval=500,exploration_fraction=0.3": "DQN, tuned",
    "sb3-ppo": "PPO, defaults",
    "sb3-ppo:learning_rate=0.001,n_steps=512,ent_coef=0.01": "PPO, tuned",
}
"""Tuned: rates and intervals for thousands of steps instead of the library's millions."""


class TaskRuns(NamedTuple):
    """One task: its environment, how many episodes, and who learns."""

    title: str
    env: str
    episodes: int
    agents: dict[str, str]


def tasks(scale: str) -> list[TaskRuns]:
    """All tasks, at a scale. Those who keep samples of a continuous task take long: the quick scale leaves them out."""
    long = scale == "paper"
    finite = {**FINITE, **OTHERS, "random": "random"}
    known = {**finite, "optimal": "optimal"}
    continuous = {**CONTINUOUS, **AUTO, **(SAMPLED if long else {}), **OTHERS, "random": "random"}
    return [
        TaskRuns("sensor", "sensor", 600 if long else 400, known),
        TaskRuns("inventory", "inventory", 1000 if long else 600, known),
        TaskRuns("FrozenLake", "gym:FrozenLake-v1,H=100", 2000 if long else 1000, finite),
        TaskRuns("CliffWalking", "gym:CliffWalking-v1,H=100", 300 if long else 200, finite),
        TaskRuns("CartPole", "gym:CartPole-v1,H=200", 200 if long else 150, continuous),
        TaskRuns("MountainCar", "gym:MountainCar-v0,H=200", 100 if long else 60, continuous),
        TaskRuns("Acrobot", "gym:Acrobot-v1,H=200", 100 if long else 60, continuous),
    ]


TASK_SEEDS = {"quick": 3, "paper": 10}
KINDS = ("LSVI-UCB", "Fold", "Fixed", "Adaptive", "DQN", "Q-learning", "PPO")
COLOURS = dict(zip(KINDS, PALETTE, strict=True))
MARKS = {"random": {"color": "#777777", "ls": "--"}, "optimal": {"color": "#222222", "ls": "-."}}
"""What no learner is, and how it is drawn."""
TAIL = 10
"""The end of a run is its last tenth."""


def ends(runs: Sequence[RunResult]) -> Array:
    """Mean reward of the last tenth of the episodes, of each run."""
    return np.array([returns(r)[-max(1, len(r.rewards) // TAIL) :].mean() for r in runs])


def returns(run: RunResult) -> Array:
    """The reward of an episode, (n,): a stored curve of a long run holds the sums of several episodes each."""
    each: Array = run.rewards * len(run.rewards) / run.episodes
    return each


def steps_at(run: RunResult, episodes: Sequence[float], H: int) -> Array:
    """Environment steps of the first episodes: as noted on the way, or H each."""
    if not run.costs:
        return H * np.asarray(episodes, dtype=np.float64)
    at, steps = zip((0.0, 0.0), *((point[0], point[3]) for point in run.costs), strict=True)
    found: Array = np.interp(episodes, at, steps)
    return found


def lost(runs: Sequence[RunResult], optimum: float) -> Array | None:
    """Fraction of the optimal return that the policies of the last tenth lose, exactly; None without a model."""
    found = []
    for r in runs:
        if r.regret is None:
            return None
        n = max(1, len(r.regret) // TAIL)
        found.append((r.regret[-1] - r.regret[-n - 1]) / n * len(r.regret) / r.episodes / optimum)
    return np.array(found)


def task_table(task: TaskRuns, found: dict[str, list[RunResult]], optimum: float | None) -> str:
    """One line an agent: what it earns at the end and on the way, its memory and its time."""
    rows = []
    for spec, name in task.agents.items():
        if spec not in found:
            continue
        runs = found[spec]
        late, whole = mean_interval(ends(runs)), mean_interval(np.array([r.reward / r.episodes for r in runs]))
        behind = lost(runs, optimum) if optimum else None
        rows.append(
            (
                name,
                f"{late.mean:.3g} [{late.low:.3g}, {late.high:.3g}]",
                f"{ends(runs).min():.3g}",
                "-" if behind is None else f"{behind.mean():.1%}",
                f"{whole.mean:.3g}",
                "-" if spec in MARKS else human_bytes(max(r.peak_bytes for r in runs)),
                f"{np.mean([r.cpu_seconds for r in runs]):.0f} s",
            )
        )
    header = ("agent", "return at the end", "worst seed", "below the optimum", "return, mean", "memory", "CPU time")
    return markdown(header, rows)


def task_figure(task: TaskRuns, found: dict[str, list[RunResult]], folder: Path, H: int) -> list[Path]:
    """Return over environment steps, and return at the end against memory: task-NAME.png and .svg."""
    plt = pyplot()
    with plt.rc_context(RC):
        figure, (curves, trade) = plt.subplots(1, 2, figsize=(11, 5.2), width_ratios=(1.3, 1))
        for spec, name in task.agents.items():
            if spec in found:
                _draw(curves, trade, name, found[spec], H)
        curves.set(title=f"{task.title}: return of an episode", xlabel="environment steps", ylabel="mean return")
        trade.set(title="memory against return at the end", xlabel="peak memory of the learner, KiB", xscale="log")
        trade.margins(x=0.25, y=0.1)
        figure.tight_layout(rect=(0, 0.1, 1, 1))
        _spread_labels(trade)
        figure.legend(*curves.get_legend_handles_labels(), fontsize=9, ncols=6, loc="lower center")
        paths = save(figure, folder / f"task-{task.title.lower()}")
        plt.close(figure)
    return paths


def _spread_labels(trade: Any) -> None:
    """Each label beside its point, within the figure, at the first height where it lies on no other label."""
    points, placed = 72 / trade.figure.dpi, list[tuple[float, float, float]]()
    edge = trade.figure.get_figwidth() * 72
    for label in sorted(trade.texts, key=lambda text: text.xy[1], reverse=True):
        (x, y), width = trade.transData.transform(label.xy) * points, 4.6 * len(label.get_text()) + 8
        late = x + width > edge
        left = x - width if late else x
        others = [at for begin, end, at in placed if begin < left + width and left < end]
        dy = next((dy for dy in (4, -11, 14, -20, 23) if all(abs(y + dy - at) >= 9 for at in others)), 4)
        placed.append((left, left + width, y + dy))
        label.set(position=(-6 if late else 6, dy), ha="right" if late else "left")


def _look(name: str) -> dict[str, Any]:
    """One colour a kind of learner; dashed or dotted where it is one of two settings."""
    if name in MARKS:
        return MARKS[name]
    kind, _, setting = name.partition(", ")
    second = setting in ("defaults", "greedy", "beta=auto")
    return {"color": COLOURS[kind], "ls": ":" if second else "-"}


def _draw(curves: Any, trade: Any, name: str, runs: list[RunResult], H: int) -> None:
    look = _look(name)
    rewards = np.stack([returns(r) for r in runs])
    parts = np.array_split(np.arange(rewards.shape[1]), min(40, rewards.shape[1]))
    points = [mean_interval(rewards[:, part].mean(axis=1)) for part in parts]
    episodes = [float(part[-1] + 1) * runs[0].episodes / rewards.shape[1] for part in parts]
    at = np.mean([steps_at(r, episodes, H) for r in runs], axis=0)  # of the seeds
    curves.plot(at, [p.mean for p in points], label=name, lw=1.6, **look)
    curves.fill_between(at, [p.low for p in points], [p.high for p in points], color=look["color"], alpha=0.12, lw=0)
    late = mean_interval(ends(runs))
    if name in MARKS:
        trade.axhline(late.mean, **look)
        return
    span = [[late.mean - late.low], [late.high - late.mean]]
    x = max(r.peak_bytes for r in runs) / 1024
    trade.errorbar(x, late.mean, yerr=span, fmt="o", ms=6, capsize=3, color=look["color"])
    trade.annotate(name, (x, late.mean), textcoords="offset points", xytext=(6, 4), fontsize=8, color=look["color"])
