"""Verdicts: every run is compared with random play, honestly, and hears of it in one line."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import linmdp
from command import linmdp as command
from linmdp.envs.planning import policy_value, uniform_policy
from linmdp.results.run_folder import read_folder
from linmdp.results.store import Store
from linmdp.results.verdict import judge, verdict, verdicts
from linmdp.runner.batch import jobs_for, run_jobs
from linmdp.runner.loop import learn
from linmdp.runner.random_play import EPISODES, STEPS, random_play
from linmdp.types import Array, RunResult

LOCK = "lock:H=4,A=3"
RANGE: dict[str, Any] = {"reward_low": 0, "reward_high": 1}  # so that no play is needed to find it


class Pays(gymnasium.Env[Any, Any]):
    """Action 1 pays 1, action 0 nothing; it counts its resets, and can fail from one of them on."""

    def __init__(self, length: int = 4, fails_from: int = 10**9) -> None:
        self.observation_space, self.action_space = gymnasium.spaces.Discrete(1), gymnasium.spaces.Discrete(2)
        self.length, self.fails_from, self.resets, self.h = length, fails_from, 0, 0

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[int, dict[str, Any]]:
        super().reset(seed=seed)
        self.resets, self.h = self.resets + 1, 0
        if self.resets > self.fails_from:
            raise RuntimeError("worn out")
        return 0, {}

    def step(self, action: int) -> tuple[int, float, bool, bool, dict[str, Any]]:
        self.h += 1
        return 0, float(action), False, self.h == self.length, {}


def result(rewards: Any, random: Any, **more: Any) -> RunResult:
    said: dict[str, Any] = {
        "env": "gym:X-v0",
        "agent": "lsvi-ucb",
        "params": {"beta": "auto"},
        "seed": 0,
        "eval_every": 1,
    }
    said |= {"peak_bytes": 0, "feature_bytes": 0, "cpu_seconds": 0.0, "wall_seconds": 0.0, "updates": 0, "resets": 0}
    said |= {"saturated": 0.0, "tied": 0.0, "drift": None, "regret": None, "episodes": len(rewards), "eval_every": 1}
    return RunResult(**said | {"rewards": np.array(rewards, dtype=float), "random_returns": list(random)} | more)


def test_a_known_model_is_judged_by_exact_values() -> None:
    env: Any = linmdp.make_env(LOCK)
    found = linmdp.run(env, linmdp.make_agent("lsvi-ucb", env), episodes=100)
    assert found.random_return == pytest.approx(policy_value(env.model, uniform_policy(env.model))[0, 0])
    assert found.optimal_return == pytest.approx(env.optimum.V[0, 0])
    assert found.verdict.startswith("learned: 1 an episode, random 0.0")
    assert found.verdict.endswith(", optimal 1")


def test_baselines_are_not_judged() -> None:
    runs = run_jobs(jobs_for(LOCK, ["random", "constant", "optimal"], episodes=5, seeds=1), processes=1)
    assert [run.verdict for run in runs] == ["", "", ""]


def test_runs_are_what_they_were_and_random_play_is_played_once() -> None:
    inner = Pays()
    env = linmdp.GymTask(inner, H=4, **RANGE)

    def run(play: Any) -> Array:
        rewards: Array = play(env, linmdp.LSVIUCB(env.task), episodes=8, seed=3, eval_every=1, name=None).rewards
        return rewards

    alone, resets = run(learn), inner.resets
    np.testing.assert_array_equal(run(linmdp.run), alone)
    assert inner.resets == 2 * resets + EPISODES
    np.testing.assert_array_equal(run(linmdp.run), alone)
    assert inner.resets == 3 * resets + EPISODES


def test_random_play_is_short_and_always_the_same() -> None:
    env = linmdp.GymTask(Pays(3000), H=3000)
    once, again = random_play(env), random_play(env)
    assert once == again
    assert len(once.returns) == -(-STEPS // 3000)
    assert np.mean(once.returns) == pytest.approx(1500, rel=0.05)


def test_rewards_that_are_rescaled_are_judged_as_they_were() -> None:
    once, other = (random_play(linmdp.GymTask(Pays(), H=4, reward=rule)).returns for rule in ("error", "rescale"))
    assert once == other


def test_an_environment_that_fails_in_random_play_leaves_the_run_as_it_is() -> None:
    env = linmdp.GymTask(Pays(fails_from=9), H=4, **RANGE)
    found = linmdp.run(env, linmdp.LSVIUCB(env.task), episodes=9)
    assert (found.episodes, found.random_return, found.verdict) == (9, None, "")


def test_equal_policies_are_seldom_told_apart() -> None:
    rng, wrong = np.random.default_rng(0), 0
    for _ in range(400):
        returns = rng.binomial(1, 0.1, 120).astype(float)
        found = judge([result(np.repeat(0.0, 180).tolist() + returns[:20].tolist(), returns[20:40])])
        assert found is not None
        wrong += found.learned
    assert wrong / 400 < 0.05


@given(st.floats(-1e3, 1e3), st.floats(1e-3, 1e3), st.integers(1, 60), st.integers(1, 20))
@settings(max_examples=60, deadline=None)
def test_judgements_do_not_depend_on_offset_and_scale(offset: float, scale: float, K: int, n: int) -> None:
    rng = np.random.default_rng(K)
    mine, random = rng.random(K) + 0.3, rng.random(n)
    plain, moved = (judge([result(a * mine + b, a * random + b)]) for a, b in ((1.0, 0.0), (scale, offset)))
    assert plain is not None
    assert moved is not None
    assert plain.learned == moved.learned
    assert moved.earned == pytest.approx(scale * plain.earned + offset, abs=1e-6 * (scale + abs(offset)))


def test_one_lucky_episode_is_no_proof_and_many_good_ones_are() -> None:
    lucky = verdict([result([0.0] * 9 + [1.0], [0.0] * 20)])
    assert lucky.startswith("NOT better than random after 10 episodes: try ")
    assert lucky.endswith("(1 an episode, random 0, but too few or too uneven to be sure)")
    assert verdict([result([0.0] * 10, [0.0] * 20)]).endswith("(0 an episode, random 0)")
    assert verdict([result([0.0] * 90 + [1.0] * 10, [0.0] * 20)]) == "learned: 1 an episode, random 0"
    two = [result([0.0] * 90 + [end] * 10, [0.0] * 20, seed=seed) for seed, end in enumerate((1.0, 0.0))]
    assert verdict(two) == "learned: 0.5 an episode, random 0 (1 of 2 seeds are not better than random)"


@pytest.mark.parametrize(
    ("known", "words", "unsaid"),
    [
        ({"params": {"beta": 3}, "saturated": 0.9}, "a smaller beta (it is 3), since Q is at its cap", "tied"),
        ({"tied": 0.9}, "features that tell actions apart, since most are tied", "smaller beta"),
        ({"env": "gym:X-v0,features=rff"}, "another feature map", "smaller beta"),
        ({"chosen": {"features": "onehot"}}, "more episodes (--episodes 100)", "feature map"),
        ({"tied": 0.9, "env": "lock"}, "try more episodes", "tied"),
        ({"agent": "lsvi-ucb:M=9"}, "a smaller H or linmdp tune gym:X-v0 lsvi-ucb", "smaller beta"),
        ({"env": "lock", "params": {}}, "try more episodes (--episodes 100) (0 an episode, random 1)", "tune"),
    ],
)
def test_advice_follows_what_is_known(known: dict[str, Any], words: str, unsaid: str) -> None:
    said = verdict([result([0.0] * 10, [1.0] * 20, **known)])
    assert words in said
    assert unsaid not in said


def test_every_agent_of_a_comparison_has_a_line(tmp_path: Path) -> None:
    agents = ("lsvi-ucb", "lsvi-ucb:beta=theory")
    done = command("compare", LOCK, *agents, "--episodes", "40", "--seeds", "2", "--out", str(tmp_path))
    lines = [line for line in done.out.splitlines() if " an episode, random " in line]
    assert [line.partition(": ")[0] for line in lines] == list(agents)
    assert "lsvi-ucb: learned: 1 an episode" in lines[0]
    assert "NOT better than random after 40 episodes: try a smaller beta (it is theory)" in lines[1]
    shown = command("table", str(tmp_path)).out
    assert all(line in shown for line in lines)
    compared = linmdp.compare(LOCK, agents, episodes=40, seeds=2, jobs=1)
    assert compared.verdicts() == lines
    assert lines[0] in compared._repr_html_()


def test_an_environment_that_is_an_object_is_named_by_its_id() -> None:
    env = linmdp.make_env("gym:MountainCar-v0,H=20")
    words = "linmdp tune gym:MountainCar-v0 lsvi-ucb"
    assert words in linmdp.run(env, linmdp.LSVIUCB(env.task), episodes=3).verdict
    for run in linmdp.compare(env, ["lsvi-ucb"], episodes=3, seeds=2, jobs=1, baselines=False):
        assert words in run.verdict


def test_json_stays_pure_and_the_line_goes_to_standard_error(tmp_path: Path) -> None:
    done = command("run", "gym:FrozenLake-v1,H=10", "lsvi-ucb", "--episodes", "20", "--json", "--out", str(tmp_path))
    record = json.loads(done.out)
    assert record["verdict"] in done.err
    assert 0 <= record["random_return"] <= 1
    with closing(Store(tmp_path)) as store:
        (stored,) = store.results()
    assert (stored.verdict, stored.random_return) == (record["verdict"], record["random_return"])


def test_a_store_without_verdicts_still_loads() -> None:
    found = read_folder(Path(__file__).parent / "data" / "sweep-0.1.0").results
    assert {(run.random_return, run.verdict) for run in found} == {(None, "")}
    assert verdicts(found) == {}


def test_returns_in_a_store_must_be_numbers(tmp_path: Path) -> None:
    with closing(Store(tmp_path)) as store:
        store.add([("a" * 64, result([1.0] * 4, [1.0]))])
    with sqlite3.connect(tmp_path / "runs.sqlite") as db:
        db.execute("UPDATE runs SET record = json_remove(json_set(record, '$.random_returns[0]', 'x'), '$.checksum')")
    with pytest.raises(linmdp.InvalidData, match="random_returns"), closing(Store(tmp_path)) as store:
        list(store.results())
