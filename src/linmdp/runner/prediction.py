"""Actions for observations as an environment shows them: one at a time, or those of several episodes together."""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np
from gymnasium.vector.utils import batch_space, iterate

from linmdp.runner.evaluation import settled
from linmdp.runner.loading import Policy
from linmdp.types import IntArray


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
        self._h = np.zeros(1, dtype=np.int64)

    def __call__(self, observation: Any, episode_start: Any, deterministic: bool, masks: Any) -> Any:
        """The action for an observation or, where n come together, n actions."""
        many = self._how_many(observation)
        parts = [observation] if many is None else list(iterate(batch_space(self._space, many), observation))
        allowed = [None] * len(parts) if masks is None else [masks] if many is None else masks
        each = zip(self._steps(len(parts), episode_start), parts, allowed, strict=True)
        actions = [self._action(h, part, deterministic, mask) for h, part, mask in each]
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
        if episode_start is not None:
            self._h[np.broadcast_to(episode_start, n).astype(bool)] = 0
        self._h[self._h >= self._policy.task.H] = 0
        steps: IntArray = self._h.copy()
        self._h += 1
        return [int(h) for h in steps]

    def _action(self, h: int, observation: Any, deterministic: bool, given: Any) -> Any:
        """The environment's action for what it shows at step h."""
        adapter, policy = self._adapter, self._policy
        if adapter is None:
            state = observation if policy.task.S is None else int(observation)
            mask = None if given is None else np.asarray(given, dtype=np.bool_)
        else:
            state = adapter.state_of(observation)
            mask = None if given is None else adapter.action_map.mask_of(given)
        if deterministic:
            action = settled(policy, h, state, mask)
        else:
            action = int(self._rng.choice(policy.best(h, state, mask)))
        return action if adapter is None else adapter.action_map(action)
