"""A picture of cells: which numbers the action moves, what they are over an episode, and what each action does."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from linmdp.envs.guard import Guard
from linmdp.features.cell_choice import LAG, Moment, Played, played
from linmdp.features.cells import Cells
from linmdp.io.files import write_atomic
from linmdp.report.plots import drawing, rendered
from linmdp.report.style import PALETTE
from linmdp.types import Array

if TYPE_CHECKING:
    from matplotlib.axes import Axes

EPISODES, SEED = 40, 0
"""Random play for the picture."""
MOST_BARS = 20
KINDS = (".png", ".svg")


def write_picture(env: Any, names: list[str], out: Path) -> None:
    """Draw the cells of an environment, whose actions have those names."""
    cells, played = env.task.features, random_episodes(env)
    columns = cells.found.get("chosen") or cells.columns
    height = max(3.6, 1.4 + 0.21 * max(cells.A, min(len(cells.found.get("moved", ())), MOST_BARS)))
    widths = {"width_ratios": (1.0, 2.2, 0.4 * len(columns) + 0.8)}
    with drawing(3, (12.5, height), gridspec_kw=widths, layout="constrained") as (figure, bars, lanes, effects):
        draw_moved(bars, cells, columns)
        draw_episode(lanes, cells, columns, played)
        draw_effects(effects, cells, columns, played, names)
        write_atomic(out, rendered(figure, out.suffix[1:]))


def random_episodes(env: Any) -> Played:
    """Some episodes of random play."""
    guard, rng, rows = Guard(env), np.random.default_rng(SEED), list[Moment]()
    for k in range(EPISODES):
        steps = guard.random_episode(k, rng, H=guard.task.H, seed=None if k else SEED)
        rows += [(step.state, step.action, step.reward, k) for step in steps]
    return played(rows)


def draw_moved(axes: Axes, cells: Cells, columns: list[int]) -> None:
    """How much the change of each number tells of the action."""
    moved = [(int(column), float(nats)) for column, nats in cells.found.get("moved", ())]
    first = {column for column, _ in moved[: MOST_BARS - len(columns)]}
    shown = [item for item in moved if item[0] in first or item[0] in columns]
    colours = [PALETTE[1] if column in columns else "#bbbbbb" for column, _ in shown]
    axes.barh(range(len(shown)), [nats for _, nats in shown], color=colours)
    axes.set_yticks(range(len(shown)), [str(column) for column, _ in shown])
    explained = f"nats (chosen: {len(columns)},\nthey explain {cells.found.get('explained', 0.0):.1%} of returns)"
    axes.set(xlabel=explained, ylabel="number of the observation", title=f"moved by the action: {len(moved)}")
    axes.invert_yaxis()
    axes.grid(axis="y", visible=False)


def draw_episode(axes: Axes, cells: Cells, columns: list[int], played: Played) -> None:
    """The chosen numbers over the longest episode, each in a lane of its own; dots have the colour of the class."""
    rows = np.flatnonzero(played.episode == np.bincount(played.episode).argmax())
    steps, classes = played.states[rows, -1], cells.classes[played.actions[rows]]
    for lane, column in enumerate(columns):
        values = played.states[rows, column]
        low, high = int(values.min()), int(values.max())
        heights = -lane + 0.8 * (values - low) / max(high - low, 1)
        axes.plot(steps, heights, color="#999999", lw=1, drawstyle="steps-post", zorder=1)
        axes.scatter(steps, heights, c=[colour(c) for c in classes], s=16, zorder=2)
        for value, at in ((low, -lane), (high, -lane + 0.8)):
            axes.text(steps.max() + 0.8, at, str(value), fontsize=7.5, color="#666666", va="center")
    paid = np.flatnonzero(played.rewards[rows])
    for step in steps[paid]:
        axes.axvline(step, color=PALETTE[2], lw=1, ls=":", zorder=0)
    axes.set_yticks([0.4 - lane for lane in range(len(columns))], [f"number {column}" for column in columns])
    words = "\ndotted: a reward" if len(paid) else ""
    axes.set(xlabel=f"step (colour: class of the action){words}", title="an episode of random play")
    axes.grid(visible=False)


def draw_effects(axes: Axes, cells: Cells, columns: list[int], played: Played, names: list[str]) -> None:
    """How each number changes after each action, beside its mean change, in standard deviations; class by class."""
    order = np.argsort(cells.classes, kind="stable")
    effect = mean_changes(played, columns, cells.A)[order]
    size = max(float(np.abs(effect).max()), 1e-9)
    axes.imshow(effect, cmap="RdBu_r", vmin=-size, vmax=size, aspect="auto")
    axes.set_xticks(range(len(columns)), [str(column) for column in columns])
    axes.set_yticks(range(cells.A), [names[a] for a in order], fontsize=7.5)
    for label, a in zip(axes.get_yticklabels(), order, strict=True):
        label.set_color(colour(int(cells.classes[a])))
    for edge in np.flatnonzero(np.diff(cells.classes[order])):
        axes.axhline(edge + 0.5, color="#333333", lw=0.8)
    axes.set(
        xlabel=f"mean change of each number\n({cells.C} classes of actions)",
        title=f"what each of {cells.A} actions does",
    )
    axes.grid(visible=False)


def mean_changes(played: Played, columns: list[int], A: int) -> Array:
    """The mean change over LAG steps after each action less that after any, in standard deviations, (A, m)."""
    rows = played.within(LAG)
    change = (played.states[rows + LAG] - played.states[rows])[:, columns].astype(np.float64)
    change = (change - change.mean(axis=0)) / np.maximum(change.std(axis=0), 1e-9)
    actions = played.actions[rows]
    times = np.maximum(np.bincount(actions, minlength=A), 1)
    return np.array([np.bincount(actions, x, A) / times for x in change.T]).T


def colour(number: int) -> str:
    """Of a class."""
    return PALETTE[number % len(PALETTE)]
