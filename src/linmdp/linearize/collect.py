"""Transitions of random play in a Gymnasium environment."""

from __future__ import annotations

from collections.abc import Callable
from importlib.metadata import version
from itertools import count

import numpy as np

from linmdp.envs.games import Game
from linmdp.envs.guard import Bare, Guard, PlayedStep
from linmdp.errors import check_int
from linmdp.linearize.data import Dataset


def random_data(
    game: Game, *, transitions: int, H: int, seed: int, advance: Callable[[], None] | None = None
) -> Dataset:
    """That many transitions of random play, in episodes of at most H steps."""
    check_int("linearize", "transitions", transitions, low=2)
    check_int("linearize", "horizon", H, low=1)
    rows: list[tuple[int, PlayedStep]] = []
    guard, rng = Guard(game, Bare(game.A), during=f" of '{game.id}'"), np.random.default_rng([seed, 0])
    for k in count():
        for step in guard.random_episode(k, rng, H=H, seed=None if k else seed):
            rows.append((k, step))
            if advance:
                advance()
            if len(rows) == transitions:
                return _dataset(game, rows, H, seed)
    raise AssertionError("there is no last episode")


def _dataset(game: Game, rows: list[tuple[int, PlayedStep]], H: int, seed: int) -> Dataset:
    episodes, steps = zip(*rows, strict=True)
    h, states, actions, rewards, following, ended, _ = zip(*steps, strict=True)
    meta = {
        "env": game.id,
        "kwargs": game.kwargs,
        "A": game.A,
        "layout": [list(part) for part in game.layout],
        "H": H,
        "seed": seed,
        "versions": {name: version(name) for name in ("gymnasium", *["ale-py"] * game.id.startswith("ALE/"))},
    }
    return Dataset(
        meta=meta,
        states=np.array(states, dtype=game.dtype),
        actions=np.array(actions, dtype=np.int32),
        rewards=np.array(rewards, dtype=np.float32),
        next_states=np.array(following, dtype=game.dtype),
        terminated=np.array(ended, dtype=np.bool_),
        episode=np.array(episodes, dtype=np.int32),
        step=np.array(h, dtype=np.int32),
    )
