"""Environments of other packages as instances of the suite."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import gymnasium
from gymnasium import spaces

from linmdp.envs.general.base import Instance


class Foreign(Instance):
    """An environment with whole-numbered actions, cut to H steps.

    Parameters
    ----------
    inner : the environment
    H : steps of an episode at most
    space, seen : of the observations, and what is shown of one of `inner`; default: all of it
    layout : a seed that every episode begins with, so that all are alike at the start; default: a new one each time
    """

    def __init__(
        self,
        inner: gymnasium.Env[Any, Any],
        *,
        H: int,
        space: spaces.Space[Any] | None = None,
        seen: Callable[[Any], Any] | None = None,
        layout: int | None = None,
        ends: bool = False,
    ) -> None:
        actions: Any = inner.action_space
        super().__init__(H=H, A=int(actions.n), space=space or inner.observation_space, ends=ends)
        self.inner, self.layout = inner, layout
        self._seen = seen or (lambda observation: observation)
        self._observation: Any = None

    def begin(self) -> None:
        """Start the inner environment with a seed of ours."""
        drawn = int(self.np_random.integers(1 << 31))
        self._observation, _ = self.inner.reset(seed=drawn if self.layout is None else self.layout)

    def move(self, action: int) -> tuple[float, bool]:
        """One step of the inner environment."""
        self._observation, reward, terminated, _, _ = self.inner.step(action)
        return float(reward), bool(terminated)

    def show(self) -> Any:
        """What is seen of the observation."""
        return self._seen(self._observation)

    def close(self) -> None:
        """Close the inner environment."""
        self.inner.close()
