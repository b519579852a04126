"""Linearization (docs, linearize): its numbers and pictures. An hour or so on two cores.

Datasets and models are kept in the folder of the store, and used again.
"""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import numpy as np

import linmdp
from linmdp.agents.algorithms import LSVIUCB
from linmdp.envs.games import Game
from linmdp.envs.linear import LinearMDPEnv
from linmdp.envs.synthetic import synthetic
from linmdp.experiments.linearization import dataset_of
from linmdp.features.learned import LearnedModel, read_model
from linmdp.features.tabular import TableFeatures
from linmdp.io.files import output_folder
from linmdp.linearize.collect import random_data
from linmdp.linearize.data import Dataset
from linmdp.linearize.measure import linearity
from linmdp.linearize.model import write_model
from linmdp.linearize.train import Settings, Trainer, train
from linmdp.report.style import RC, pyplot
from linmdp.report.tables import markdown
from linmdp.types import Array, Task
from research.study import IMAGES, Study

GAMES = {"Alien": "ALE/Alien-ram-v5", "Phoenix": "ALE/Phoenix-ram-v5"}
TRUTH: dict[str, Any] = {"S": 100, "A": 5, "d": 8, "H": 20, "concentration": 0.2, "stationary": True}
TRUTH_SETTINGS: dict[str, dict[str, Any]] = {
    "seed 0": {"seed": 0},
    "seed 1": {"seed": 1},
    "seed 0, inverse weight 1": {"seed": 0, "inverse_weight": 1.0},
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


def cost(study: Study) -> str:
    """CPU time of an iteration, batch 256, one thread."""
    import torch

    torch.set_num_threads(1)
    rows = []
    for d in (64, 512):
        trainer = Trainer(dataset("Alien", study.store), Settings(d=d, steps=100, eval_every=20))
        trainer.round()
        began = time.process_time()
        trainer.round()
        trainer.round()
        rows.append((str(d), f"{(time.process_time() - began) / 40 * 1e3:.1f}"))
    return markdown(("d", "CPU ms an iteration, batch 256, evaluation included"), rows)


def pictures(_: Study) -> None:
    """The embedding of visited states, the reward map, and the most likely next states."""
    plt = pyplot()
    with plt.rc_context(RC):
        for name in GAMES:
            learned = read_model(name.lower())
            frames, states, actions = _filmed(name, episodes=24)
            for kind, draw in (("embedding", _embedding), ("next", _next_states)):
                figure = draw(plt, name, learned, frames, states, actions)
                figure.savefig(IMAGES / f"linearize_{kind}_{name.lower()}.png", dpi=110)
                plt.close(figure)


def _filmed(name: str, episodes: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Frames, RAM states and actions of a random policy that training has not seen; (episodes, 51, ...)."""
    film = Game(GAMES[name], render_mode="rgb_array")
    rng = np.random.default_rng(7)
    frames, states, actions = [], [], rng.integers(film.A, size=(episodes, 50))
    film.reset(seed=1234)
    for plan in actions:
        state, _ = film.reset()
        frames.append([film.render()])
        states.append([state])
        for action in plan:
            states[-1].append(film.step(int(action))[0])
            frames[-1].append(film.render())
    return np.array(frames), np.array(states), actions


def _embedding(plt: Any, name: str, learned: LearnedModel, frames: Any, states: Any, actions: Any) -> Any:
    """The next state that phi(s, a) expects, in the two directions where those vary most.

    phi itself is close to the corners of a simplex, which no plane shows. Each measure has a mean next state, and
    phi mixes those.
    """
    held = learned.held_out
    means = learned.mu(held.next).T @ learned.encoder(held.next) / len(held)  # (d, inputs)
    phi = learned.pairs(held.state, held.action)
    film = learned.pairs(states[:, :-1].reshape(-1, states.shape[-1]), actions.reshape(-1))
    centre = (phi @ means).mean(axis=0)
    axes = np.linalg.svd(phi @ means - centre, full_matrices=False)[2][:2]
    figure, panels = plt.subplots(1, 3, figsize=(11.5, 3.9), layout="constrained", sharex=True, sharey=True)
    kinds = (
        ("visited states, by step", film, np.tile(np.arange(50), len(states)), "viridis", None),
        ("real reward, scaled", phi, held.reward, "magma_r", 1.0),
        ("learned reward <phi, theta>", phi, learned.reward(phi), "magma_r", 1.0),
    )
    for panel, (title, points, colour, palette, top) in zip(panels, kinds, strict=True):
        order = np.argsort(colour, kind="stable")
        x, y = ((points @ means - centre) @ axes.T)[order].T
        dots = panel.scatter(x, y, c=colour[order], cmap=palette, s=10, linewidths=0, vmin=0, vmax=top)
        panel.set(title=title, xlabel="first direction")
        figure.colorbar(dots, ax=panel, shrink=0.85)
    panels[0].set_ylabel("second direction")
    figure.suptitle(
        f"{name}: where phi(s, a) expects the next state, on data that training did not see", x=0.01, ha="left"
    )
    return figure


def _next_states(plt: Any, name: str, learned: LearnedModel, frames: Any, states: Any, actions: Any) -> Any:
    """A state, what really followed, and the four next states that the model finds most likely among all filmed."""
    after = states[:, 1:].reshape(-1, states.shape[-1])
    pictures = frames[:, 1:].reshape(-1, *frames.shape[2:])
    mu = learned.mu(after)
    figure, grid = plt.subplots(3, 6, figsize=(11.5, 7.2), layout="constrained")
    for row, (episode, step) in zip(grid, ((2, 12), (9, 27), (17, 43)), strict=True):
        action = actions[episode, step]
        phi = learned.pairs(states[episode, step][None], np.array([action]))
        ratio = learned.logits(phi, mu)[0]
        P = np.exp(ratio - ratio.max())
        P /= P.sum()
        best = np.argsort(-P)[:4]
        shown = [(frames[episode, step], f"s: step {step}"), (frames[episode, step + 1], f"s' after action {action}")]
        shown += [(pictures[i], f"P = {P[i]:.3f}, step {i % 50 + 1}") for i in best]
        for panel, (picture, title) in zip(row, shown, strict=True):
            panel.imshow(picture)
            panel.set_title(title, fontsize=9)
            panel.axis("off")
    figure.suptitle(
        f"{name}: a state, what followed, and the most likely next states of {len(after):,}", x=0.01, ha="left"
    )
    return figure


PARTS = {"linearize_truth": truth, "linearize_cost": cost, "linearize_linear": linear, "linearize_pictures": pictures}
