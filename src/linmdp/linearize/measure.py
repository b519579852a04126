"""How linear is it? What a model is worth on transitions that its training did not see. NumPy only."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from linmdp.features.learned import HeldOut, LearnedModel
from linmdp.types import Array

BATCH = 256
"""The true next state is ranked among this many: itself and 255 negatives."""

BACKUPS = 10
"""Steps of value iteration over which the Bellman error is averaged."""

CHUNK = 256


class Linearity(NamedTuple):
    """Measured on held-out transitions.

    rank_first : how often the true next state has the largest density ratio among 256; chance is 1/256
    loss : the contrastive loss, InfoNCE in nats; chance is log 256
    reward_r2 : 1 - (squared error of <phi, theta>) / (variance of the reward)
    bellman_error : root mean square of <phi, w> - (r + V(s')), divided by the standard deviation of r + V(s'),
        mean over `BACKUPS` steps of value iteration; 0 is perfect, 1 is no better than a constant. The game's own
        randomness is in it, so it is an upper bound of how far the game is from linear in phi
    used : exp of the entropy of the mean phi: how many of the d dimensions are in use
    """

    rank_first: float
    loss: float
    reward_r2: float
    bellman_error: float
    used: float

    @property
    def times_chance(self) -> float:
        """How many times more often than chance the true next state ranks first."""
        return self.rank_first * BATCH


def linearity(model: LearnedModel) -> Linearity:
    """Every measure, from the transitions in the model's file."""
    held = model.held_out
    phi = model.pairs(held.state, held.action)
    rank_first, loss = contrastive(model, phi, held)
    mean = phi.mean(axis=0)
    used = float(np.exp(-(mean * np.log(mean + 1e-30)).sum())) if model.form == "linear" else float(model.d)
    error = bellman_error(model, phi, held)
    return Linearity(rank_first, loss, r_squared(phi @ model.theta, held.reward), error, used)


def sentences(found: Linearity) -> list[str]:
    """What was measured, one sentence per measure."""
    return [
        f"the true next state ranks first among {BATCH} in {found.rank_first:.1%}: {found.times_chance:.1f} x chance "
        f"(contrastive loss {found.loss:.2f}, chance {math.log(BATCH):.2f})",
        f"reward: R^2 of <phi, theta> is {found.reward_r2:.3f}",
        f"Bellman error: {found.bellman_error:.3f} of a target's standard deviation, mean over {BACKUPS} backups "
        "(0 is perfect, 1 no better than a constant; the game's own chance is in it)",
        f"dimensions in use: {found.used:.1f}",
    ]


def contrastive(model: LearnedModel, phi: Array, held: HeldOut) -> tuple[float, float]:
    """Rank-first rate and loss over batches of `BATCH`.

    A tie with another state counts as a miss; the same state drawn again is no negative.
    """
    first, losses = [], []
    mu, which = model.mu(held.next), np.unique(held.next, axis=0, return_inverse=True)[1].ravel()
    for rows in _batches(len(held)):
        logits = model.logits(phi[rows], mu[rows])
        true = np.diag(logits)
        other = which[rows][:, None] != which[rows][None, :]
        first.append((~((logits >= true[:, None]) & other).any(axis=1)).mean())
        top = logits.max(axis=1)
        losses.append((top + np.log(np.exp(logits - top[:, None]).sum(axis=1)) - true).mean())
    return float(np.mean(first)), float(np.mean(losses))


def _batches(n: int) -> Iterator[np.ndarray]:
    """Whole batches in a fixed random order; fewer rows than one batch are repeated, which can only hurt."""
    order = np.random.default_rng(0).permutation(np.resize(np.arange(n), max(n, BATCH)))
    for i in range(len(order) // BATCH):
        yield order[i * BATCH : (i + 1) * BATCH]


def r_squared(guess: Array, truth: Array) -> float:
    """1 - squared error / variance; 0 where the truth does not vary and the guess is right."""
    error, variance = float(((guess - truth) ** 2).mean()), float(truth.var())
    return 1 - error / variance if variance > 1e-12 else -error


def ridge(phi: Array, targets: Array, lam: float = 1.0) -> Array:
    """argmin |phi w - targets|^2 + lam |w|^2, (d,), or (d, k) for k targets of each row."""
    w: Array = np.linalg.solve(phi.T @ phi + lam * np.eye(phi.shape[1]), phi.T @ targets)
    return w


def fit_bellman(model: LearnedModel, data: HeldOut) -> Array:
    """Weights of `BACKUPS` steps of value iteration with ridge regression, on training transitions, (BACKUPS, d)."""
    phi = model.pairs(data.state, data.action)
    weights, V = np.zeros((BACKUPS, model.d)), np.zeros(len(data))
    for i in range(BACKUPS):
        weights[i] = ridge(phi, data.reward + V)
        V = values(model, weights[i : i + 1], data)[0]
    return weights


def values(model: LearnedModel, weights: Array, data: HeldOut) -> Array:
    """max_a <phi(s', a), w> of each next state, 0 after an end; weights (m, d) -> (m, n)."""
    chunks = (model.batch(data.next[i : i + CHUNK]) for i in range(0, len(data), CHUNK))
    best = [(phi @ weights.T).max(axis=1).T for phi in chunks]
    found: Array = np.concatenate(best, axis=1) * ~data.terminated.astype(bool)
    return found


def bellman_error(model: LearnedModel, phi: Array, held: HeldOut) -> float:
    """The mean relative error of `fit_bellman`'s weights on held-out transitions."""
    weights: Array = model.arrays["bellman.w"]
    V = np.pad(values(model, weights, held)[:-1], ((1, 0), (0, 0)))
    targets = held.reward + V
    errors = np.sqrt(((weights @ phi.T - targets) ** 2).mean(axis=1))
    return float(np.mean(errors / np.maximum(targets.std(axis=1), 1e-9)))
