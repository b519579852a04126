"""`linmdp reproduce table-...`: the linearized games in every mode, with the published figures beside them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

import numpy as np

from linmdp.experiments import study
from linmdp.experiments.linearization import dataset_of, train_model, training_settings
from linmdp.experiments.stored_runs import Runs, Say, by_policy, run_planned
from linmdp.features.learned import read_model
from linmdp.io.files import write_atomic
from linmdp.io.units import human_bytes
from linmdp.report.tables import markdown
from linmdp.results.stats import Interval, mean_interval
from linmdp.results.store import Store
from linmdp.runner.batch import Job
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


EVAL_EVERY = 5
TRIAL_SEED = 1000
"""Constant actions are tried with a seed of their own, so that the runs of the best one are an unbiased estimate."""

STEPS = TRANSITIONS = 50_000
"""Of the training, at the scale of the paper."""


def write_game_tables(
    items: Sequence[str], scale: GameScale, out: Path, store: Store, jobs: int | None, say: Say
) -> str:
    """Run what the tables need, write each as ITEM.md, and return them all."""
    models = trained_models(scale, out, say)
    modes = tuple(MODES) if "table-reward" in items else ("game",)
    best = _best_constants(models, modes, scale, store, jobs, say) if "table-reward" in items else {}
    policies = {(g, mode): policies_of(g, mode, best.get((g, mode))) for mode in modes for g in models}
    planned = [
        Job(env_spec(models[g], mode, scale), agent, scale.K, seed, EVAL_EVERY)
        for (g, mode), agents in policies.items()
        for agent in agents
        for seed in range(scale.seeds)
    ]
    found = by_policy(run_planned(planned, store, jobs, say, f"for {', '.join(items)}"))
    pages = [table_page(item, models, scale, found, policies) for item in items]
    for item, page in zip(items, pages, strict=True):
        write_atomic(out / f"{item}.md", page.encode() + b"\n")
    return "\n\n".join(pages)


def trained_models(scale: GameScale, out: Path, say: Say) -> dict[str, str]:
    """The model of each game: a shipped one, or one in the output folder, which is trained first if it is missing."""
    if scale.d == 64:
        return {game: game.lower() for game in GAMES}
    paths = {game: out / f"{game.lower()}{scale.d}.safetensors" for game in GAMES}
    for game, path in paths.items():
        if not path.exists():
            say(f"training d={scale.d} on {game}, {STEPS:,} iterations: minutes on a GPU, half an hour on a CPU")
            settings, data = (
                training_settings(d=scale.d, steps=STEPS, device="auto"),
                f"{game.lower()}.data.safetensors",
            )
            train_model(dataset_of(GAMES[game], out / data, settings.seed, transitions=TRANSITIONS), settings, path)
    return {game: str(path) for game, path in paths.items()}


def _best_constants(
    models: Mapping[str, str], modes: Sequence[str], scale: GameScale, store: Store, jobs: int | None, say: Say
) -> dict[tuple[str, str], str]:
    """The best constant action for each game and mode: by exact regret where it is known, else by reward."""
    tried = [
        Job(env_spec(model, mode, scale), f"constant:action={action}", scale.trial, TRIAL_SEED, scale.trial)
        for model in models.values()
        for mode in modes
        for action in range(read_model(model).A)
    ]
    results = run_planned(tried, store, jobs, say, "to try every constant action")

    def value(r: RunResult) -> float:
        return r.reward if r.regret is None else -float(r.regret[-1])

    envs = {(game, mode): env_spec(model, mode, scale) for game, model in models.items() for mode in modes}
    return {key: max((r for r in results if r.env == env), key=value).agent for key, env in envs.items()}


def policies_of(game: str, mode: str, constant: str | None) -> dict[str, tuple[str, str]]:
    """Everything in the tables of a game and mode: spec -> (name, algorithm); `constant` is the best of its kind."""
    found = learner_specs(mode)
    if mode == "game" and find_spec("stable_baselines3") is not None:
        found |= {spec: (name, spec) for spec, name in OTHERS[game].items()}
    if constant is not None:
        found |= {constant: (f"{constant}, the best", "constant"), "random": ("random", "random")}
        if mode == "model":
            found["optimal"] = ("optimal", "optimal")
    return found


def table_page(
    item: str,
    models: Mapping[str, str],
    scale: GameScale,
    found: Runs,
    policies: Mapping[tuple[str, str], Mapping[str, tuple[str, str]]],
) -> str:
    """One item: a table for each game (and mode), of the policies that have run."""
    parts = [f"## {item}: the linearized games, d = {scale.d}", NOTES[item]]
    for game, model in models.items():
        points = float(read_model(model).meta["reward_scale"])
        for mode in MODES if item == "table-reward" else ("game",):
            rows = list[Row]()
            for spec, (name, algorithm) in policies.get((game, mode), {}).items():
                if runs := found.get((env_spec(model, mode, scale), spec)):
                    rows.append(Row(name, algorithm, runs))
            if rows:
                parts += [f"### {game}, {MODES[mode]}", *_tables(item, game, mode, rows, scale, points)]
    return "\n\n".join(parts)


def _tables(item: str, game: str, mode: str, rows: list[Row], scale: GameScale, points: float) -> list[str]:
    """The table of one game and mode, and what it says of the learners."""
    if item == "table-reward":
        table = reward_table(game, mode, rows, scale, points)
        learns = any(row.algorithm in NAMES for row in rows)
        return [table, comparison(rows, scale, points)] if mode == "game" and learns else [table]
    costly = [row for row in rows if row.algorithm not in ("constant", "random")]
    return [(space_table if item == "table-space" else time_table)(game, costly, scale)]


SEEDS = "Means over the seeds, with 95% intervals where they differ."
NOTES = {item: f"{SEEDS} {' '.join(note.split())}" for item, note in study("games")["notes"].items()}
