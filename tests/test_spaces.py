"""Spaces as they come: whole numbers too many to count, images, text, several actions at once, episodes without end."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces

import linmdp
from linmdp.envs.actions import Actions
from linmdp.envs.observations import Grey, is_image
from linmdp.features import HashedFeatures, RandomFourier, UnitFeatures
from linmdp.features.unit import code_of
from toys import Toy


class Chain(gymnasium.Env[Any, Any]):
    """Steps to the left and to the right, along ten places; `shown` makes an observation of the place."""

    def __init__(self, space: spaces.Space[Any], shown: Any, actions: spaces.Space[Any] | None = None) -> None:
        self.observation_space, self.shown, self.at = space, shown, 0
        self.action_space = actions or spaces.Discrete(2)

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        super().reset(seed=seed)
        self.at = 0
        return self.shown(self.at), {}

    def step(self, action: int) -> Any:
        assert action in self.action_space
        self.at = min(max(self.at + 2 * int(np.max(action)) - 1, 0), 9)
        return self.shown(self.at), float(self.at == 9), self.at == 9, False, {}


def test_whole_numbers_that_cannot_be_counted_are_hashed_if_they_come_again() -> None:
    for space in (spaces.Box(0, 255, (5, 8), np.uint8), spaces.MultiDiscrete([256] * 40)):
        env: Any = linmdp.GymTask(Chain(space, lambda at, s=space: np.full(s.shape, at, s.dtype)), H=30)
        assert isinstance(env.task.features, HashedFeatures)
        assert env.chosen == {"features": "hashed", "d": 2 << 40, "reward_low": 0.0, "reward_high": 1.0}
        state, _ = env.reset(seed=0)
        codes = {state, *(env.step(1)[0] for _ in range(9))}
        assert len(codes) == 10
        assert all(code in env.observation_space for code in codes)
        assert state == env.reset()[0] == 122383328868  # the same in every process
        np.testing.assert_array_equal(env.task.features.index(state), [2 * state, 2 * state + 1])
        with pytest.raises(linmdp.InvalidParameter, match="Unit vectors can be written out up to d = 16384"):
            env.task.features.phi(state)
        assert linmdp.run(env, linmdp.RandomAgent(env.task), episodes=3).rewards.max() <= 1


def test_unit_vectors_of_one_s_own_number_the_states() -> None:
    taxi = linmdp.GymTask("Taxi-v3", features=UnitFeatures(500, 6))
    assert (taxi.task.S, taxi.task.d) == (500, 3000)
    assert taxi.reset(seed=0)[0] in spaces.Discrete(500)
    hashed = linmdp.GymTask("Blackjack-v1", features=HashedFeatures(2))
    assert hashed.task.S is None
    assert hashed.reset(seed=0)[0] in hashed.observation_space
    with pytest.raises(linmdp.InvalidParameter, match="feature table of 'Taxi-v3' must be for the states of"):
        linmdp.GymTask("Taxi-v3", features=UnitFeatures(400, 6))


def test_parts_in_another_order_have_another_code() -> None:
    assert code_of(np.array([1, 2])) == code_of(np.array([1, 2], dtype=np.uint8)) != code_of(np.array([2, 1]))


def test_states_that_are_hashed_have_no_raw_observations() -> None:
    from linmdp.envs.raw import RawEpisodes

    space = spaces.Box(0, 255, (40,), np.uint8)
    env = linmdp.GymTask(Chain(space, lambda at: np.full(40, at, np.uint8)), H=30)
    assert RawEpisodes(env).observation_space.shape == (40,)  # as long as nobody has asked for features
    assert isinstance(env.task.features, HashedFeatures)
    with pytest.raises(linmdp.InvalidParameter, match="not kept where states are hashed: give features=auto"):
        RawEpisodes(env)


@pytest.mark.parametrize("shape", [(84, 84), (84, 84, 3), (3, 84, 84), (210, 160, 3), (16, 25, 1)])
def test_images_are_averages_over_equal_areas(shape: tuple[int, ...]) -> None:
    space = spaces.Box(0, 255, shape, np.uint8)
    assert is_image(space)
    grey, rng = Grey(space), np.random.default_rng(0)
    image = rng.integers(0, 256, shape, dtype=np.uint8)
    assert grey(image) in grey.space
    assert grey(image).shape == (100,)
    np.testing.assert_allclose(grey(image).mean(), image.mean(), rtol=1e-5)
    np.testing.assert_allclose(grey(np.full(shape, 7, np.uint8)), 7.0, rtol=1e-6)


def test_an_area_is_the_mean_of_its_pixels_and_frames_of_a_stack_stay_apart() -> None:
    stack = np.random.default_rng(1).integers(0, 256, (4, 20, 40), dtype=np.uint8)
    levels = Grey(spaces.Box(0, 255, stack.shape, np.uint8))(stack).reshape(4, 10, 10)
    np.testing.assert_allclose(levels, stack.reshape(4, 10, 2, 10, 4).mean(axis=(2, 4)), rtol=1e-6)


@pytest.mark.parametrize("nested", ["alone", "dict", "tuple"])
def test_images_are_seen_as_grey_levels(nested: str) -> None:
    image: Any = spaces.Box(0, 255, (84, 84, 3), np.uint8)
    space = {
        "alone": image,
        "dict": spaces.Dict({"image": image, "speed": spaces.Box(-1, 1, (2,))}),
        "tuple": spaces.Tuple((spaces.Box(-1, 1, (2,)), image)),
    }[nested]

    def shown(at: int) -> Any:
        picture, speed = np.full((84, 84, 3), 10 * at, np.uint8), np.zeros(2, np.float32)
        return {"alone": picture, "dict": {"image": picture, "speed": speed}, "tuple": (speed, picture)}[nested]

    env: Any = linmdp.GymTask(Chain(space, shown), H=20)
    assert isinstance(env.task.features, RandomFourier)
    assert env.task.features.scaling.k == (100 if nested == "alone" else 102)
    assert env.chosen["image"] == "10x10 grey levels"
    assert env.reset()[0] in env.observation_space
    assert sorted(env.step(1)[0])[-1] == pytest.approx(10)
    result = linmdp.run(env, linmdp.LSVIUCB(env.task, storage="centres", M=4, beta=0.1), episodes=2)
    assert np.isfinite(result.rewards).all()


def test_text_beside_numbers_is_left_out_and_said_once() -> None:
    space = spaces.Dict({"at": spaces.Discrete(10), "mission": spaces.Text(9)})
    env = linmdp.GymTask(Chain(space, lambda at: {"at": at, "mission": "go right"}), H=20)
    assert (env.task.S, env.task.d) == (10, 20)
    words = "Observations of 'Chain' have text, which is left out: mission."
    with pytest.warns(linmdp.LinMDPWarning, match="which is left out: mission"):
        result = linmdp.run(env, linmdp.RandomAgent(env.task), episodes=3)
    assert result.warnings == [words]
    alone = Chain(spaces.Text(9), lambda at: "go right")
    with pytest.raises(linmdp.InvalidParameter, match="must be Box, Discrete, or Dict or Tuple of those"):
        linmdp.GymTask(alone, H=20)


@pytest.mark.parametrize(
    ("space", "A"),
    [
        (spaces.Discrete(3, start=-1), 3),
        (spaces.MultiDiscrete([2, 3, 4]), 24),
        (spaces.MultiDiscrete(np.array([[2, 2], [3, 1]]), start=np.array([[1, 0], [5, 0]])), 12),
        (spaces.MultiBinary(10), 1024),
        (spaces.MultiBinary((2, 2)), 16),
    ],
)
def test_every_combination_of_choices_is_an_action(space: spaces.Space[Any], A: int) -> None:
    actions = Actions("it", space)
    assert actions.A == A
    made = [actions(a) for a in range(A)]
    assert all(action in space for action in made)
    assert len({np.asarray(action).tobytes() for action in made}) == A


def test_several_choices_at_once_are_learned_as_one_action() -> None:
    places = spaces.Discrete(10)
    env = linmdp.GymTask(Chain(places, lambda at: at, spaces.MultiBinary(2)), H=20)
    assert env.action_space == spaces.Discrete(4)
    result = linmdp.run(env, linmdp.LSVIUCB(env.task), episodes=40)
    assert result.rewards[-10:].min() == 1.0
    for many in (spaces.MultiBinary(11), spaces.MultiDiscrete([32, 33])):
        with pytest.raises(linmdp.InvalidParameter, match=r"'Chain' must have at most 1024 combinations\. Got"):
            linmdp.GymTask(Chain(places, lambda at: at, many), H=20)


def test_many_actions_have_fewer_features_each() -> None:
    space = spaces.Box(0, 9, (1,))
    task = linmdp.GymTask(Chain(space, lambda at: np.array([at], np.float32), spaces.MultiBinary(7)), H=20).task
    assert (task.A, task.d) == (128, 128 * 16)


def ends(steps: int, cut: bool) -> Toy:
    return Toy(spaces.Discrete(2), shown=lambda h: 0, paid=lambda h, action: -1, length=steps, cut=cut)


@pytest.mark.parametrize(("steps", "cut", "H"), [(7, False, 14), (7, True, 7), (150, False, 200), (10**9, False, 200)])
def test_episodes_without_a_limit_get_one_from_random_play(steps: int, cut: bool, H: int) -> None:
    env = linmdp.GymTask(ends(steps, cut))
    assert env.task.H == env.chosen["H"] == H
    assert env.task.reward_range == (-1.0, 0.0)
    assert "H" not in linmdp.GymTask(ends(steps, cut), H=3).chosen


def test_a_range_that_the_environment_reports_is_taken_with_0_in_it() -> None:
    env = ends(7, cut=False)
    env.reward_range = (-5.0, -1.0)  # type: ignore[attr-defined]
    task = linmdp.GymTask(env)
    assert task.task.reward_range == (-5.0, 0.0)
    assert "reward_low" not in task.chosen
    env.reward_range = (-np.inf, np.inf)  # type: ignore[attr-defined]
    assert linmdp.GymTask(env).task.reward_range == (-1.0, 0.0)


@pytest.mark.parametrize(
    ("id", "chosen", "rewards"),
    [
        ("CliffWalking-v1", {"H": 200, "features": "onehot", "d": 192}, (-100, 0)),
        ("Blackjack-v1", {"H": 8, "features": "onehot", "d": 1408}, (-1, 1)),
    ],
)
def test_what_has_no_limit_runs_without_a_parameter(id: str, chosen: dict[str, Any], rewards: Any) -> None:
    env = linmdp.make_env(f"gym:{id}")
    low, high = rewards
    assert env.chosen == chosen | {"reward_low": low, "reward_high": high}  # type: ignore[union-attr]
    assert env.task.reward_range == rewards
    assert linmdp.run(env, linmdp.RandomAgent(env.task), episodes=5).warnings == []


def test_minigrid_runs_without_a_parameter() -> None:
    pytest.importorskip("minigrid")
    env: Any = linmdp.make_env("gym:MiniGrid-Empty-5x5-v0")
    assert env.chosen == {"H": 100, "features": "hashed", "d": 7 << 40}
    assert env.task.reward_range == (0, 1)
    with pytest.warns(linmdp.LinMDPWarning, match="left out: mission"):
        result = linmdp.run(env, linmdp.RandomAgent(env.task), episodes=10)
    assert 0 <= result.rewards.min() < result.rewards.max() <= 1
    state, _ = env.reset(seed=0)
    turned = [env.step(0)[0] for _ in range(4)]
    assert len(set(turned)) == 4
    assert turned[-1] == state  # four turns to the left


def test_lunar_lander_runs_without_a_parameter() -> None:
    pytest.importorskip("Box2D")
    env: Any = linmdp.make_env("gym:LunarLander-v3")
    assert env.chosen == {"features": "auto", "d": 400, "reward_low": -100.0, "reward_high": 100.0}
    with pytest.warns(linmdp.LinMDPWarning, match="outside -100 to 100 were clipped"):  # a landing can pay more
        result = linmdp.run(env, linmdp.RandomAgent(env.task), episodes=20)
    assert -400 < result.rewards.mean() < -50


def test_lunar_lander_is_made_where_warnings_are_errors() -> None:
    pytest.importorskip("Box2D")
    code = "from linmdp.envs.games import make_gym; make_gym('LunarLander-v3', {})"
    subprocess.run([sys.executable, "-W", "error::DeprecationWarning", "-c", code], check=True)


@pytest.mark.parametrize(("module", "id"), [("minigrid", "MiniGrid-Empty-5x5-v0"), ("Box2D", "LunarLander-v3")])
def test_a_missing_package_is_named_with_the_extra_that_has_it(
    module: str, id: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in [name for name in sys.modules if name == module or name.startswith("gymnasium.envs.box2d")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(linmdp.InvalidParameter, match=rf"pip install 'linmdp\[{module.lower()}\]'") as caught:
        linmdp.make_env(f"gym:{id}")
    assert "\n" not in str(caught.value)
