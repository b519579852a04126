"""The paper's tables of the linearized games: which runs they need, what was published, and the tables themselves."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from linmdp.experiments import study
from linmdp.io.units import human_bytes
from linmdp.report.tables import markdown
from linmdp.results.stats import Interval, mean_interval
from linmdp.types import Array, RunResult

GAMES = {"Alien": "ALE/Alien-ram-v5", "Phoenix": "ALE/Phoenix-ram-v5"}
MODES = {
    "game": "the real game: real scores, real ends of life",
    "model": "the learned model: a finite linear MDP, exact regret",
    "published": "as published: real transitions, learned reward, no ends",
}
SETTINGS = {"published": "beta=published,lam=0.1,cap=H,ties=first", "tuned": "beta=0.1,lam=0.001"}
"""beta is 1.3 as published with d=64 and 11 with d=512, where one step of Alien pays 0.03 on average: phi is close to a
corner of its simplex, so after n visits the bonus is about beta / sqrt(n). Tuned: 3 at first, then 0.1 / sqrt(n)."""

FIXED = "lsvi-ucb-fixed:rho=0.75"
ADAPTIVE = "lsvi-ucb-adaptive:m=10,tau_c=0.1,budget=0.5,rho=0.75"
REACHABLE = "lsvi-ucb-adaptive:m=10,tau_rel=1e-4,budget=0.5,rho=0.75"
LEARNERS = {"published": ("lsvi-ucb", FIXED, ADAPTIVE), "tuned": ("lsvi-ucb", FIXED, REACHABLE)}
NAMES = {"lsvi-ucb": "LSVI-UCB", FIXED: "Fixed", ADAPTIVE: "Adaptive, tau_c=0.1", REACHABLE: "Adaptive, tau_rel=1e-4"}
OTHERS: dict[str, dict[str, str]] = study("games")["others"]
"""DQN and PPO on the raw RAM, by game: spec -> name."""


class GameScale(NamedTuple):
    """How much of it; `trial` episodes are what each constant action gets to show itself."""

    d: int
    seeds: int
    snapshots: tuple[int, ...] = (100, 280, 500)
    trial: int = 20
    anchors: int = 500

    @property
    def K(self) -> int:
        """Episodes of a run."""
        return self.snapshots[-1]

    @property
    def last(self) -> int:
        """Episodes that count as the end of a run: a hundred of five hundred."""
        return max(1, self.K // 5)


GAME_SCALES = {"quick": GameScale(d=64, seeds=3), "paper": GameScale(d=512, seeds=3)}

Figures = Mapping[str, tuple[float | None, ...]]
PUBLISHED: dict[str, dict[str, Figures]] = {
    table: {game: {agent: (*found, None)[:3] for agent, found in of.items()} for game, of in games.items()}
    for table, games in study("games")["published"].items()
}
"""Total reward, GiB and hours at 100, 280 and 500 episodes (d = 512, H = 50)."""


@dataclass(frozen=True, eq=False)
class Row:
    """One policy of a table, its runs (the same but for their seed), and the algorithm of the paper that it is.

    `unit` is what a reward of its runs is in the rewards of the table.
    """

    name: str
    algorithm: str
    runs: Sequence[RunResult]
    unit: float = 1.0


def learner_specs(mode: str) -> dict[str, tuple[str, str]]:
    """The learners of a mode: spec -> (name, algorithm). `mode=published` is there for the published setting alone."""
    chosen = [(setting, algorithm) for setting in SETTINGS for algorithm in LEARNERS[setting]]
    if mode == "published":
        chosen = [("published", algorithm) for algorithm in (*LEARNERS["published"], REACHABLE)]
    specs = {}
    for setting, algorithm in chosen:
        own = SETTINGS[setting] + (",dtype=float32" if mode != "model" else "")
        spec = algorithm + (":" if ":" not in algorithm else ",") + own
        specs[spec] = (f"{NAMES[algorithm]}, {setting}", algorithm)
    return specs


def env_spec(model: str, mode: str, scale: GameScale) -> str:
    """The environment of a model in a mode."""
    return f"linearized:model={model},mode={mode}" + (f",anchors={scale.anchors}" if mode == "model" else "")


def reward_table(game: str, mode: str, rows: Sequence[Row], scale: GameScale, points: float) -> str:
    """Total rewards at the snapshots, and reward per episode at the end; a reward of 1 is `points` in the game."""
    last = f"last {scale.last}"
    header = ["policy", "seeds", *(f"total reward, {K}" for K in scale.snapshots), f"per episode, {last}"]
    if mode == "game":
        header[-1] = f"points per episode, {last}"
    elif mode == "model":
        header += ["regret per episode", f"regret, {last}"]
    else:
        header += [f"published, {K}" for K in scale.snapshots]
    cells = []
    for row in rows:
        if mode == "game":
            end = [_interval(final(row, scale) * points)]
        elif mode == "model":
            end = [_interval(final(row, scale), 3), *_regrets(row, scale)]
        else:
            end = [_interval(final(row, scale)), *_known(published("table-reward", game, row), "{:.2f}")]
        cells.append([row.name, str(len(row.runs)), *(_interval(total(row, K)) for K in scale.snapshots), *end])
    return markdown(header, cells)


def space_table(game: str, rows: Sequence[Row], scale: GameScale) -> str:
    """Peak bytes of the agent at the snapshots beside those published; the ratio is that of the last figures."""
    cells = []
    for row in rows:
        held, known = costs(row, scale)[0].mean(axis=0), published("table-space", game, row)
        last = _last(known)
        ratio = "-" if last is None else f"{held[-1] / (last[1] * 2**30):.3f}"
        cells.append([row.name, str(len(row.runs)), *map(human_bytes, held), *_known(known, "{:.3f} GiB"), ratio])
    return _beside_published("", cells, scale)


def time_table(game: str, rows: Sequence[Row], scale: GameScale) -> str:
    """CPU seconds at the snapshots (agent and game) beside the published hours, at the last that was published."""
    cells = []
    for row in rows:
        seconds, known = costs(row, scale)[1], published("table-time", game, row)
        last = _last(known)
        ratio = "-" if last is None else f"1/{last[1] * 3600 / seconds[:, last[0]].mean():.0f}"
        cells.append([row.name, str(len(row.runs)), *map(_interval, seconds.T), *_known(known, "{:.3f} h"), ratio])
    return _beside_published("CPU s, ", cells, scale)


def _beside_published(unit: str, cells: Sequence[Sequence[str]], scale: GameScale) -> str:
    names = [form.format(K) for form in (unit + "{} episodes", "published, {}") for K in scale.snapshots]
    return markdown(["agent", "seeds", *names, "of published"], cells)


def comparison(rows: Sequence[Row], scale: GameScale, points: float) -> str:
    """A sentence: how far the best learner came, against the best constant action and the others."""
    found = {row: mean_interval(final(row, scale) * points) for row in rows}
    best = max((row for row in rows if row.algorithm in NAMES), key=lambda row: found[row].mean)
    seeds = f"{len(best.runs)} seed{'s' * (len(best.runs) > 1)}"
    text = f"In the last {scale.last} episodes ({seeds}) the best learner, {best.name}, scores "
    text += f"{found[best].text(',.1f')} points per episode"
    for row in (row for row in rows if row.algorithm == "constant"):
        text += f", {_against(found[best], found[row])} the best constant action ({found[row].text(',.1f')})"
    others = [f"{row.name} {found[row].text(',.1f')}" for row in rows if row.algorithm not in (*NAMES, "constant")]
    return "; ".join([text, *others]) + "."


def _against(mine: Interval, theirs: Interval) -> str:
    if mine.low > theirs.high:
        return "above"
    return "below" if mine.high < theirs.low else "not distinguishable from"


def total(row: Row, K: int) -> Array:
    """Total reward of each run after K episodes."""
    return row.unit * np.array([r.rewards[:K].sum() for r in row.runs])


def final(row: Row, scale: GameScale) -> Array:
    """Reward per episode of each run, at its end."""
    return row.unit * np.array([r.rewards[-scale.last :].mean() for r in row.runs])


def costs(row: Row, scale: GameScale) -> tuple[Array, Array]:
    """Peak bytes and CPU seconds of each run at the snapshots, (runs, snapshots) each."""
    noted = [{int(k): (held, cpu) for k, held, cpu, *_ in r.costs} for r in row.runs]
    both = np.array([[found[K] for K in scale.snapshots] for found in noted])
    return both[..., 0], both[..., 1]


def published(table: str, game: str, row: Row) -> tuple[float | None, ...]:
    """What the paper has for the algorithm; it has one Adaptive."""
    figures = PUBLISHED[table][game]
    return figures.get(ADAPTIVE if row.algorithm == REACHABLE else row.algorithm, (None, None, None))


def _last(figures: Sequence[float | None]) -> tuple[int, float] | None:
    known = [(i, value) for i, value in enumerate(figures) if value is not None]
    return known[-1] if known else None


def _known(figures: Sequence[float | None], form: str) -> list[str]:
    return ["-" if value is None else form.format(value) for value in figures]


def _regrets(row: Row, scale: GameScale) -> list[str]:
    curves = [r.regret for r in row.runs if r.regret is not None]
    ends = [(c[-1] - c[-1 - scale.last]) / scale.last for c in curves]
    return [_interval(np.array([c[-1] / scale.K for c in curves]), 3), _interval(np.array(ends), 3)]


def _interval(values: Array, digits: int = 1) -> str:
    return mean_interval(values).text(f",.{digits}f")
