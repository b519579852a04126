"""Environments of other packages as instances of the suite."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces

from linmdp.envs.games import Game, make_gym
from linmdp.envs.general.base import Instance, family, runs


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
        drawn = int(self.np_random.integers(1 << 31))
        self._observation, _ = self.inner.reset(seed=drawn if self.layout is None else self.layout)

    def move(self, action: int) -> tuple[float, bool]:
        self._observation, reward, terminated, _, _ = self.inner.step(action)
        return float(reward), bool(terminated)

    def show(self) -> Any:
        return self._seen(self._observation)

    def close(self) -> None:
        self.inner.close()


@family("box2d_landers", "kept", H=400, episodes=runs(200), extra="box2d")
def box2d_landers(rng: np.random.Generator) -> Foreign:
    """Gymnasium's LunarLander with other gravity and wind (needs the extra `box2d`)."""
    windy = bool(rng.random() < 0.5)
    weather = {"enable_wind": windy, "wind_power": rng.uniform(0, 12), "turbulence_power": rng.uniform(0, 1.2)}
    inner = make_gym("LunarLander-v3", {"gravity": -rng.uniform(6.0, 11.0), **weather})
    return Foreign(inner, H=int(rng.integers(250, 401)))


WALKS = ("Empty-5x5", "Empty-Random-6x6", "LavaGapS5", "LavaGapS6", "SimpleCrossingS9N1", "DistShift1")
DOORS = ("DoorKey-5x5", "DoorKey-6x6")


class Fewer(gymnasium.ActionWrapper[Any, int, Any]):
    """The first n actions: left, right, forward, pick up, drop, toggle, done."""

    def __init__(self, env: gymnasium.Env[Any, Any], n: int) -> None:
        super().__init__(env)
        self.action_space: Any = gymnasium.spaces.Discrete(n)

    def action(self, action: int) -> int:
        return action


@family("minigrids", "kept", H=120, episodes=runs(80), extra="minigrid")
def minigrids(rng: np.random.Generator) -> Foreign:
    """Tasks of MiniGrid (needs the extra `minigrid`): a goal to walk to, behind lava, crossings or a locked door.

    The observation is MiniGrid's partial picture of 7 x 7 cells, three codes each; the goal pays 1 - 0.9 h/H and ends
    the episode. Actions that a task does not need are left out in some instances.
    """
    door = bool(rng.random() < 0.3)
    name = str(rng.choice(DOORS if door else WALKS))
    H = int(rng.integers(60, 121))
    A = 7 if rng.random() < 0.3 else 6 if door else 3
    layout = None if rng.random() < 0.4 else int(rng.integers(1000))
    inner = make_gym(f"MiniGrid-{name}-v0", {"max_steps": H})
    picture: Any = inner.observation_space["image"]  # type: ignore[index]
    return Foreign(Fewer(inner, A), H=H, space=picture, seen=lambda seen: seen["image"], layout=layout)


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


@family("ram_games", "kept", H=100, episodes=runs(75), extra="linearize")
class RamGame(Foreign):
    """The first seconds of Atari games, seen through the 128 bytes of their memory (needs the extra `linearize`).

    An episode has 50 to 100 steps of four frames each, and a lost life ends it. Rewards are the scores of the game. The
    best known return is the mean of the best episodes that searches find; they can go back, and where actions stick
    they know in hindsight which did, so no policy reaches all of it.
    """

    def __init__(self, rng: np.random.Generator) -> None:
        self.id = f"ALE/{rng.choice(GAMES)}-v5"
        self.kwargs = {"obs_type": "ram", "repeat_action_probability": float(rng.choice([0.0, 0.25]))}
        self.unit, H = float(rng.choice([0.01, 0.1, 1.0])), int(rng.integers(50, 101))
        super().__init__(Game(self.id, **self.kwargs), H=H)

    def move(self, action: int) -> tuple[float, bool]:
        score, over = super().move(action)
        return self.unit * score, over
