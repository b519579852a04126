"""Instances whose state is a few real numbers that follow a law of motion, and ways to plan in them."""

from __future__ import annotations

import itertools
import math
from abc import abstractmethod
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from gymnasium import spaces

from linmdp.envs.general.base import Instance, Policy, Table, mean_return
from linmdp.types import Array


class Floats:
    """What laws of motion need, for Python's floats: in a single state that is ten times as fast as NumPy."""

    sin, cos = math.sin, math.cos

    @staticmethod
    def clip(x: float, low: float, high: float) -> float:
        """x, brought into [low, high]."""
        return min(max(x, low), high)

    @staticmethod
    def where(condition: bool, x: float, y: float) -> float:
        """x if the condition holds, else y."""
        return x if condition else y


def turned(angle: Any) -> Any:
    """An angle as one in [-pi, pi)."""
    return (angle + math.pi) % (2 * math.pi) - math.pi


Numbers = Sequence[Any]
"""The k numbers of a state, or of n states at once as k arrays (n,)."""


class Physics(Instance):
    """States are k numbers; a subclass defines `begin`, `law` and `observed`.

    Parameters
    ----------
    low, high : bounds of an observation
    noise : standard deviation of the Gaussian noise on each number of the state after a step, (k,) or 0
    """

    state: Numbers

    def __init__(self, *, H: int, A: int, low: Any, high: Any, noise: Array | float = 0.0, ends: bool = False) -> None:
        space = spaces.Box(np.asarray(low, dtype=np.float32), np.asarray(high, dtype=np.float32), dtype=np.float32)
        super().__init__(H=H, A=A, space=space, ends=ends)
        self.noise = np.asarray(noise, dtype=np.float64)
        self._low, self._high, self._noisy = space.low, space.high, bool(self.noise.any())

    @abstractmethod
    def law(self, x: Numbers, action: int, m: Any) -> tuple[Numbers, Any, Any]:
        """The next state, the reward, and whether the episode is over; `m` is `Floats`, or NumPy for many states."""

    def observed(self, x: Numbers) -> Numbers:
        """What is seen of a state: the state."""
        return x

    def move(self, action: int) -> tuple[float, bool]:
        """Follow the law, with noise."""
        x, reward, over = self.law(self.state, action, Floats)
        if self._noisy:
            x = (np.asarray(x) + self.noise * self.np_random.standard_normal(len(x))).tolist()
        self.state = x
        return float(reward), bool(over)

    def show(self) -> Array:
        """The observation, within its bounds."""
        seen = np.array(self.observed(self.state), dtype=np.float32)
        return seen.clip(self._low, self._high)


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
        x, pay, ends = env.law(nodes.T, a, np)
        following[:, a], chance[:, a] = _corners(np.stack(x, axis=1), low, high, points)
        reward[:, a], over[:, a] = np.broadcast_to(pay, S)[:, None], np.broadcast_to(ends, S)[:, None]
    model = Table(H=env.H, chance=chance, next=following, reward=reward, over=over, start=np.full(S, 1 / S))
    V = model.optimum.V

    def policy(env: Any) -> int:
        q = []
        for a in range(A):
            x, pay, ends = env.law(env.state, a, Floats)
            near, weight = _corners(np.array([x]), low, high, points)
            q.append(float(pay) + (not ends) * float(weight[0] @ V[env.h + 1, near[0]]))
        return int(np.argmax(q))

    return policy


def beam(env: Physics, x: Numbers, guide: Callable[[Numbers], Array], cell: Any, width: int = 1000) -> float:
    """The best return from a state that a beam search finds, in an instance without noise.

    Of the states that are reached at a step, those with the largest return so far plus `guide` are kept, `width` of
    them, and one for each cell of that size (k,). What a plan earns there a policy can earn, too.
    """
    states, earned, best = np.array(x)[:, None], np.zeros(1), -np.inf
    places = np.array([1, 1 << 16, 1 << 32, 1 << 48])[: len(x)]
    for _ in range(env.H):
        tried = [env.law(states, a, np) for a in range(env.A)]
        after = np.concatenate([np.stack(step[0]) for step in tried], axis=1)
        returns = np.concatenate([earned + step[1] for step in tried])
        over = np.concatenate([np.broadcast_to(step[2], len(earned)) for step in tried])
        best = max(best, returns[over].max(initial=-np.inf))
        after, returns = after[:, ~over], returns[~over]
        order = np.argsort(-(returns + guide(after)), kind="stable")
        _, first = np.unique(places @ np.floor(after[:, order].T / cell).astype(np.int64).T, return_index=True)
        kept = order[np.sort(first)[:width]]
        states, earned = after[:, kept], returns[kept]
        if not len(earned):
            return float(best)
    return float(max(best, earned.max()))


def beamed(env: Physics, guide: Callable[[Numbers], Array], cell: Any, starts: int = 5) -> float:
    """The mean of `beam` over some starts."""
    found = []
    for seed in range(starts):
        env.reset(seed=seed)
        found.append(beam(env, env.state, guide, cell))
    return float(np.mean(found))
