"""A linear MDP as a Gymnasium environment."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import gymnasium
import numpy as np

from linmdp.envs.base import Chance, LinearModel
from linmdp.envs.linear_mdps import LINEAR_MDPS
from linmdp.envs.planning import Optimum, optimum, policy_value, uniform_policy
from linmdp.errors import InvalidParameter, check_int, unknown
from linmdp.types import WHOLE


class LinearMDPEnv(gymnasium.Env[Any, Any]):
    """The environment of a `LinearModel`: observations are states 0 ... S-1, actions 0 ... A-1.

    An episode has exactly H steps; the last one comes back `truncated`, because no state is terminal.
    `task` is what an agent may know, `model` what it may not.
    `made_from` is the spec that it was made from, where there was one.
    """

    made_from: str | None = None
    metadata: dict[str, Any] = {"render_modes": []}  # noqa: RUF012 (Gymnasium declares it an instance attribute)

    def __init__(self, model: LinearModel) -> None:
        self.model = model
        self.observation_space = gymnasium.spaces.Discrete(model.S)
        self.action_space = gymnasium.spaces.Discrete(model.A)
        self.task = model.task
        self._h = model.H
        self._state = 0
        self._chance: Chance | None = None
        self._noise: list[float] = []
        self._moves: list[float] = []

    @cached_property
    def optimum(self) -> Optimum:
        """Q* and V* of the model, computed once."""
        return optimum(self.model)

    def model_of(self, k: int) -> LinearModel:
        """The model of episode k; of an environment that drifts not always the same."""
        return self.model

    def optimum_of(self, k: int) -> Optimum:
        """Q* and V* of episode k."""
        return self.optimum

    @cached_property
    def _worst_for_random(self) -> int:
        """Where an adversary that does not know the policy starts: where a random one loses most."""
        gap = self.optimum.V[0] - policy_value(self.model, uniform_policy(self.model))[0]
        return int(gap.argmax())

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[int, dict[str, Any]]:
        """Start an episode; `options={"state": s}` starts it in s (that is how an adversary moves)."""
        super().reset(seed=seed)
        if seed is not None or self._chance is None:
            self._chance = Chance(self.np_random)
        noise, moves = self._chance.episodes(1, self.model.H)
        self._noise, self._moves = (self.model.noise * noise[0]).tolist(), moves[0].tolist()  # read one by one
        self._h = 0
        if options and "state" in options:
            high = self.model.S - 1
            self._state = check_int(self.model.name, "state", options["state"], low=0, high=high)
        elif self.model.start == "uniform":
            self._state = self._chance.start(self.model.S)
        elif self.model.start == "adversarial":
            self._state = self._worst_for_random
        else:
            self._state = 0
        return self._state, {}

    def random_state(self) -> list[Any]:
        """The state of its random streams between two episodes, as plain data; empty before the first."""
        return [] if self._chance is None else self._chance.state()

    def restore_random_state(self, state: list[Any]) -> None:
        """Continue with the next episode from a saved `random_state`."""
        self._chance = Chance(np.random.default_rng(0)) if state else None
        if self._chance is not None:
            self._chance.restore(state)

    def step(self, action: int) -> tuple[int, float, bool, bool, dict[str, Any]]:
        """One step: next state, reward, terminated (never), truncated (after step H)."""
        model, h = self.model, self._h
        if not isinstance(action, WHOLE) or not 0 <= action < model.A:
            raise InvalidParameter(
                f"The action of {model.name} must be a whole number in [0, {model.A - 1}]. Got {action!r}."
            )
        if h >= model.H:
            raise InvalidParameter(f"The episode of {model.name} is over after {model.H} steps: call reset() first.")
        phi = model.features.row(self._state, action)
        mean, self._state = model.move(h, phi, self._moves[h])
        self._h = h + 1
        low, high = model.reward_range
        return self._state, min(max(mean + self._noise[h], low), high), False, self._h == model.H, {}


def linear_env(family: str, **parameters: Any) -> LinearMDPEnv:
    """The environment of a built-in family; also the entry point of the Gymnasium ids."""
    if family not in LINEAR_MDPS:
        unknown("environment", family, LINEAR_MDPS)
    return LinearMDPEnv(LINEAR_MDPS[family](**parameters))
