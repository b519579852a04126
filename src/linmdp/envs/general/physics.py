"""Instances whose state is a few real numbers that follow a law of motion, and ways to plan in them."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import numpy as np
from gymnasium import spaces

from linmdp.envs.general.base import Instance, Policy, mean_return
from linmdp.envs.general.gridded import Grid
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


Numbers: TypeAlias = Sequence[Any] | Array
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


def grid_policy(env: Physics, low: Any, high: Any, points: tuple[int, ...]) -> Policy:
    """The best policy as planning finds it on a grid of states, with values interpolated between its nodes."""
    grid = Grid([np.linspace(lo, hi, n) for lo, hi, n in zip(low, high, points, strict=True)])
    followed = [env.law(grid.points.T, a, np) for a in range(env.A)]
    V = np.zeros((env.H + 1, len(grid.points)))
    for h in reversed(range(env.H)):
        V[h] = np.max([pay + (1 - over) * grid.at(V[h + 1], np.array(x).T) for x, pay, over in followed], axis=0)

    def policy(env: Any) -> int:
        after = [env.law(env.state, a, Floats) for a in range(env.A)]
        later = grid.at(V[env.h + 1], np.array([x for x, _, _ in after]))
        return int(np.argmax([pay + (1 - over) * v for (_, pay, over), v in zip(after, later, strict=True)]))

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
        after = np.concatenate([np.array(step[0]) for step in tried], axis=1)
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
