"""Gymnasium's LunarLander with another gravity and another wind (needs the extra `box2d`).

Drawn: gravity, wind and turbulence, and H, at which the episode is cut. The best known return is that of the heuristic
that Gymnasium ships, braking as it does, or more, or less.
"""

from __future__ import annotations

import importlib
from typing import Any

import numpy as np

from linmdp.envs.games import make_gym
from linmdp.envs.general.base import Family, Policy, mean_return, runs
from linmdp.envs.general.foreign import Foreign


def make(rng: np.random.Generator) -> Foreign:
    """One moon."""
    windy = bool(rng.random() < 0.5)
    weather = {"enable_wind": windy, "wind_power": rng.uniform(0, 12), "turbulence_power": rng.uniform(0, 1.2)}
    inner = make_gym("LunarLander-v3", {"gravity": -rng.uniform(6.0, 11.0), **weather})
    return Foreign(inner, H=int(rng.integers(250, 401)))


def guided(brake: float) -> Policy:
    """The heuristic, which touches down with the engine off; `brake` scales how much of a fall it answers."""
    heuristic: Any = importlib.import_module("gymnasium.envs.box2d.lunar_lander").heuristic

    def policy(env: Any) -> int:
        state = np.array(env.show(), dtype=np.float64)
        state[3] *= brake
        return int(heuristic(env.inner, state))

    return policy


def best(env: Foreign) -> float:
    """The heuristic, braking more or less."""
    return max(mean_return(env, guided(brake), 20) for brake in (0.8, 1.0, 1.3))


FAMILY = Family(name="box2d_landers", half="kept", make=make, H=400, episodes=runs(200), best=best, extra="box2d")
