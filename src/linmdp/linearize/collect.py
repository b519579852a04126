"""Transitions from a Gymnasium environment, played at random or by a given player."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

import gymnasium
import numpy as np

from linmdp.envs.games import Game
from linmdp.envs.guard import Bare, Guard
from linmdp.errors import InvalidParameter, check_int
from linmdp.linearize.data import Dataset

Step = tuple[np.ndarray, int, float, np.ndarray, bool]


class Player(Protocol):
    """Chooses the actions: every agent of linmdp is one. It sees rewards scaled to its task's range."""

    def begin_episode(self) -> None:
        """Before the first step."""

    def act(self, h: int, state: Any) -> int:
        """The action for `state` at step h."""

    def observe(self, h: int, state: Any, action: int, reward: float, next_state: Any, terminated: bool) -> None:
        """The outcome of a step."""

    def end_episode(self) -> None:
        """After the last step."""


class RandomPlayer:
    """Plays every action with the same probability, and learns nothing."""

    def __init__(self, A: int, rng: np.random.Generator) -> None:
        self.act = lambda h, state: int(rng.integers(A))
        self.begin_episode = self.end_episode = self.observe = lambda *step: None


def collect(
    game: Game,
    player: Player,
    *,
    transitions: int,
    H: int,
    seed: int,
    scaled: Callable[[float], float] = float,
    advance: Callable[[], None] | None = None,
) -> Dataset:
    """That many transitions, in episodes of at most H steps; `scaled` maps a reward to what the player sees."""
    check_int("linearize", "transitions", transitions, low=2)
    check_int("linearize", "horizon", H, low=1)
    rows: list[Step] = []
    where: list[tuple[int, int]] = []
    guard, episode = Guard(game, Bare(game.A), during=f" of '{game.id}'"), 0
    while len(rows) < transitions:
        state = guard.reset(episode, None if episode else seed)
        player.begin_episode()
        for h in range(H):
            action = player.act(h, state)
            following, reward, terminated, truncated = guard.step(episode, h, action)
            player.observe(h, state, action, scaled(reward), following, terminated)
            rows.append((state, action, reward, following, terminated))
            where.append((episode, h))
            state = following
            if advance:
                advance()
            if terminated or truncated or len(rows) == transitions:
                break
        player.end_episode()
        episode += 1
    return _dataset(game, rows, where, H, seed)


def random_data(
    game: Game, *, transitions: int, H: int, seed: int, advance: Callable[[], None] | None = None
) -> Dataset:
    """Transitions of a policy that plays every action with the same probability."""
    player = RandomPlayer(game.A, np.random.default_rng([seed, 0]))
    return collect(game, player, transitions=transitions, H=H, seed=seed, advance=advance)


def open_game(env_id: str, kwargs: dict[str, Any] | None = None) -> Game:
    """The environment, if its actions are discrete and its observations can be flattened."""
    if not env_id:
        raise InvalidParameter("The environment to linearize must be named by its Gymnasium id. Got ''.")
    return Game(env_id, **(kwargs or {}))


def _dataset(game: Game, rows: list[Step], where: list[tuple[int, int]], H: int, seed: int) -> Dataset:
    states, actions, rewards, following, ended = zip(*rows, strict=True)
    episode, step = np.array(where, dtype=np.int32).T
    meta = {
        "env": game.id,
        "kwargs": game.kwargs,
        "A": game.A,
        "layout": [list(part) for part in game.layout],
        "H": H,
        "seed": seed,
        "versions": versions(game),
    }
    return Dataset(
        meta=meta,
        states=np.array(states, dtype=game.dtype),
        actions=np.array(actions, dtype=np.int32),
        rewards=np.array(rewards, dtype=np.float32),
        next_states=np.array(following, dtype=game.dtype),
        terminated=np.array(ended, dtype=np.bool_),
        episode=episode,
        step=step,
    )


def versions(game: Game) -> dict[str, str]:
    """What the transitions depend on."""
    found = {"gymnasium": gymnasium.__version__}
    if game.id.startswith("ALE/"):
        import ale_py

        found["ale-py"] = ale_py.__version__
    return found
