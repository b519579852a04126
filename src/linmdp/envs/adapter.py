"""Any discrete-action Gymnasium environment as a task of H steps."""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np

from linmdp.envs.games import make_gym
from linmdp.envs.rewards import reward_rule
from linmdp.errors import InvalidParameter, check_int, check_number
from linmdp.features.base import FeatureMap
from linmdp.features.tabular import one_hot
from linmdp.types import WHOLE, State, Task

ONE_HOT_LIMIT = 1024
"""Largest S * A for one-hot features: an agent keeps matrices of that many rows and columns for each step."""


class GymTask(gymnasium.Wrapper[Any, Any, Any, Any]):
    """A Gymnasium environment cut to H steps, with features: one-hot for Discrete observations, or your own.

    Parameters
    ----------
    id : a Gymnasium id, or an environment
    H : steps of an episode; the environment's own limit if it has one, and never more
    reward_low, reward_high : the range of one reward; a reward outside is an error, not a guess
    reward : what becomes of a reward outside its range: "error", "clip" or "rescale" (see `envs.rewards`)
    features : a FeatureMap from observations to (A, d); needed unless observations are Discrete
    kwargs : passed to `gymnasium.make`
    """

    model = None  # what is not known is not there: no V*, hence no exact regret

    def __init__(
        self,
        id: str | gymnasium.Env[Any, Any],
        *,
        H: int | None = None,
        reward_low: float = 0.0,
        reward_high: float = 1.0,
        reward: str = "error",
        features: FeatureMap | None = None,
        **kwargs: Any,
    ) -> None:
        if isinstance(id, gymnasium.Env):
            env, id = id, id.spec.id if id.spec else type(id.unwrapped).__name__
        else:
            env = make_gym(id, kwargs)
        super().__init__(env)
        if not isinstance(env.action_space, gymnasium.spaces.Discrete):
            raise InvalidParameter(f"The action space of '{id}' must be Discrete. Got {env.action_space}.")
        A = int(env.action_space.n)
        if features is not None and getattr(features, "A", A) != A:
            raise InvalidParameter(f"The features of '{id}' must be for {A} actions. Got {features.A}.")
        self._first_action = int(env.action_space.start)
        limit = env.spec.max_episode_steps if env.spec else None
        if H is None and limit is None:
            raise InvalidParameter(
                f"The 'H' parameter of '{id}' must be given: the environment has no limit of its own."
            )
        # no step beyond the environment's own limit is ever seen, and what is never seen looks good for ever
        H = check_int(id, "H", limit if H is None else H, low=1, high=limit)
        low = check_number(id, "reward_low", reward_low)
        high = check_number(id, "reward_high", reward_high, low=low)
        S = None
        self._first_state = 0
        if features is None:
            S, features = self._one_hot(id, A)
        elif not isinstance(features, FeatureMap):
            raise InvalidParameter(f"The 'features' parameter of '{id}' must be a FeatureMap. Got {features!r}.")
        self.id, self._h = id, 0
        self.task = Task(S=S, A=A, d=features.d, H=H, reward_range=(low, high), features=features)
        self._paid = reward_rule(env, id, reward, low, high, H)

    def _one_hot(self, id: str, A: int) -> tuple[int, FeatureMap]:
        space = self.env.observation_space
        if not isinstance(space, gymnasium.spaces.Discrete):
            raise InvalidParameter(f"Observations of '{id}' must be Discrete, or features be given. Got {space}.")
        S = int(space.n)
        if S * A > ONE_HOT_LIMIT:
            raise InvalidParameter(
                f"One-hot features of '{id}' must have d = S * A at most {ONE_HOT_LIMIT}. Got {S * A}."
            )
        self._first_state = int(space.start)
        return S, one_hot(S, A)

    @property
    def unwrapped(self) -> Any:
        """This adapter: what is inside has no task."""
        return self

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[State, dict[str, Any]]:
        """Start an episode."""
        self._h = 0
        state, info = self.env.reset(seed=seed, options=options)
        return self._state(state), info

    def step(self, action: int) -> tuple[State, Any, bool, bool, dict[str, Any]]:
        """One step; truncated also after step H."""
        if not 0 <= action < self.task.A:
            raise InvalidParameter(f"The action of '{self.id}' must be in [0, {self.task.A - 1}]. Got {action!r}.")
        state, reward, terminated, truncated, info = self.env.step(action + self._first_action)
        self._h += 1
        if self._paid is not None:
            reward = self._paid(reward)
        return self._state(state), reward, bool(terminated), bool(truncated) or self._h >= self.task.H, info

    def _state(self, observation: Any) -> State:
        if self.task.S is None:
            return np.asarray(observation)
        if isinstance(observation, np.ndarray) and observation.ndim == 0:
            observation = observation[()]
        return int(observation) - self._first_state if isinstance(observation, WHOLE) else observation
