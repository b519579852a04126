"""Data in rounds: random at first, then by a learner on the current features, which are refitted in each round."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from linmdp.envs.games import Game
from linmdp.errors import check_int
from linmdp.features.learned import LearnedModel
from linmdp.linearize.collect import Player, collect, random_data
from linmdp.linearize.data import Dataset, joined
from linmdp.linearize.train import Settings, train
from linmdp.types import Task

DIMENSION = 64
"""Features of a round have at most this many dimensions: a learner on 512 would take longer than the training."""

MakePlayer = Callable[[Task], Player]


def explored_data(
    game: Game,
    settings: Settings,
    make_player: MakePlayer,
    *,
    transitions: int,
    H: int,
    rounds: int,
    advance: Callable[[], None] | None = None,
) -> Dataset:
    """`rounds` equal parts of data: the first random, each other by a fresh learner on features of all before it.

    Features of a round are small and trained for a part of the iterations only: they are thrown away after it.
    """
    rounds = check_int("linearize", "rounds", rounds, low=2)
    part = max(2, transitions // rounds)
    seeds = np.random.SeedSequence(settings.seed).generate_state(rounds)
    data = random_data(game, transitions=part, H=H, seed=settings.seed, advance=advance)
    short = replace(settings, d=min(settings.d, DIMENSION), steps=max(1, settings.steps // rounds))
    for i in range(1, rounds):
        model = train(data, short)
        count = part if i < rounds - 1 else max(2, transitions - len(data))
        player = make_player(task_of(model, H))
        new = collect(game, player, transitions=count, H=H, seed=int(seeds[i]), scaled=model.scaled, advance=advance)
        data = joined((data, new))
    return data


def task_of(model: LearnedModel, H: int) -> Task:
    """What a learner may know of the game."""
    low, high = model.meta["reward_range"]
    return Task(S=None, A=model.A, d=model.d, H=H, reward_range=(low, high), features=model)
