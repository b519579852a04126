"""What was seen and done lately as one observation, where one observation does not tell the state."""

from __future__ import annotations

from collections import deque
from copy import deepcopy
from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces

from linmdp.envs.actions import Actions
from linmdp.envs.observations import whole


class Window:
    """The last n observations, oldest first, and the n-1 actions between them.

    Before an episode is that long the first observation stands for those that are missing, and nothing for actions.
    Beside whole numbers an action is its number, from 1 on; beside others it is flat as Gymnasium flattens it: one-hot
    where it is a choice, its own numbers where it is a Box.

    Attributes
    ----------
    space : where they live together
    """

    def __init__(self, space: spaces.Space[Any], actions: Actions, n: int) -> None:
        self._actions, self._whole = actions, whole(space)
        self._seen, self._done = deque[Any](maxlen=n), deque[Any](maxlen=n - 1)
        between: spaces.Space[Any]
        if self._whole:
            self._nothing: Any = [0]
            between = spaces.MultiDiscrete([actions.A + 1] * (n - 1))
        else:
            flat: Any = spaces.flatten_space(actions.space)
            self._nothing = np.zeros(flat.shape)
            least, most = np.minimum(flat.low, 0).astype(np.float64), np.maximum(flat.high, 0).astype(np.float64)
            between = spaces.Box(np.tile(least, n - 1), np.tile(most, n - 1), dtype=np.float64)
        self.space = spaces.Tuple([*[space] * n, between])

    def __call__(self, observation: Any, action: Any = None) -> tuple[Any, ...]:
        """What is shown after an `action` of the environment; without one an episode begins."""
        observation = deepcopy(observation)  # an environment may go on writing into its own
        if action is None:
            self._seen.extend([observation] * (self._seen.maxlen or 0))
            self._done.extend([self._nothing] * (self._done.maxlen or 0))
        else:
            self._seen.append(observation)
            self._done.append([self._actions.nearest(action) + 1] if self._whole else self._flat(action))
        return (*self._seen, np.concatenate(self._done))

    def _flat(self, action: Any) -> Any:
        return np.asarray(spaces.flatten(self._actions.space, action), dtype=np.float64)


class History(gymnasium.Wrapper[Any, Any, Any, Any]):
    """An environment that shows a `Window` of n >= 2 observations."""

    def __init__(self, env: gymnasium.Env[Any, Any], actions: Actions, n: int) -> None:
        super().__init__(env)
        self._window = Window(env.observation_space, actions, n)
        self.observation_space = self._window.space

    @property
    def spec(self) -> Any:  # type: ignore[override]
        """That of the environment inside."""
        return self.env.spec

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        observation, info = self.env.reset(seed=seed, options=options)
        return self._window(observation), info

    def step(self, action: Any) -> tuple[Any, Any, bool, bool, dict[str, Any]]:
        observation, *rest = self.env.step(action)
        return (self._window(observation, action), *rest)  # type: ignore[return-value]
