"""The environments of bsuite, where its package is installed."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env

import linmdp

pytest.importorskip("bsuite", reason="the extra 'bsuite' is not installed", exc_type=ImportError)

from linmdp.envs.bsuite import BSuite

H = {"bandit_noise": 1, "cartpole": 1001, "catch": 9, "deep_sea_stochastic": 10, "memory_len": 2, "mountain_car": 1000}


@pytest.mark.parametrize("name", H)
def test_a_setting_is_a_sound_environment_whose_seed_decides_everything(name: str) -> None:
    env = BSuite(f"{name}/0")
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=".*(infinity|render_modes).*")
        check_env(env, skip_render_check=True)
    assert env.spec is not None
    assert env.spec.max_episode_steps == H[name]


def test_it_is_learned_like_any_other() -> None:
    env = linmdp.make_env("bsuite:catch/0")
    assert (env.task.H, env.task.A) == (9, 3)
    result = linmdp.run(env, linmdp.make_agent("random", env), episodes=50, seed=0)
    assert set(np.unique(result.rewards)) == {-1.0, 1.0}


@pytest.mark.parametrize(
    ("spec", "words"), [("deep_see/0", "Did you mean 'deep_sea/0'"), ("mnist/0", "must need no files of the network")]
)
def test_what_is_not_there_is_said_in_a_line(spec: str, words: str) -> None:
    make: Any = linmdp.make_env
    with pytest.raises(linmdp.LinMDPError, match=words):
        make(f"bsuite:{spec}")
