"""What is given in the wrong form is answered in one line that says what to give."""

from __future__ import annotations

import re
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces

import linmdp
from command import linmdp as command
from linmdp.envs.observations import is_image
from linmdp.runner.env_check import check_behaviour
from toys import Toy


def falls() -> Toy:
    """Rewards fall with every step: -1, -2, ..."""
    return Toy(spaces.Discrete(1), paid=lambda h, action: -h, length=5)


@pytest.mark.parametrize(
    ("give", "fix"),
    [
        (lambda: linmdp.make_env(3), "text such as 'gym:CartPole-v1', a Gymnasium environment, or a model. Got 3"),
        (lambda: linmdp.GymTask(Toy), r"not its class: Toy\(...\)"),  # type: ignore[arg-type]
        (lambda: linmdp.GymTask(None), "a Gymnasium id, or an environment"),  # type: ignore[arg-type]
        (lambda: linmdp.GymTask(gymnasium.make_vec("CartPole-v1", 2)), "not a vector"),  # type: ignore[arg-type]
        (lambda: linmdp.make_env("gym:MinAtar/Breakout-v1"), "--import MODULE, such as minatar"),
    ],
)
def test_what_is_no_environment_is_told_what_to_be(give: Any, fix: str) -> None:
    with pytest.raises(linmdp.LinMDPError, match=fix):
        give()


def test_public_names_are_all_that_is_listed() -> None:
    assert set(dir(linmdp)) == {*linmdp.__all__, "__version__", "__doc__"}


def test_advice_on_rewards_names_the_least_that_was_seen() -> None:
    env = linmdp.GymTask(falls(), H=5, reward_low=0.0, reward_high=0.0)
    (found,) = check_behaviour(env)
    assert "Give reward_low=-5," in found.text


def test_a_range_that_was_guessed_is_not_called_declared() -> None:
    env = linmdp.GymTask(falls(), H=5)
    assert "(guessed from random play: -5 to 0)" in check_behaviour(env)[0].text
    assert "(declared: 0 to 1)" in command("check", "gym:FrozenLake-v1,H=5").out


def test_one_check_has_one_forecast() -> None:
    done = command("check", "gym:CartPole-v1,H=50", "--agent", "auto", "--episodes", "50")
    sizes = re.findall(r"at most (\S+ \S+?)(?: then)?$", done.out, re.MULTILINE)
    assert len(sizes) == 2
    assert len(set(sizes)) == 1


@pytest.mark.parametrize("first", [np.array([np.nan, 0.0]), np.array([[np.nan]])])
def test_a_number_that_is_none_is_called_so_in_the_first_observation(first: Any) -> None:
    toy = Toy(spaces.Box(-1, 1, np.shape(first)), shown=lambda h: first, length=5)
    with pytest.raises(linmdp.InvalidData, match=r"first .*must be finite.*nan"):
        linmdp.run(env := linmdp.GymTask(toy, H=5), linmdp.make_agent("lsvi-ucb", env), episodes=2)


def test_a_table_of_numbers_is_no_picture() -> None:
    assert not is_image(spaces.Box(-np.inf, np.inf, (20, 20)))
    assert is_image(spaces.Box(0, 255, (20, 20), np.uint8))
    assert is_image(spaces.Box(0, 1, (84, 84)))


def test_a_discount_is_taken_where_steps_are_shared_by_themselves() -> None:
    env = linmdp.make_env("gym:CartPole-v1,H=50")
    assert linmdp.make_agent("lsvi-ucb:discount=0.99", env).chosen["stationary"] is True  # type: ignore[attr-defined]
    with pytest.raises(linmdp.InvalidParameter, match="1 unless stationary=true"):
        linmdp.make_agent("lsvi-ucb:discount=0.99,stationary=false", env)
