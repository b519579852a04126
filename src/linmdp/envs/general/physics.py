"""Instances whose state is a few real numbers that follow a law of motion, and ways to plan in them."""

from __future__ import annotations

import itertools
from abc import abstractmethod
from typing import Any

import numpy as np
from gymnasium import spaces

from linmdp.envs.general.base import Instance, Policy, Table, mean_return
from linmdp.types import Array


class Physics(Instance):
    """States are vectors (k,); a subclass defines `begin`, `law` and `observed`.

    Parameters
    ----------
    low, high : bounds of an observation
    noise : standard deviation of the Gaussian noise on each number of the state after a step, (k,) or 0
    """

    state: Array

    def __init__(self, *, H: int, A: int, low: Any, high: Any, noise: Array | float = 0.0, ends: bool = False) -> None:
        space = spaces.Box(np.asarray(low, dtype=np.float32), np.asarray(high, dtype=np.float32), dtype=np.float32)
        super().__init__(H=H, A=A, space=space, ends=ends)
        self.noise = np.asarray(noise, dtype=np.float64)

    @abstractmethod
    def law(self, x: Array, action: int) -> tuple[Array, Any, Any]:
        """From states (..., k) to the next ones, the rewards (...) and whether the episode is over (...)."""

    def observed(self, x: Array) -> Array:
        """What is seen of a state: the state."""
        return x

    def move(self, action: int) -> tuple[float, bool]:
        """Follow the law, with noise."""
        x, reward, over = self.law(self.state, action)
        if self.noise.any():
            x = x + self.noise * self.np_random.standard_normal(len(x))
        self.state = x
        return float(reward), bool(over)

    def show(self) -> Array:
        """The observation, within its bounds."""
        space: Any = self.observation_space
        seen: Array = np.clip(self.observed(self.state), space.low, space.high).astype(np.float32)
        return seen


def best_played(env: Physics, *policies: Policy, episodes: int = 40) -> float:
    """The best mean return among policies."""
    return max(mean_return(env, policy, episodes) for policy in policies)


def _corners(x: Array, low: Array, high: Array, points: tuple[int, ...]) -> tuple[Array, Array]:
    """The nodes of a grid around states (n, k) and their weights in linear interpolation, (n, 2^k) each."""
    at = (np.clip(x, low, high) - low) / (high - low) * (np.array(points) - 1)
    below = np.minimum(at.astype(np.int64), np.array(points) - 2)
    part = at - below
    nodes, weights = [], []
    for corner in itertools.product((0, 1), repeat=len(points)):
        nodes.append(np.ravel_multi_index(tuple((below + corner).T), points))
        weights.append(np.where(np.array(corner) == 1, part, 1 - part).prod(axis=1))
    return np.stack(nodes, axis=1), np.stack(weights, axis=1)


def grid_policy(env: Physics, low: Any, high: Any, points: tuple[int, ...]) -> Policy:
    """The best policy as planning finds it on a grid of states, with values interpolated between its nodes."""
    low, high = np.asarray(low, dtype=np.float64), np.asarray(high, dtype=np.float64)
    axes = [np.linspace(lo, hi, n) for lo, hi, n in zip(low, high, points, strict=True)]
    nodes = np.stack([axis.ravel() for axis in np.meshgrid(*axes, indexing="ij")], axis=1)
    S, A, K = len(nodes), env.A, 2 ** len(points)
    chance, following = np.zeros((S, A, K)), np.zeros((S, A, K), dtype=np.int64)
    reward, over = np.zeros((S, A, K)), np.zeros((S, A, K), dtype=np.bool_)
    for a in range(A):
        x, pay, ends = env.law(nodes, a)
        following[:, a], chance[:, a] = _corners(x, low, high, points)
        reward[:, a], over[:, a] = np.broadcast_to(pay, S)[:, None], np.broadcast_to(ends, S)[:, None]
    model = Table(H=env.H, chance=chance, next=following, reward=reward, over=over, start=np.full(S, 1 / S))
    V = model.optimum.V

    def policy(env: Any) -> int:
        q = []
        for a in range(A):
            x, pay, ends = env.law(env.state, a)
            near, weight = _corners(x[None], low, high, points)
            q.append(float(pay) + (not ends) * float(weight[0] @ V[env.h + 1, near[0]]))
        return int(np.argmax(q))

    return policy
