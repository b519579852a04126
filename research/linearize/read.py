"""Linearization (docs, linearize): its numbers. An hour or so on two cores.

Datasets and models are kept in the folder of the store, and used again.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

import linmdp
from linmdp.agents.algorithms import LSVIUCB
from linmdp.envs.games import Game
from linmdp.envs.linear import LinearMDPEnv
from linmdp.envs.linear_mdps import synthetic
from linmdp.experiments.linearization import dataset_of
from linmdp.features.learned import LearnedModel, read_model
from linmdp.features.tabular import TableFeatures
from linmdp.io.files import output_folder
from linmdp.linearize.collect import random_data
from linmdp.linearize.data import Dataset
from linmdp.linearize.measure import linearity
from linmdp.linearize.model import write_model
from linmdp.linearize.train import Settings, train
from linmdp.report.tables import markdown
from linmdp.types import Array, Task
from research.study import Study

GAMES = {"Alien": "ALE/Alien-ram-v5", "Phoenix": "ALE/Phoenix-ram-v5"}
TRUTH: dict[str, Any] = {"S": 100, "A": 5, "d": 8, "H": 20, "concentration": 0.2, "stationary": True}
TRUTH_SETTINGS: dict[str, dict[str, Any]] = {
    "seed 0": {"seed": 0},
    "seed 1": {"seed": 1},
}
STEPS = 5000
"""Iterations for the table over d: enough to compare, and minutes on a laptop."""


def dataset(game: str, folder: Path) -> Dataset:
    """50,000 random transitions of a game, collected once."""
    path = output_folder(folder) / f"{game}.data.safetensors"
    return dataset_of(GAMES[game], path, 0, transitions=50_000, H=50)


def model(game: str, d: int, folder: Path) -> LearnedModel:
    """The model of a game, trained once."""
    path = output_folder(folder) / f"{game}-{d}-{STEPS}.safetensors"
    if not path.exists():
        write_model(path, train(dataset(game, folder), Settings(d=d, steps=STEPS)))
    return read_model(path)


def truth(_: Study) -> str:
    """Does it find a linear MDP that is there? 50,000 transitions from uniformly random states and actions."""
    true = synthetic(**TRUTH)
    game = Game("linmdp/Synthetic-v0", **TRUTH, start="uniform")
    data = random_data(game, transitions=50_000, H=1, seed=0)
    P = true.features.table() @ true.mu[0]
    s, a, n = data.states[:, 0].astype(int), data.actions, data.next_states[:, 0].astype(int)
    counts = np.zeros_like(P)
    np.add.at(counts, (s, a, n), 1)
    marginal = counts.sum(axis=(0, 1)) / len(n)
    states = np.arange(true.S, dtype=np.float32)[:, None]
    base = _regret(true, true.features)
    rows = [
        ("empirical", f"{_distance(P, counts / counts.sum(-1, keepdims=True)):.3f}", "-", "-"),
        ("marginal p(s') for every s, a", f"{_distance(P, np.broadcast_to(marginal, P.shape)):.3f}", "-", "-"),
        ("the true model", "0", f"{base:.0f}", "1.00"),
    ]
    for words, options in TRUTH_SETTINGS.items():
        found = train(data, Settings(d=8, steps=8000, hidden=128, **options))
        phi = found.batch(states)
        regret = _regret(true, TableFeatures(phi))
        error = _distance(P, phi @ found.mu(states).T * marginal)
        rows.append((f"learned, d=8, {words}", f"{error:.3f}", f"{regret:.0f}", f"{regret / base:.2f}"))
    return markdown(("P", "mean total variation to the truth", "regret of LSVI-UCB, K=2,000", "ratio"), rows)


def _distance(P: Array, Q: Array) -> float:
    return float(np.abs(P - Q).sum(axis=-1).mean() / 2)


def _regret(true: Any, features: Any) -> float:
    """Regret of LSVI-UCB (beta 0.05, lambda 0.1) in the true environment, seen through those features; 3 seeds."""
    env = LinearMDPEnv(true)
    env.task = Task(S=true.S, A=true.A, d=features.d, H=true.H, reward_range=(0, 1), features=features)
    runs = (linmdp.run(env, LSVIUCB(env.task, beta=0.05), episodes=2000, seed=i, eval_every=10) for i in range(3))
    return float(np.mean([run.final_regret for run in runs if run.final_regret is not None]))


def linear(study: Study) -> str:
    """How linear are the games, for three dimensions."""
    rows = []
    for game in GAMES:
        rows += [(game, str(d), *judged(model(game, d, study.store))) for d in (32, 128, 512)]
        rows.append((game, "64, shipped", *judged(read_model(game.lower()))))
    return markdown(("game", "d", *JUDGED), rows)


JUDGED = ("ranks first", "times chance", "contrastive loss", "reward R^2", "Bellman error", "d in use")


def judged(model: LearnedModel) -> tuple[str, ...]:
    """How linear its game is."""
    found = linearity(model)
    errors = (f"{found.loss:.2f}", f"{found.reward_r2:.3f}", f"{found.bellman_error:.3f}")
    return (f"{found.rank_first:.1%}", f"{found.times_chance:.0f}", *errors, f"{found.used:.0f}")


PARTS = {"linearize_truth": truth, "linearize_linear": linear}
