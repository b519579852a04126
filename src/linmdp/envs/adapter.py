"""Any discrete-action Gymnasium environment as a task of H steps."""

from __future__ import annotations

import math
import re
from typing import Any

import gymnasium
import numpy as np

from linmdp.envs.actions import Actions
from linmdp.envs.games import make_gym
from linmdp.envs.mapping import EnvView, map_by_name, map_parameters, usual_map
from linmdp.envs.observations import counted
from linmdp.envs.rewards import reward_rule
from linmdp.errors import InvalidParameter, check_int, check_number, invalid
from linmdp.features.base import FeatureMap
from linmdp.features.tabular import TableFeatures
from linmdp.types import State, Task

REWARDS = {
    "CartPole": (0.0, 1.0),
    "MountainCar": (-1.0, 0.0),
    "Acrobot": (-1.0, 0.0),
    "FrozenLake": (0.0, 1.0),
    "FrozenLake8x8": (0.0, 1.0),
    "Taxi": (-10.0, 20.0),
    "CliffWalking": (-100.0, 0.0),
    "CliffWalkingSlippery": (-100.0, 0.0),
    "Blackjack": (-1.0, 1.0),
}
"""The range of one reward, by the name without its version. It always contains 0, the reward after the end."""


class GymTask(gymnasium.Wrapper[Any, Any, Any, Any]):
    """A Gymnasium environment cut to H steps, with features: by name, or your own.

    Parameters
    ----------
    id : a Gymnasium id, or an environment
    H : steps per episode; default: the environment's own limit, which is also the maximum
    reward_low, reward_high : the range of one reward; known for the classic environments, default for others: 0 and 1
    reward : what to do with a reward outside its range: "error", "clip" or "rescale" (see `envs.rewards`)
    features : onehot, hashed, fourier, tiles, rbf, rff, auto, or a FeatureMap from observations to (A, d); by default
        onehot where observations are whole numbers that can be counted, hashed where they cannot, else auto
    order : of onehot and fourier
    coupling : of fourier, the most coordinates that one cosine joins
    tilings, tiles : of tiles
    centres : of rbf
    dim : of tiles (at most), rff and auto
    bandwidth : of rbf, rff and auto
    scaling : "bounds" of the space where it has some, or "data": the range seen in the warm-up
    warmup : steps of a random policy before the first episode, for features that are fitted to data
    seed : seed of the warm-up, of rff and of auto
    kwargs : parameters of a registered feature map; others are passed to `gymnasium.make`

    Attributes
    ----------
    chosen : what was not given and is not the environment's own: features and their d
    """

    model = None  # unknown: no V*, hence no exact regret

    def __init__(
        self,
        id: str | gymnasium.Env[Any, Any],
        *,
        H: int | None = None,
        reward_low: float | None = None,
        reward_high: float | None = None,
        reward: str = "error",
        features: str | FeatureMap | None = None,
        order: int | None = None,
        coupling: int | None = None,
        tilings: int | None = None,
        tiles: int | None = None,
        centres: int | None = None,
        dim: int | None = None,
        bandwidth: float | None = None,
        scaling: str | None = None,
        warmup: int | None = None,
        seed: int | None = None,
        **kwargs: Any,
    ) -> None:
        sizes = {"order": order, "coupling": coupling, "tilings": tilings, "tiles": tiles, "centres": centres}
        others = {"dim": dim, "bandwidth": bandwidth, "scaling": scaling, "warmup": warmup, "seed": seed}
        given = {name: value for name, value in (sizes | others).items() if value is not None}
        if isinstance(features, str):  # a map that someone else registered has other parameters
            given |= {name: kwargs.pop(name) for name in map_parameters(features) if name in kwargs}
        if isinstance(id, gymnasium.Env):
            env, id = id, id.spec.id if id.spec else type(id.unwrapped).__name__
        else:
            env = make_gym(id, kwargs)
        super().__init__(env)
        self._actions, self.chosen = Actions(id, env.action_space), dict[str, Any]()
        A = self._actions.A
        self.action_space = gymnasium.spaces.Discrete(A)
        limit = env.spec.max_episode_steps if env.spec else None
        if H is None and limit is None:
            raise InvalidParameter(
                f"The 'H' parameter of '{id}' must be given, as in H=100: the environment has no limit of its own."
            )
        # no step beyond the environment's own limit is ever seen, and an optimistic agent would value it for ever
        H = check_int(id, "H", limit if H is None else H, low=1, high=limit)
        usual = REWARDS.get(re.sub(r"-v\d+$", "", id), (0.0, 1.0))
        low = check_number(id, "reward_low", usual[0] if reward_low is None else reward_low)
        high = check_number(id, "reward_high", usual[1] if reward_high is None else reward_high, low=low)
        S, phi = self._mapped(id, features, given)
        self.id, self._h = id, 0
        shape = self.observation_space.shape
        state_bytes = None if shape is None else 8 * math.prod(shape)
        self.task = Task(
            S=S,
            A=A,
            d=phi.d,
            H=H,
            reward_range=(low, high),
            features=phi,
            state_bytes=state_bytes,
            stationary=True,
        )
        self._paid = reward_rule(env, id, reward, low, high, H)

    def _mapped(
        self, id: str, features: str | FeatureMap | None, given: dict[str, Any]
    ) -> tuple[int | None, FeatureMap]:
        """Number of states and features; `_state` and the observation space follow them."""
        A = self._actions.A
        if features is None or isinstance(features, str):
            view = EnvView(id, self.env, self._actions)
            name = usual_map(view, given) if features is None else features
            reading, phi = map_by_name(name, view, given)
            self._state, self.observation_space = reading.read, reading.space
            if features is None:
                self.chosen |= {"features": name, "d": phi.d}
            return reading.S, phi
        if given:
            name, value = next(iter(given.items()))
            invalid(f"'{id}'", name, "left out where 'features' is a FeatureMap", value)
        if getattr(features, "A", A) != A:
            raise InvalidParameter(f"The features of '{id}' must be for {A} actions. Got {features.A}.")
        if not isinstance(features, FeatureMap):
            raise InvalidParameter(
                f"The 'features' parameter of '{id}' must be a name or a FeatureMap. Got {features!r}."
            )
        if isinstance(features, TableFeatures):
            space: gymnasium.Space[Any] = self.env.observation_space
            finite = counted(id, space)
            if finite is None or finite.S != features.S:
                raise InvalidParameter(
                    f"The feature table of '{id}' must be for the states of {space}. Got {features.S}."
                )
            self._state, self.observation_space = finite.read, finite.space
            return finite.S, features
        self._state = np.asarray
        return None, features

    @property
    def unwrapped(self) -> Any:
        """This adapter: what is inside has no task."""
        return self

    @property
    def _np_random(self) -> Any:  # type: ignore[override]
        """Gymnasium's checker looks for it in `unwrapped`, which is the adapter."""
        return self.env.unwrapped._np_random

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[State, dict[str, Any]]:
        """Start an episode."""
        self._h = 0
        state, info = self.env.reset(seed=seed, options=options)
        return self._state(state), info

    def step(self, action: int) -> tuple[State, Any, bool, bool, dict[str, Any]]:
        """One step; truncated also after step H."""
        if not 0 <= action < self.task.A:
            raise InvalidParameter(f"The action of '{self.id}' must be in [0, {self.task.A - 1}]. Got {action!r}.")
        state, reward, terminated, truncated, info = self.env.step(self._actions(action))
        self._h += 1
        if self._paid is not None:
            reward = self._paid(reward)
        return self._state(state), reward, bool(terminated), bool(truncated) or self._h >= self.task.H, info
