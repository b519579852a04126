"""Atari games as they come: no parameter, the RAM; and linearized, every one of them."""

from __future__ import annotations

from typing import Any

import gymnasium
import pytest

import linmdp
from linmdp.experiments.linearization import dataset_of
from linmdp.linearize.train import Settings, train

ale_py = pytest.importorskip("ale_py")
gymnasium.register_envs(ale_py)
GAMES = sorted(id for id in gymnasium.registry if id.startswith("ALE/") and id.endswith("-v5"))
TINY = Settings(d=4, steps=10, batch=32, hidden=8, eval_every=5)


def test_of_a_game_the_ram_is_seen() -> None:
    env: Any = linmdp.make_env("gym:ALE/Kaboom-v5,H=50")
    assert env.task.features.A == env.task.A
    assert (env.chosen["features"], env.observation_space.shape) == ("auto", (128,))
    picture: Any = linmdp.make_env("gym:ALE/Kaboom-v5,H=50,obs_type=grayscale")
    assert picture.task.features.A == picture.task.A
    assert picture.chosen["image"] == "10x10 grey levels"


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::linmdp.LinMDPWarning")  # three episodes teach little
@pytest.mark.parametrize("game", GAMES)
def test_every_game_is_linearized_and_learned(game: str) -> None:
    env: Any = linmdp.make_env(f"gym:{game},H=50")
    result = linmdp.run(env, linmdp.make_agent("auto", env), episodes=3, seed=0)
    assert len(result.rewards) == 3
    model = train(dataset_of(game, None, TINY.seed, transitions=200), TINY)
    assert model.d == TINY.d
