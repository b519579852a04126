"""The ablation on the page on linearization: what each part of the learned features is worth, in the real games.

.venv/bin/python docs/measure_features.py FOLDER              all of it; what was measured is kept in FOLDER
.venv/bin/python docs/measure_features.py FOLDER --seeds 2    with fewer seeds
.venv/bin/python docs/measure_features.py FOLDER --jobs 8     in so many processes; default: 1
.venv/bin/python docs/measure_features.py FOLDER table        the tables of what is in FOLDER so far, and no run

Models are small, so that each takes half a minute of CPU: 20,000 transitions of seed 0, 2,500 iterations.
"""

from __future__ import annotations

import json
from argparse import ArgumentParser
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from joblib import Parallel, delayed

import linmdp
from linmdp.experiments.linearization import dataset_of
from linmdp.features.cell_choice import moved
from linmdp.features.learned import read_model
from linmdp.features.learned_blocks import LearnedBlocks, features_of
from linmdp.io.units import human_bytes
from linmdp.linearize.cells import played_in
from linmdp.linearize.data import Dataset
from linmdp.linearize.measure import BACKUPS, Linearity, explained, ridge
from linmdp.linearize.model import write_model
from linmdp.linearize.train import Settings, train
from linmdp.report.tables import markdown
from linmdp.results.stats import mean_interval
from linmdp.results.store import Store, opened_store
from linmdp.runner.registry import make_agent, make_env
from linmdp.types import Array, BoolArray, IntArray

GENERATED = Path(__file__).parent / "generated"
AGENT, EPISODES, LAST, FIRST_SEED, SEEDS = "lsvi-ucb-fold", 500, 100, 8100, 3
TRANSITIONS, H = 20_000, 50
SMALL: dict[str, Any] = {"d": 64, "steps": 2500, "hidden": 128, "eval_every": 250}
GAMES = ("Phoenix", "Alien")
MAPS = (("shared", 0), ("shared", 8), ("added", 0), ("blocks", 0), ("blocks", 8))
"""What actions share, and how many functions of the step there are."""
FITTED = 6000
"""Transitions that the Bellman error's value iteration is fitted on."""
TRAINED: dict[str, dict[str, Any]] = {
    "plain": {},
    "inverse": {"inverse_weight": 1.0},
}
"""Models and the settings in which they differ."""


class Variant(NamedTuple):
    """A row of the ablation: which model, and which options of `linearized`."""

    model: str
    options: str


BLOCKS = ",actions=blocks,clock=8"
VARIANTS = {
    "as shipped": Variant("shipped", ""),
    "clock": Variant("shipped", ",clock=8"),
    "added": Variant("shipped", ",actions=added"),
    "blocks": Variant("shipped", ",actions=blocks"),
    "blocks, clock": Variant("shipped", BLOCKS),
    "small model": Variant("plain", ""),
    "inverse": Variant("inverse", ""),
    "small model, blocks, clock": Variant("plain", BLOCKS),
    "inverse, blocks, clock": Variant("inverse", BLOCKS),
}


class Run(NamedTuple):
    """The mean score of the last episodes, bytes of the agent, and CPU seconds."""

    late: float
    bytes: int
    seconds: float


def dataset(game: str, folder: Path) -> Dataset:
    """Random transitions of a game, collected once."""
    path = folder / f"{game}.random.safetensors"
    return dataset_of(f"ALE/{game}-ram-v5", path, Settings.seed, transitions=TRANSITIONS, H=H)


def model_file(game: str, model: str, folder: Path) -> str:
    """The file of a model, trained once, or the name of the shipped one."""
    path = folder / f"{game}-{model}.safetensors"
    if model == "shipped":
        return game.lower()
    if not path.exists():
        torch.set_num_threads(1)
        write_model(path, train(dataset(game, folder), Settings(**SMALL | TRAINED[model])))
    return str(path)


def run_key(game: str, name: str, seed: int) -> str:
    """Under which a run is kept."""
    return f"{game}, {name}, {EPISODES} episodes, seed {seed}"


def played(game: str, variant: Variant, folder: Path, seed: int) -> Run:
    """One run in the real game; scores are points of the game, not what the learner is paid."""
    env: Any = make_env(f"linearized:model={model_file(game, variant.model, folder)}{variant.options}")
    agent: Any = make_agent(AGENT, env, EPISODES)
    scores: list[float] = []
    run = linmdp.run(
        env,
        agent,
        episodes=EPISODES,
        seed=seed,
        eval_every=EPISODES,
        on_episode=lambda _: scores.append(env.env.score),
    )
    return Run(float(np.mean(scores[-LAST:])), run.peak_bytes, run.cpu_seconds)


def table(store: Store) -> str:
    """A row for each game and variant, of the seeds that are there."""
    rows = []
    for game in sorted(GAMES):
        for name in VARIANTS:
            keys = (run_key(game, name, FIRST_SEED + i) for i in range(100))
            runs = [Run(*json.loads(store.notes(key)[-1])) for key in keys if store.notes(key)]
            if runs:
                late = mean_interval(np.array([run.late for run in runs]))
                memory = human_bytes(max(run.bytes for run in runs))
                score = str(late) if len(runs) > 1 else f"{late.mean:g}"
                rows.append((game, name, str(len(runs)), score, memory))
    return markdown(("game", "features", "seeds", f"score, last {LAST} of {EPISODES} episodes", "memory"), rows)


class Regression:
    """Ridge regression on features of state and action: for each action by itself where they come in blocks."""

    def __init__(self, features: Any, data: Dataset, rows: IntArray) -> None:
        self.blocks, self.actions, self.A = isinstance(features, LearnedBlocks), data.actions[rows], data.A
        clocked, make = getattr(features, "clock", False), features.psi if self.blocks else features.batch
        steps = data.step[rows][:, None]
        ends = ((data.states[rows], steps), (data.next_states[rows], steps + 1))
        self.before, self.after = (make(np.column_stack(end) if clocked else end[0]) for end in ends)
        self.rewards, self.alive = data.scaled_rewards[rows], ~data.terminated[rows]

    def fit(self, targets: Array) -> Array:
        """Weights, (A, p) or (d,)."""
        if not self.blocks:
            return ridge(self.before[np.arange(len(targets)), self.actions], targets)
        return np.array([ridge(self.before[mine], targets[mine]) for mine in self._by_action()])

    def error(self, weights: Array, targets: Array) -> float:
        """Of what they say of the action that was taken, in standard deviations of the targets."""
        q = (self.before @ weights.T)[np.arange(len(targets)), self.actions]
        return float(np.sqrt(((q - targets) ** 2).mean()) / max(targets.std(), 1e-9))

    def value(self, weights: Array) -> Array:
        """Of what followed: the most that an action promises, and 0 after an end."""
        best: Array = (self.after @ weights.T).max(axis=1) * self.alive
        return best

    def _by_action(self) -> list[BoolArray]:
        return [self.actions == a for a in range(self.A)]


def bellman_error(features: Any, data: Dataset) -> float:
    """As `linmdp check` has it, for any of the maps: value iteration fitted on some episodes, its error on others."""
    fit, held = data.split(Settings.held_out, 0)
    some = np.random.default_rng(0).permutation(fit)[:FITTED]
    train, test = Regression(features, data, some), Regression(features, data, held)
    values, others, errors = np.zeros(len(some)), np.zeros(len(held)), []
    for _ in range(BACKUPS):
        weights = train.fit(train.rewards + values)
        errors.append(test.error(weights, test.rewards + others))
        values, others = train.value(weights), test.value(weights)
    return float(np.mean(errors))


def described(folder: Path) -> str:
    """How well psi(s) tells the numbers that the action moves, and how linear the game is in the model."""
    rows = []
    for game in sorted(GAMES):
        data = dataset(game, folder)
        fit, held = data.split(Settings.held_out, 0)
        columns = np.array([column for column, _ in moved(played_in(data), data.A, np.random.default_rng(0))])
        for model in ("shipped", *TRAINED):
            if model != "shipped" and not (folder / f"{game}-{model}.safetensors").exists():
                continue
            learned = read_model(model_file(game, model, folder))
            told = explained(learned, data.states[fit], data.states[held], columns)
            most = ", ".join(f"{column} {r2:.2f}" for column, r2 in zip(columns[:3], told[:3], strict=True))
            maps = (features_of(learned, H, actions, clock) for actions, clock in MAPS)
            errors = (f"{bellman_error(features, data):.3f}" for features in maps)
            reward = Linearity(**learned.meta["metrics"]).reward_r2
            rows.append((game, model, f"{told.mean():.2f}", most, f"{reward:.2f}", *errors))
    head = ("game", "model", "mean R^2 of moved bytes", "the three most moved", "reward R^2", "Bellman error", "clock")
    return markdown((*head, "added", "blocks", "blocks, clock"), rows)


def main() -> None:
    """Every run that is missing, seed by seed, and the tables."""
    parser = ArgumentParser()
    parser.add_argument("folder", type=Path)
    parser.add_argument("given", nargs="?", choices=("table",))
    parser.add_argument("--seeds", type=int, default=SEEDS)
    parser.add_argument("--jobs", type=int, default=1)
    options = parser.parse_args()
    path = options.folder.resolve()
    seeds = range(FIRST_SEED, FIRST_SEED + (0 if options.given else options.seeds))
    with opened_store(path) as store:
        planned = [(game, name, seed) for seed in seeds for game in GAMES for name in VARIANTS]
        missing = [run for run in planned if not store.notes(run_key(*run))]
        for game, name, _ in missing:
            model_file(game, VARIANTS[name].model, path)  # trained here, once
        found = Parallel(n_jobs=options.jobs, return_as="generator")(
            delayed(played)(game, VARIANTS[name], path, seed) for game, name, seed in missing
        )
        for run, result in zip(missing, found, strict=True):
            store.note(run_key(*run), json.dumps(result))
            print(*run, *result, flush=True)
        for name, text in (("features", table(store)), ("psi", described(path))):
            (GENERATED / f"linearize_{name}.md").write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
