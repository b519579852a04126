"""Logged transitions: the forms that they come in, learning from them, and the value of policies on them."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import gymnasium
import numpy as np
import pytest

import linmdp
from linmdp.envs.planning import policy_value

LAKE = "FrozenLake-v1"


def recorded(env: Any, episodes: int, choose: Any, seed: int = 0) -> dict[str, np.ndarray]:
    """What a policy `choose(h, observation, rng)` does in an environment, as flat arrays."""
    rng = np.random.default_rng(seed)
    rows = list[tuple[Any, ...]]()
    for k in range(episodes):
        seen, _ = env.reset(seed=1000 * seed + k)
        over, h = False, 0
        while not over:
            action = choose(h, seen, rng)
            following, reward, terminated, truncated, _ = env.step(action)
            rows.append((seen, action, reward, terminated, truncated, following))
            seen, over, h = following, terminated or truncated, h + 1
    names = ("observations", "actions", "rewards", "terminations", "truncations", "next_observations")
    return {name: np.array(column) for name, column in zip(names, zip(*rows, strict=True), strict=True)}


@pytest.fixture(scope="module")
def lake() -> dict[str, np.ndarray]:
    return recorded(gymnasium.make(LAKE), 40, lambda h, s, rng: int(rng.integers(4)))


def learned(data: Any, agent: str = "q-learning", env: Any = LAKE) -> dict[str, np.ndarray]:
    return linmdp.Learner(env, agent).learn_from(data).agent.state_dict()


def episodes_of(data: dict[str, np.ndarray]) -> list[Any]:
    """The same as Minari has it: one more observation than actions in each episode."""
    ends = np.flatnonzero(data["terminations"] | data["truncations"]) + 1
    found = list[Any]()
    for first, last in zip([0, *ends[:-1].tolist()], ends.tolist(), strict=True):
        part = {name: column[first:last] for name, column in data.items()}
        part["observations"] = np.append(part["observations"], part["next_observations"][-1:], axis=0)
        found.append(SimpleNamespace(**part))
    return found


class Frame:
    """What is used of a pandas frame."""

    def __init__(self, data: dict[str, np.ndarray]) -> None:
        self.data, self.columns = data, list(data)

    def __getitem__(self, name: str) -> Any:
        return SimpleNamespace(to_list=lambda: list(self.data[name]))

    def to_dict(self, orient: str) -> Any:
        raise NotImplementedError


def test_all_forms_of_a_dataset_teach_the_same(lake: dict[str, np.ndarray]) -> None:
    minari = SimpleNamespace(iterate_episodes=lambda: iter(episodes_of(lake)))
    lists = {name: column.tolist() for name, column in lake.items()}
    tuples = {name: tuple(column) for name, column in lists.items()}
    expected = learned(lake)
    for form in (minari, Frame(lake), lists, tuples):
        np.testing.assert_equal(learned(form), expected)


@pytest.mark.parametrize("agent", ["auto", "lsvi-ucb", "q-learning"])
def test_a_log_is_observed_as_if_it_had_been_played(lake: dict[str, np.ndarray], agent: str) -> None:
    seen = linmdp.Learner(LAKE, agent).learn_from(lake)
    assert (seen.episodes, seen.returns) == (0, [])
    state = seen.agent.state_dict()
    plain = linmdp.Learner(LAKE, agent).agent.state_dict()
    assert any(not np.array_equal(state[name], plain[name]) for name in state if name != "rng")


def test_with_a_log_it_knows_the_lake_before_its_first_step(tmp_path: Path) -> None:
    env = gymnasium.make(LAKE, is_slippery=False)
    data = recorded(env, 300, lambda h, s, rng: int(rng.integers(4)))
    learner = linmdp.Learner(env, "lsvi-ucb").learn_from(data)
    assert learner.evaluate(3).mean == 1
    learner.save(tmp_path / "x.safetensors")
    again = linmdp.Learner.load(tmp_path / "x.safetensors", env)
    assert again.learn(3).returns == learner.learn(3).returns


def test_continuous_actions_of_a_log_count_as_the_nearest_ones() -> None:
    told = list[int]()

    class Told(linmdp.RandomAgent):
        name = "told"

        def observe(self, h: int, state: Any, action: int, *more: Any) -> None:
            told.append(action)

    data = recorded(gymnasium.make("Pendulum-v1", max_episode_steps=9), 2, lambda h, s, rng: rng.uniform(-2, 2, 1))
    linmdp.Learner("Pendulum-v1", Told).learn_from(data)
    assert told == [int(np.abs(np.linspace(-2, 2, 5) - a).argmin()) for a in data["actions"].ravel()]


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"rewards": None}, "must have 'rewards'"),
        ({"next_observations": None}, "'next_observations', or one observation more than rewards"),
        ({"actions": np.zeros(3)}, "'actions' of a dataset must have .* entries, as its rewards. Got 3"),
        ({"actions": np.full(9, 7)}, "action of transition 0 of the dataset must be one of 4"),
        ({"rewards": np.full(9, np.nan)}, "reward of transition 0 of the dataset must be one finite number"),
        ({"observations": np.full(9, 99)}, "transition 0 of the dataset"),
        ({"terminations": ["no"] * 9}, "terminations .*must be True or False"),
    ],
)
def test_what_does_not_fit_is_said_in_one_line(lake: dict[str, np.ndarray], change: Any, words: str) -> None:
    data = {name: column[:9] for name, column in lake.items()} | change
    data = {name: column for name, column in data.items() if column is not None}
    with pytest.raises(linmdp.InvalidData, match=words) as error:
        learned(data, "lsvi-ucb")
    assert "\n" not in str(error.value)


def test_what_is_no_dataset_is_refused() -> None:
    with pytest.raises(linmdp.InvalidParameter, match="a Minari dataset, or the folder of one"):
        learned(3)
    with pytest.raises(linmdp.InvalidData, match="at least one transition"):
        learned({"observations": [], "actions": [], "rewards": [], "next_observations": []})


def test_the_true_value_lies_in_the_offline_interval_in_at_least_93_of_100_logs() -> None:
    env: Any = linmdp.make_env("synthetic:S=10,A=3,d=4,H=6,seed=1")
    policy = np.random.default_rng(5).integers(3, size=10)
    value = policy_value(env.model, lambda h: policy)[0][0]
    learner, inside, widths = linmdp.Learner(env, "random"), 0, list[float]()
    for seed in range(100):
        data = recorded(env, 40, lambda h, s, rng: int(rng.integers(3) if rng.random() < 0.5 else policy[s]), seed)
        found = learner.evaluate_offline(lambda state: policy[state], data)
        inside += found.interval[0] <= value <= found.interval[1]
        widths.append(found.interval[1] - found.interval[0])
    assert inside >= 93
    assert np.mean(widths) < 0.25


def test_with_every_pair_seen_often_and_no_chance_the_offline_value_is_exact() -> None:
    env = gymnasium.make(LAKE, is_slippery=False)
    data = recorded(env, 400, lambda h, s, rng: int(rng.integers(4)))
    learner, path = linmdp.Learner(env, "lsvi-ucb").learn_from(data), {0: 1, 4: 1, 8: 2, 9: 1, 13: 2, 14: 2}
    found = learner.evaluate_offline(lambda obs: path.get(int(obs), 0), data)
    assert found.mean == pytest.approx(1, abs=1e-2)
    own = learner.evaluate_offline(learner, data)
    assert own.interval[0] <= learner.evaluate(5).mean <= own.interval[1]
    stays = learner.evaluate_offline(lambda obs: 0, data)
    assert stays.mean == pytest.approx(0, abs=1e-2)
    assert repr(found).endswith("an episode, from 400 logged episodes")


def test_what_the_log_never_shows_widens_the_interval() -> None:
    env = gymnasium.make(LAKE, is_slippery=False)
    left = recorded(env, 30, lambda h, s, rng: int(rng.integers(2)))  # never right nor up
    learner = linmdp.Learner(env, "lsvi-ucb")
    never, always = (learner.evaluate_offline(lambda obs, a=a: a, left) for a in (2, 0))
    assert never.unseen > 100 * always.unseen


def test_an_offline_value_needs_a_policy_and_two_episodes(lake: dict[str, np.ndarray]) -> None:
    learner = linmdp.Learner(LAKE, "q-learning")
    with pytest.raises(linmdp.InvalidParameter, match="'policy' parameter of evaluate_offline"):
        learner.evaluate_offline(3, lake)
    one = {name: column[:1] for name, column in lake.items()}
    with pytest.raises(linmdp.InvalidData, match="at least 2 logged episodes"):
        learner.evaluate_offline(learner, one)
