"""The ablation on the page on linearization: what each part of the learned features is worth, in the real games.

.venv/bin/python docs/measure_features.py FOLDER              all of it; what was measured is kept in FOLDER
.venv/bin/python docs/measure_features.py FOLDER --seeds 2    with fewer seeds
.venv/bin/python docs/measure_features.py FOLDER table        the tables of what is in FOLDER so far, and no run

Models are small, so that each takes half a minute of CPU: 20,000 transitions of seed 0, 2,500 iterations.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch

import linmdp
from linmdp.experiments.linearization import dataset_of
from linmdp.features.cell_choice import moved
from linmdp.features.learned import read_model
from linmdp.io.units import human_bytes
from linmdp.linearize.cells import played_in
from linmdp.linearize.data import Dataset
from linmdp.linearize.measure import Linearity, explained
from linmdp.linearize.model import write_model
from linmdp.linearize.train import Settings, train
from linmdp.report.tables import markdown
from linmdp.results.stats import mean_interval
from linmdp.results.store import Store, opened_store
from linmdp.runner.registry import make_agent, make_env

GENERATED = Path(__file__).parent / "generated"
AGENT, EPISODES, LAST, FIRST_SEED, SEEDS = "lsvi-ucb-fold", 200, 40, 8100, 3
TRANSITIONS, H = 20_000, 50
SMALL: dict[str, Any] = {"d": 64, "steps": 2500, "hidden": 128, "eval_every": 250}
GAMES = ("Phoenix", "Alien")
BOTH = ",blocks=true,clock=8"
TRAINED: dict[str, dict[str, Any]] = {
    "plain": {},
    "inverse": {"inverse_weight": 1.0},
    "controlled": {"controlled": True},
    "rounds": {},
}
"""Models and the settings in which they differ; that of rounds differs in its data."""


class Variant(NamedTuple):
    """A row of the ablation: which model, and which options of `linearized`."""

    model: str
    options: str


VARIANTS = {
    "as shipped": Variant("shipped", ""),
    "blocks": Variant("shipped", ",blocks=true"),
    "clock": Variant("shipped", ",clock=8"),
    "blocks, clock": Variant("shipped", BOTH),
    "small model": Variant("plain", ""),
    "small model, blocks, clock": Variant("plain", BOTH),
    "inverse": Variant("inverse", ""),
    "inverse, blocks, clock": Variant("inverse", BOTH),
    "controlled": Variant("controlled", ""),
    "controlled, blocks, clock": Variant("controlled", BOTH),
    "rounds": Variant("rounds", ""),
    "rounds, blocks, clock": Variant("rounds", BOTH),
}


class Run(NamedTuple):
    """The mean score of the last episodes, bytes of the agent, and CPU seconds."""

    late: float
    bytes: int
    seconds: float


def dataset(game: str, folder: Path, explore: str = "random") -> Dataset:
    """Transitions of a game, collected once: of random play, or half of them by the learner."""
    path = folder / f"{game}.{explore}.safetensors"
    sizes = {"transitions": TRANSITIONS, "H": H, "rounds": 2}
    return dataset_of(f"ALE/{game}-ram-v5", path, Settings(**SMALL), explore=explore, **sizes)


def model_file(game: str, model: str, folder: Path) -> str:
    """The file of a model, trained once, or the name of the shipped one."""
    path = folder / f"{game}-{model}.safetensors"
    if model == "shipped":
        return game.lower()
    if not path.exists():
        torch.set_num_threads(1)
        data = dataset(game, folder, "fold" if model == "rounds" else "random")
        write_model(path, train(data, Settings(**SMALL | TRAINED[model])))
    return str(path)


def remembered(store: Store, key: str, found: Callable[[], Any]) -> Any:
    """What the store knows under that key; if nothing, what is found, which it then knows."""
    if not store.notes(key):
        store.note(key, json.dumps(found()))
    return json.loads(store.notes(key)[-1])


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
                rows.append((game, name, str(len(runs)), str(late), memory))
    return markdown(("game", "features", "seeds", f"score, last {LAST} of {EPISODES} episodes", "memory"), rows)


def described(folder: Path) -> str:
    """How well psi(s) tells the numbers that the action moves, and how linear the game is in the model."""
    rows = []
    for game in sorted(GAMES):
        data = dataset(game, folder)
        fit, held = data.split(Settings.held_out, 0)
        columns = np.array([column for column, _ in moved(played_in(data, "cells"), data.A, np.random.default_rng(0))])
        for model in ("shipped", *TRAINED):
            if model != "shipped" and not (folder / f"{game}-{model}.safetensors").exists():
                continue
            learned = read_model(model_file(game, model, folder))
            told = explained(learned, data.states[fit], data.states[held], columns)
            most = ", ".join(f"{column} {r2:.2f}" for column, r2 in zip(columns[:3], told[:3], strict=True))
            found = Linearity(**learned.meta["metrics"])
            figures = (found.loss, found.reward_r2, found.bellman_error)
            rows.append((game, model, f"{told.mean():.2f}", most, *(f"{x:.2f}" for x in figures)))
    head = ("game", "model", "mean R^2 of moved bytes", "the three most moved", "contrastive loss", "reward R^2")
    return markdown((*head, "Bellman error"), rows)


def main() -> None:
    """Every run that is missing, seed by seed; the table is written after each."""
    folder, *given = sys.argv[1:]
    path = Path(folder).resolve()
    seeds = int(given[given.index("--seeds") + 1]) if "--seeds" in given else SEEDS
    with opened_store(path) as store:
        for seed in range(FIRST_SEED, FIRST_SEED + (0 if "table" in given else seeds)):
            for game in GAMES:
                for name, variant in VARIANTS.items():
                    found = remembered(
                        store, run_key(game, name, seed), lambda g=game, v=variant, s=seed: played(g, v, path, s)
                    )
                    print(game, name, seed, *found, flush=True)
        for name, text in (("features", table(store)), ("psi", described(path))):
            (GENERATED / f"linearize_{name}.md").write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
