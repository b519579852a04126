"""The greedy policy of an agent: what it plays, asked from outside or in the environment, and what it earns."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any
from zlib import crc32

import gymnasium
import numpy as np
from gymnasium.vector.utils import batch_space, iterate

from linmdp.agents.base import TIE, Agent
from linmdp.envs.guard import Guard
from linmdp.results.stats import mean_interval
from linmdp.types import Array, BoolArray, IntArray, State


class Policy:
    """argmax_a Q_h(state, a) of an agent as it is, the first of equals; acting changes nothing in the agent.

    `policy(h, state)` is the action of step h. `policy.predict(obs)` counts the steps of an episode itself.
    """

    def __init__(self, agent: Agent) -> None:
        self._agent, self.task, self.h = agent, agent.task, 0

    def __call__(self, h: int, state: State) -> int:
        """The action for `state` at step h."""
        return int(self.best(h, state)[0])

    def best(self, h: int, state: State, mask: BoolArray | None = None) -> IntArray:
        """The actions that are equally good for `state` at step h, in order, of those in `mask`, (A,)."""
        q = self.q_values(h, state)
        if mask is not None:
            q = np.where(mask, q, -np.inf)
        return np.flatnonzero(q >= q.max() - TIE * max(1.0, abs(float(q.max()))))

    def reset(self) -> None:
        """An episode begins."""
        self.h = 0

    def predict(
        self, observation: State, state: None = None, episode_start: Any = None, deterministic: bool = True
    ) -> tuple[int, None]:
        """The action for the next step of the episode, and no state, as agents of Stable-Baselines3 answer.

        Call `reset()` when an episode begins, or pass `episode_start=True`. After H steps, where training cut every
        episode, it plays on as if one began. The policy is always deterministic.
        """
        if self.h >= self.task.H or (episode_start is not None and bool(episode_start)):
            self.reset()
        action = self(self.h, observation if self.task.S is None else int(observation))
        self.h += 1
        return action, None

    def q_values(self, h: int, state: State) -> Array:
        """What each action is worth, (A,)."""
        return self._agent.q_values(h, state)


def settled(policy: Policy, h: int, state: State, mask: BoolArray | None = None) -> int:
    """One of the best actions, always the same in the same state, and over many states each as often as any other.

    An agent draws among equals; the first of them always would be another policy, and where Q is at its cap a bad one.
    """
    best = policy.best(h, state, mask)
    if len(best) == 1:
        return int(best[0])
    return int(best[crc32(np.append(np.asarray(state, dtype=np.float64), h).tobytes()) % len(best)])


class Predictor:
    """The greedy policy of an agent, asked from outside.

    Parameters
    ----------
    policy : the policy
    space : where observations live
    adapter : the `GymTask` that reads them and numbers the actions; None where they are states already
    rng : draws among equal actions, where that is wanted
    """

    def __init__(
        self, policy: Policy, space: gymnasium.Space[Any], adapter: Any | None, rng: np.random.Generator
    ) -> None:
        self._policy, self._space, self._adapter, self._rng = policy, space, adapter, rng
        self._h, self._readers, self._last = np.zeros(0, dtype=np.int64), list[Any](), list[Any]()

    def __call__(self, observation: Any, episode_start: Any, deterministic: bool, masks: Any) -> Any:
        """The action for an observation or, where n come together, n actions."""
        many = self._how_many(observation)
        parts = [observation] if many is None else list(iterate(batch_space(self._space, many), observation))
        allowed = [None] * len(parts) if masks is None else [masks] if many is None else masks
        each = zip(self._steps(len(parts), episode_start), parts, allowed, strict=True)
        actions = [self._action(i, h, part, deterministic, mask) for i, (h, part, mask) in enumerate(each)]
        self._last = actions
        return actions[0] if many is None else np.array(actions)

    def _how_many(self, observation: Any) -> int | None:
        """How many observations come together; None for one alone."""
        alone = self._space.shape
        together = alone is not None and np.ndim(observation) == len(alone) + 1
        return len(observation) if together else None

    def _steps(self, n: int, episode_start: Any) -> list[int]:
        """The step of each of n episodes."""
        if len(self._h) != n:
            self._h = np.zeros(n, dtype=np.int64)
            self._readers = [] if self._adapter is None else [self._adapter.reader() for _ in range(n)]
        if episode_start is not None:
            self._h[np.broadcast_to(episode_start, n).astype(bool)] = 0
        self._h[self._h >= self._policy.task.H] = 0
        steps: IntArray = self._h.copy()
        self._h += 1
        return [int(h) for h in steps]

    def _action(self, i: int, h: int, observation: Any, deterministic: bool, given: Any) -> Any:
        """The environment's action for what it shows at step h of the i-th episode."""
        adapter, policy = self._adapter, self._policy
        if adapter is None:
            state = observation if policy.task.S is None else int(observation)
            mask = None if given is None else np.asarray(given, dtype=np.bool_)
        else:
            state = self._readers[i](observation, self._last[i] if h else None)
            mask = None if given is None else adapter.action_map.mask_of(given)
        if deterministic:
            action = settled(policy, h, state, mask)
        else:
            action = int(self._rng.choice(policy.best(h, state, mask)))
        return action if adapter is None else adapter.action_map(action)


@dataclass(frozen=True)
class Evaluation:
    """What a policy earned.

    Attributes
    ----------
    mean : of an episode
    interval : where the mean lies, with 95% confidence
    episodes : the return of each episode, (n,)
    """

    mean: float
    interval: tuple[float, float]
    episodes: Array

    def __repr__(self) -> str:
        low, high = self.interval
        return f"{self.mean:.4g} [{low:.4g}, {high:.4g}] an episode, {len(self.episodes)} episodes"


def evaluated(guard: Guard, policy: Policy, seeds: Iterable[int]) -> Evaluation:
    """One episode for each seed."""
    returns = list[float]()
    for k, seed in enumerate(seeds):
        state, earned = guard.reset(k, seed), 0.0
        for h in range(guard.task.H):
            state, reward, terminated, truncated = guard.step(k, h, settled(policy, h, state, guard.mask))
            earned += reward
            if terminated or truncated:
                break
        returns.append(guard.original(earned))
    found = mean_interval(np.array(returns))
    return Evaluation(found.mean, (found.low, found.high), np.array(returns))
