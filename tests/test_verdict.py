"""Verdicts: every run is compared with random play, honestly, and hears of it in one line."""

from __future__ import annotations

import json
import re
import shlex
import sqlite3
import subprocess
import sys
import warnings
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
from linmdp.results.run_folder import opened_folder
from linmdp.results.store import Store
from linmdp.results.verdict import NO_BETTER, TOO_FEW, judge, verdict, verdicts
from linmdp.runner.batch import jobs_for, run_jobs
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

    def run(verdict: bool = True) -> Array:
        return linmdp.run(env, linmdp.LSVIUCB(env.task), episodes=8, seed=3, verdict=verdict).rewards

    alone, resets = run(verdict=False), inner.resets
    np.testing.assert_array_equal(run(), alone)
    assert inner.resets == 2 * resets + EPISODES
    np.testing.assert_array_equal(run(), alone)
    assert inner.resets == 3 * resets + EPISODES


def test_random_play_is_short_and_always_the_same() -> None:
    env = linmdp.GymTask(Pays(3000), H=3000)
    once, again = random_play(env), random_play(env)
    assert once == again
    assert len(once.returns) == -(-STEPS // 3000)
    assert np.mean(once.returns) == pytest.approx(1500, rel=0.05)


def test_rewards_that_are_clipped_are_judged_as_they_were() -> None:
    clipped = linmdp.GymTask(Pays(), H=4, reward="clip", reward_low=0.0, reward_high=0.1)
    assert random_play(clipped).returns == random_play(linmdp.GymTask(Pays(), H=4)).returns


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
        wrong += found.answer != TOO_FEW
    assert wrong / 400 < 0.05


@given(st.floats(-1e3, 1e3), st.floats(1e-3, 1e3), st.integers(1, 60), st.integers(1, 20))
@settings(max_examples=60, deadline=None)
def test_judgements_do_not_depend_on_offset_and_scale(offset: float, scale: float, K: int, n: int) -> None:
    rng = np.random.default_rng(K)
    mine, random = rng.random(K) + 0.3, rng.random(n)
    plain, moved = (judge([result(a * mine + b, a * random + b)]) for a, b in ((1.0, 0.0), (scale, offset)))
    assert plain is not None
    assert moved is not None
    assert plain.answer == moved.answer
    for one, other in zip(plain.earned, moved.earned, strict=True):
        assert other == pytest.approx(scale * one + offset, abs=1e-5 * (scale + abs(offset)))


def test_one_lucky_episode_is_no_proof_and_many_good_ones_are() -> None:
    lucky = verdict([result([0.0] * 9 + [1.0], [0.0] * 20)])
    assert lucky.startswith("too few episodes to tell: 0.1 [0, ")
    assert lucky.endswith("] an episode, random 0, after 10 episodes")
    assert verdict([result([0.0] * 10, [0.0] * 20)]).startswith("too few episodes to tell: 0 an episode, random 0")
    assert verdict([result([0.0] * 30, [0.0] * 20)]).startswith("not better than random: 0 an episode, random 0")
    assert verdict([result([0.0] * 80 + [1.0] * 20, [0.0] * 20)]) == "learned: 1 an episode, random 0"
    two = [result([0.0] * 80 + [end] * 20, [0.0] * 20, seed=seed) for seed, end in enumerate((1.0, 0.0))]
    assert re.fullmatch(r"learned: 0.5 \[0.\d+, 0.\d+\] an episode, random 0 \(1 of 2 seeds have not\)", verdict(two))


def test_a_few_equal_returns_are_no_proof() -> None:
    """Two successes have no spread; beside random play that succeeds every other time they say nothing."""
    assert verdict([result([1.0] * 2, [0.0, 1.0] * 10)]).startswith("too few episodes to tell")
    assert verdict([result([1.0] * 20, [0.0, 1.0] * 10)]).startswith("learned")


@pytest.mark.parametrize("episodes", [2, 5, 20, 30, 500])
def test_perfect_play_is_never_worse_than_random(episodes: int) -> None:
    random = np.random.default_rng(episodes).integers(9, 60, 20).tolist()
    assert verdict([result([500.0] * episodes, random)]).startswith("learned: 500 an episode, random ")
    bound = {"most_return": 5.0, "rerun": "gym:X-v0 lsvi-ucb"}  # where every policy earns all that there is
    said = verdict([result([5.0] * episodes, [5.0] * 20, **bound)])
    assert said.startswith("too few episodes to tell: 5 an episode")
    assert "try" not in said
    known = result([1.0] * episodes, [1.0], optimal_return=1.0, regret=np.zeros(episodes))
    assert verdict([known]).startswith("too few episodes to tell: 1 an episode, random 1, optimal 1")


@pytest.mark.parametrize("seed", range(10))
def test_perfect_play_of_a_noisy_game_is_never_worse_than_random(seed: int) -> None:
    rng = np.random.default_rng(seed)
    for episodes in (5, 50, 500):
        mine, random = rng.choice([-1.0, 1.0], episodes, p=[0.52, 0.48]), rng.choice([-1.0, 1.0], 20, p=[0.7, 0.3])
        assert not verdict([result(mine, random)]).startswith("not better")


@pytest.mark.parametrize(
    ("gap", "constant", "answer"),
    [
        (0.0, None, "learned"),
        (4.0, 0.0, "learned"),
        (4.0, 7.0, "too few episodes to tell"),  # doing nothing else than the best action earns more
        (6.0, None, "too few episodes to tell"),
        (9.6, None, "not better than random"),
        (12.0, None, "not better than random"),
    ],
)
def test_what_is_learned_is_most_of_the_way_and_no_less_than_one_action(
    gap: float, constant: float | None, answer: str
) -> None:
    """From 0 at random to 10 at best, exactly known."""
    known = {"optimal_return": 10.0, "constant_return": constant, "regret": gap * np.arange(1.0, 101.0)}
    assert verdict([result([0.0] * 100, [0.0], **known)]).startswith(f"{answer}: {10 - gap:.3g} an episode, random 0")


def test_the_best_constant_action_is_known_where_the_model_is_and_where_it_was_played() -> None:
    env: Any = linmdp.make_env("riverswim:H=12")
    found = linmdp.run(env, linmdp.make_agent("auto", env), episodes=5)
    ones = np.ones(env.model.S, dtype=int)
    values = policy_value(env.model, lambda h: 0 * ones)[0, 0], policy_value(env.model, lambda h: ones)[0, 0]
    assert found.constant_return == pytest.approx(max(values))
    mine, alone = (result([end] * 50, [0.0] * 20, agent=agent) for end, agent in ((1.0, "lsvi-ucb"), (2.0, "constant")))
    assert verdicts([mine])["lsvi-ucb"].startswith("learned")
    assert verdicts([mine, alone])["lsvi-ucb"].startswith("too few episodes to tell")


def test_a_comparison_with_auto_does_not_suggest_itself() -> None:
    mine, usual = (
        result([0.0] * 50, [0.0, 1.0] * 10, agent=agent, rerun="lock x", params={}) for agent in ("x", "auto")
    )
    assert "; try: linmdp compare lock x auto" in verdicts([mine])["x"]
    assert "try:" not in verdicts([mine, usual])["x"]
    assert "; try: linmdp run lock x --episodes 500" in verdicts([mine, usual])["auto"]


def test_no_warning_says_that_nothing_was_learned_beside_a_verdict_that_something_was() -> None:
    env = linmdp.make_env("gym:CliffWalking-v1,H=20")
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        linmdp.run(env, linmdp.make_agent("lsvi-ucb:beta=100", env), episodes=10)
    assert heard
    assert not [one for one in heard if re.search("learned|nothing", str(one.message))]


@pytest.mark.parametrize(
    ("known", "words"),
    [
        ({"saturated": 0.9}, ", 90% of Q at its cap; try: linmdp tune gym:X-v0,H=9 lsvi-ucb --episodes 50"),
        ({"tied": 0.9}, ", 90% of actions tied; try: linmdp tune gym:X-v0,H=9 lsvi-ucb --episodes 50"),
        ({"rerun": "lock lsvi-ucb:beta=9"}, "; try: linmdp compare lock lsvi-ucb:beta=9 auto --episodes 50"),
        ({"params": {}}, "after 50 episodes; try: linmdp compare gym:X-v0,H=9 lsvi-ucb auto --episodes 50"),
        ({"params": {}, "agent": "auto"}, "; try: linmdp run gym:X-v0,H=9 lsvi-ucb --episodes 500"),
        ({"rerun": ""}, "random 1, after 50 episodes"),
    ],
)
def test_advice_follows_what_is_known(known: dict[str, Any], words: str) -> None:
    said = verdict([result([0.0] * 50, [1.0] * 20, **{"rerun": "gym:X-v0,H=9 lsvi-ucb"} | known)])
    assert said.endswith(words)
    assert judge([result([0.0] * 50, [1.0] * 20, **known)]).answer == NO_BETTER  # type: ignore[union-attr]


OWN = """
import gymnasium, linmdp

class Idle(gymnasium.Env):
    observation_space, action_space = gymnasium.spaces.Discrete(2), gymnasium.spaces.Discrete(2)
    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed); return 0, {}
    def step(self, action):
        return 0, 0.0, False, False, {}

@linmdp.register_env("idle")
def idle(size: float = 1.0):
    return Idle()

@linmdp.register_agent
class Still(linmdp.ConstantAgent):
    name = "still"
    def __init__(self, task, *, beta: float = 0.5):
        super().__init__(task, action=0); self.beta = beta
"""


@pytest.mark.parametrize("agent", ["still:beta=0.25", "q-learning", "lsvi-ucb"])
def test_advice_runs_as_it_is_printed(agent: str, tmp_path: Path) -> None:
    """In a new process, in the same folder: names, modules and files are those of the command that printed it."""
    (tmp_path / "own_things.py").write_text(OWN)
    line = [sys.executable, "-c", "from linmdp.cli import main; main()"]

    def run(*words: str) -> str:
        done = subprocess.run([*line, *words], cwd=tmp_path, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        return done.stdout

    said = run("run", "idle:size=2,H=4", agent, "--import", "own_things", "-k", "24").splitlines()[-1]
    assert said.startswith("not better than random: 0 an episode, random 0, after 24 episodes")
    program, *words = shlex.split(said.partition("; try: ")[2])
    assert program == "linmdp"
    run(*words)


def test_an_agent_that_no_command_line_knows_gets_no_command() -> None:
    env = linmdp.make_env("gym:MountainCar-v0,H=20")
    spec = linmdp.make_agent("lsvi-ucb:lam=0.5", env)
    words = "; try: linmdp tune gym:MountainCar-v0,H=20 lsvi-ucb:lam=0.5 --episodes 20"
    assert linmdp.run(env, spec, episodes=20).verdict.endswith(words)
    assert "try" not in linmdp.run(env, linmdp.LSVIUCB(env.task), episodes=20).verdict
    for run in linmdp.compare(env, ["lsvi-ucb"], episodes=20, seeds=1, jobs=1, baselines=False):
        assert run.verdict.startswith("not better than random")
        assert "try" not in run.verdict


def test_every_agent_of_a_comparison_has_a_line(tmp_path: Path) -> None:
    agents = ("lsvi-ucb", "lsvi-ucb:beta=theory")
    done = command("compare", LOCK, *agents, "--episodes", "40", "--seeds", "2", "--out", str(tmp_path))
    lines = [line for line in done.out.splitlines() if " an episode, random " in line]
    assert [line.partition(": ")[0] for line in lines] == list(agents)
    assert "lsvi-ucb: learned: 1 an episode" in lines[0]
    assert re.match(r"lsvi-ucb:beta=theory: not better than random: 0.0.*, after 40 episodes", lines[1])
    assert lines[1].endswith(f"; try: linmdp compare {LOCK} lsvi-ucb:beta=theory auto --episodes 40")
    shown = command("table", str(tmp_path)).out
    assert all(line in shown for line in lines)
    compared = linmdp.compare(LOCK, agents, episodes=40, seeds=2, jobs=1)
    assert compared.verdicts() == lines
    assert lines[0] in compared._repr_html_()


def test_json_stays_pure_and_the_line_goes_to_standard_error(tmp_path: Path) -> None:
    done = command("run", "gym:FrozenLake-v1,H=10", "lsvi-ucb", "--episodes", "20", "--json", "--out", str(tmp_path))
    record = json.loads(done.out)
    assert record["verdict"] in done.err
    assert 0 <= record["random_return"] <= 1
    with closing(Store(tmp_path)) as store:
        (stored,) = store.results()
    assert (stored.verdict, stored.random_return) == (record["verdict"], record["random_return"])


def test_a_store_without_verdicts_still_loads() -> None:
    with opened_folder(Path(__file__).parent / "data" / "sweep-0.1.0") as folder:
        found = folder.read(folder.results)
    assert {(run.random_return, run.verdict) for run in found} == {(None, "")}
    assert verdicts(found) == {}


def test_returns_in_a_store_must_be_numbers(tmp_path: Path) -> None:
    with closing(Store(tmp_path)) as store:
        store.add([("a" * 64, result([1.0] * 4, [1.0]))])
    with sqlite3.connect(tmp_path / "runs.sqlite") as db:
        db.execute("UPDATE runs SET record = json_remove(json_set(record, '$.random_returns[0]', 'x'), '$.checksum')")
    with pytest.raises(linmdp.InvalidData, match="random_returns"), closing(Store(tmp_path)) as store:
        list(store.results())
