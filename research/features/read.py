"""Feature maps on CartPole (docs, features): is a good Q near their span? About 3 minutes on one core."""

from __future__ import annotations

from typing import Any

import numpy as np

import linmdp
from linmdp.features import BlockFeatures
from linmdp.io.units import human_bytes
from linmdp.report.tables import markdown
from linmdp.types import Array
from research.study import Study

CARTPOLE = "gym:CartPole-v1,H=200"
MAPS = ("auto", "rbf", "rbf,centres=30", "rff", "fourier,order=1,coupling=4", "fourier,order=3", "tiles,dim=128")


def feature_maps(_: Study) -> str:
    """CartPole by least-squares policy iteration: is a good Q near the span of the features?"""
    rows = []
    for name in MAPS:
        env: Any = linmdp.make_env(f"{CARTPOLE},features={name}")
        # not the seeds on which the bandwidth of rbf was chosen
        found = np.array([policy_iteration(env, seed) for seed in range(100, 110)])[:, 1:]
        returns = (f"{x:.0f} ({y:.0f})" for x, y in zip(found.mean(axis=0), found.min(axis=0), strict=True))
        rows.append((f"`features={name}`", str(env.task.d), human_bytes(env.task.features.nbytes), *returns))
    return markdown(("map", "d", "bytes", *(f"after {20 * i} episodes" for i in range(1, 6))), rows)


def policy_iteration(env: Any, seed: int, rounds: int = 6, episodes: int = 20, discount: float = 0.95) -> list[float]:
    """The mean return of each round; the first is random, each later one plays the Q fitted to all data so far."""
    rng, features = np.random.default_rng(seed), env.task.features
    assert isinstance(features, BlockFeatures)
    w, data, earned = np.zeros((env.task.A, features.p)), [], []
    env.reset(seed=seed)
    for k in range(rounds):
        steps = [step for _ in range(episodes) for step in _episode(env, w, rng, 0.05 if k else 1.0)]
        data += steps
        earned.append(sum(step[2] for step in steps) / episodes)
        w = _fitted(features, w, data, discount)
    return earned


def _episode(env: Any, w: Array, rng: np.random.Generator, epsilon: float) -> list[tuple[Any, int, float, Any, bool]]:
    steps, (state, _), over = [], env.reset(), False
    while not over:
        q = w @ env.task.features.psi(state[None])[0]
        action = int(rng.integers(len(q)) if rng.random() < epsilon else q.argmax())
        following, reward, terminated, truncated, _ = env.step(action)
        steps.append((state, action, reward, following, terminated))
        state, over = following, terminated or truncated
    return steps


def _fitted(features: BlockFeatures, w: Array, data: list[Any], discount: float) -> Array:
    """w after at most 15 evaluations of the greedy policy (LSTD) and improvements."""
    state, action, reward, following, over = (np.array(x) for x in zip(*data, strict=True))
    n, rows = len(data), np.arange(len(data))
    phi, ahead = features.batch(state)[rows, action], features.psi(following) * ~over[:, None]
    for _ in range(15):
        best = (ahead @ w.T).argmax(axis=1)
        after = np.zeros((n, features.A, features.p))
        after[rows, best] = ahead
        matrix = phi.T @ (phi - discount * after.reshape(n, -1)) + 1e-3 * np.eye(features.d)
        old, w = w, np.linalg.solve(matrix, phi.T @ reward).reshape(w.shape)
        if np.abs(w - old).max() < 1e-3:
            break
    return w


PARTS = {"feature_maps": feature_maps}
