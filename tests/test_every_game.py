"""Atari games as they come: no parameter, the RAM, cells of it; and linearized, every one of them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import gymnasium
import pytest

import linmdp
from linmdp.experiments.linearization import dataset_of, write_cells
from linmdp.features.cells import Cells
from linmdp.linearize.train import Settings, train

ale_py = pytest.importorskip("ale_py")
gymnasium.register_envs(ale_py)
GAMES = sorted(id for id in gymnasium.registry if id.startswith("ALE/") and id.endswith("-v5"))
TINY = Settings(d=4, steps=10, batch=32, hidden=8, eval_every=5)


def test_a_game_is_seen_through_cells_of_its_ram() -> None:
    env: Any = linmdp.make_env("gym:ALE/Kaboom-v5,H=50,warmup=2000,features=cells")
    usual: Any = linmdp.make_env("gym:ALE/Kaboom-v5,H=50")
    assert usual.chosen["features"] == "cells"
    assert isinstance(usual.task.features, Cells)
    assert usual.observation_space == env.observation_space
    assert usual.observation_space.shape == (129,)  # the bytes, and the step
    picture: Any = linmdp.make_env("gym:ALE/Kaboom-v5,H=50,obs_type=grayscale")
    assert picture.chosen["image"] == "10x10 grey levels"


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::linmdp.LinMDPWarning")  # three episodes teach little
@pytest.mark.parametrize("game", GAMES)
def test_every_game_is_linearized_and_learned(tmp_path: Path, game: str) -> None:
    cells = write_cells(game, None, tmp_path / "cells", transitions=500, H=50, seed=0, say=print)
    env: Any = linmdp.make_env(f"gym:{game},H=50,features=cells,model={tmp_path / 'cells'}")
    result = linmdp.run(env, linmdp.make_agent("lsvi-ucb-fold", env), episodes=3, seed=0)
    assert len(result.rewards) == 3
    assert result.peak_bytes <= 4 << 20
    assert cells.A == env.task.A
    model = train(dataset_of(game, None, TINY, transitions=200), TINY)
    assert model.d == TINY.d
