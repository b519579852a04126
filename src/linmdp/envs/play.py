"""The real game behind a learned model: scores scaled to the range of one reward, or the learned reward."""

from __future__ import annotations

from typing import Any

import gymnasium

from linmdp.envs.adapter import GymTask
from linmdp.envs.games import Game
from linmdp.errors import InvalidData
from linmdp.features.learned import LearnedModel


class Scores(gymnasium.Wrapper[Any, Any, Any, Any]):
    """Real transitions, real scores divided by the model's scale and clipped to its range, real ends of life and game.

    `score` is the episode's real score so far, unscaled and unclipped.
    """

    def __init__(self, game: Game, learned: LearnedModel) -> None:
        super().__init__(game)
        self._learned, self.score = learned, 0.0

    def reset(self, **options: Any) -> tuple[Any, dict[str, Any]]:
        self.score = 0.0
        return self.env.reset(**options)

    def step(self, action: int) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        state, reward, terminated, truncated, info = self.env.step(action)
        self.score += float(reward)
        return state, self._learned.scaled(float(reward)), terminated, truncated, info


class LearnedRewards(gymnasium.Wrapper[Any, Any, Any, Any]):
    """Real transitions, the reward <phi, theta> clipped to its range, and no end: after a game comes the next."""

    def __init__(self, game: Game, learned: LearnedModel) -> None:
        super().__init__(game)
        self._learned = learned
        self._state: Any = None

    def reset(self, **options: Any) -> tuple[Any, dict[str, Any]]:
        self._state, info = self.env.reset(**options)
        return self._state, info

    def step(self, action: int) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """One step of the game, paid by the model."""
        reward = float(self._learned.reward(self._learned.phi(self._state)[action]))
        state, _, terminated, truncated, info = self.env.step(action)
        if terminated or truncated:
            state, info = self.env.reset()
        self._state = state
        return state, reward, False, False, info


def linearized_game(learned: LearnedModel, mode: str, H: int) -> GymTask:
    """The game of a model as a task of H steps, seen through the model's features."""
    game = Game(learned.env_id, **learned.meta.get("kwargs", {}))
    if game.A != learned.A or game.layout != learned.encoder.layout:
        raise InvalidData(
            f"The model of '{learned.env_id}' must be for {game.A} actions and observations {game.layout}. "
            f"Got {learned.A} and {learned.encoder.layout}."
        )
    low, high = learned.meta["reward_range"]
    env = Scores(game, learned) if mode == "game" else LearnedRewards(game, learned)
    task = GymTask(env, H=H, reward_low=low, reward_high=high, features=learned)
    task.id = f"linearized:{learned.env_id},mode={mode}"
    return task
