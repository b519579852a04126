"""The first seconds of Atari games, seen through the 128 bytes of their memory (needs the extra `linearize`).

An episode has 50 to 100 steps of four frames each, and a lost life ends it. Rewards are the scores of the game.

Drawn: the game, whether actions stick (each is replaced by the one before with chance 0.25), what scores are multiplied
by, H. The best known return is the mean of the best episodes that searches find; they can go back, and with actions
that stick they know in hindsight which did, so no policy reaches all of it.
"""

from __future__ import annotations

import numpy as np

from linmdp.envs.emulator import best_episode
from linmdp.envs.games import Game
from linmdp.envs.general.base import Family, runs
from linmdp.envs.general.foreign import Foreign

GAMES = (
    "AirRaid",
    "Alien",
    "Assault",
    "Asterix",
    "Atlantis",
    "Boxing",
    "Carnival",
    "Centipede",
    "DemonAttack",
    "MsPacman",
    "Pooyan",
    "Qbert",
    "Riverraid",
    "Seaquest",
    "SpaceInvaders",
    "UpNDown",
)
"""Games in which something can be earned in so few steps."""

SEARCHED, SEARCHES = 20_000, 2
"""Steps of the emulator in one search, and searches."""


class RamGame(Foreign):
    """One game."""

    def __init__(self, rng: np.random.Generator) -> None:
        self.id = f"ALE/{rng.choice(GAMES)}-v5"
        self.kwargs = {"obs_type": "ram", "repeat_action_probability": float(rng.choice([0.0, 0.25]))}
        self.unit, H = float(rng.choice([0.01, 0.1, 1.0])), int(rng.integers(50, 101))
        super().__init__(Game(self.id, **self.kwargs), H=H)

    def move(self, action: int) -> tuple[float, bool]:
        """One step of the game."""
        score, over = super().move(action)
        return self.unit * score, over


def best(env: RamGame) -> float:
    """What searches find."""
    found = [best_episode(env.id, env.H, SEARCHED, seed, **env.kwargs) for seed in range(SEARCHES)]
    return env.unit * float(np.mean(found))


FAMILY = Family(
    name="ram_games",
    half="kept",
    make=RamGame,
    H=100,
    episodes=runs(75),
    best=best,
    extra="linearize",
)
