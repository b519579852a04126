"""An environment in a line: what it shows, what it pays, and when it ends."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import gymnasium
from gymnasium import spaces


class Toy(gymnasium.Env[Any, Any]):
    """Step h = 1, 2, ... pays `paid(h, action)`; `shown(h)` is observed, by default a sample of the space.

    After `length` steps an episode ends, cut off or by itself.
    """

    def __init__(
        self,
        space: spaces.Space[Any],
        *,
        actions: spaces.Space[Any] | None = None,
        shown: Callable[[int], Any] | None = None,
        paid: Callable[[int, Any], float] = lambda h, action: 0.5,
        length: int = 10**9,
        cut: bool = True,
    ) -> None:
        self.observation_space, self.action_space = space, actions or spaces.Discrete(2)
        self.shown, self.paid, self.length, self.cut, self.h = shown, paid, length, cut, 0

    def _seen(self) -> Any:
        return self.observation_space.sample() if self.shown is None else self.shown(self.h)

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)
        if seed is not None:
            self.observation_space.seed(seed)
        self.h = 0
        return self._seen(), {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        assert action in self.action_space
        self.h += 1
        over = self.h >= self.length
        return self._seen(), float(self.paid(self.h, action)), over and not self.cut, over and self.cut, {}
