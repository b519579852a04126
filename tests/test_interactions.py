"""Every step that an environment makes is counted, in every result, and none is made twice."""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces

import command
import linmdp
from linmdp.report.comparison import Comparison
from linmdp.report.tables import comparison_table
from linmdp.results.run_folder import run_columns, run_rows
from linmdp.results.store import Store
from linmdp.runner.random_play import EPISODES


class Counted(gymnasium.Env[Any, Any]):
    """Episodes of seven steps; an observation has no bounds, so that its scale is looked for."""

    action_space = spaces.Discrete(2)
    observation_space: Any = spaces.Box(-np.inf, np.inf, (2,), np.float32)
    total = 0
    """Steps of all such environments."""

    def __init__(self) -> None:
        self.steps = self.h = 0

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> Any:
        super().reset(seed=seed)
        self.h = 0
        return self._shown(), {}

    def _shown(self) -> Any:
        return self.np_random.random(2).astype(np.float32)

    def step(self, action: int) -> Any:
        self.steps, self.h = self.steps + 1, self.h + 1
        Counted.total += 1
        return self._shown(), float(action), False, self.h == 7, {}


def make_counted(**options: Any) -> Any:
    return Counted(**options)


gymnasium.register("Counted-v0", entry_point=make_counted, max_episode_steps=7, disable_env_checker=True)
BOUNDS: dict[str, Any] = {"reward_low": 0.0, "reward_high": 1.0}
SCALED: dict[str, Any] = {"features": "fourier", "scaling": "data"}


@pytest.mark.parametrize(
    "task", [{}, {"H": 7}, {"features": "fourier", "scaling": "data"}, {"reward": "clip"}, BOUNDS, {"warmup": 1500}]
)
@pytest.mark.parametrize("agent", ["lsvi-ucb", "random", "auto", "sb3-dqn:learning_starts=10"])
def test_interactions_are_all_steps_that_the_environment_made(agent: str, task: dict[str, Any]) -> None:
    if agent.startswith("sb3"):
        pytest.importorskip("stable_baselines3")
    inner = Counted()
    env = linmdp.GymTask(inner, **{"H": 7} | task)
    found = linmdp.run(env, linmdp.make_agent(agent, env, episodes=6), episodes=6)
    assert found.interactions == inner.steps
    assert found.to_json()["interactions"] == inner.steps


def test_without_a_verdict_nothing_is_played_but_the_run() -> None:
    inner = Counted()
    env = linmdp.GymTask(inner, H=7, **BOUNDS)
    env.task.features  # noqa: B018
    before = inner.steps
    found = linmdp.run(env, linmdp.make_agent("lsvi-ucb", env), episodes=6, verdict=False)
    assert (inner.steps - before, found.interactions) == (42, inner.steps)
    assert (found.verdict, found.random_returns) == ("", [])
    judged = linmdp.run(env, linmdp.make_agent("lsvi-ucb", env), episodes=6)
    assert judged.interactions == inner.steps - 42


def test_random_play_before_the_first_episode_is_played_once() -> None:
    """20 episodes for rewards and for their kind, and one warm-up, whoever asks for it how often."""
    inner = Counted()
    env = linmdp.GymTask(inner, H=7, **SCALED)
    env.task.reward_range  # noqa: B018
    assert inner.steps == env.interactions == 20 * 7 + 1000 * 7 // 8  # the last observation is one of them, too


@pytest.mark.parametrize("agent", ["random", "sb3-dqn:learning_starts=10"])
def test_an_agent_that_asks_for_no_features_is_played_from_the_first_step_on(agent: str) -> None:
    if agent.startswith("sb3"):
        pytest.importorskip("stable_baselines3")
    inner = Counted()
    env = linmdp.GymTask(inner, H=7)
    assert inner.steps == 0
    found = linmdp.run(env, linmdp.make_agent(agent, env, episodes=6), episodes=6, verdict=False)
    assert found.interactions == inner.steps == 42
    assert not env.task.knows("features")
    assert linmdp.make_agent("lsvi-ucb", env).task.d > 0
    assert inner.steps > 42


def test_features_are_the_same_whenever_they_are_asked_for() -> None:
    """And whoever steps through an environment by hand sees what an agent with features sees."""
    early, late = (linmdp.GymTask(Counted(), H=7) for _ in range(2))
    early.task.features  # noqa: B018
    linmdp.run(late, linmdp.make_agent("random", late), episodes=3, verdict=False)
    states = [env.reset(seed=3)[0] for env in (early, late)]
    np.testing.assert_array_equal(states[0], states[1])
    phis = [env.task.features.phi(state) for env, state in zip((early, late), states, strict=True)]
    np.testing.assert_array_equal(phis[0], phis[1])
    assert early.task.reward_range == late.task.reward_range
    assert early.chosen == late.chosen
    assert early.interactions == late.interactions


def test_features_are_not_looked_for_in_the_middle_of_an_episode() -> None:
    class Asks(linmdp.RandomAgent):
        def act(self, h: int, state: Any) -> int:
            return int(self.task.d > 0)

    env = linmdp.GymTask(Counted(), H=7)
    with pytest.raises(linmdp.InvalidData, match="must be asked for before an episode begins"):
        linmdp.run(env, Asks(env.task), episodes=3)


def test_a_model_counts_its_steps_alone_and_in_lockstep() -> None:
    found = linmdp.compare("lock:H=4", ["lsvi-ucb", "lsvi-ucb-fixed"], episodes=10, seeds=2, jobs=1)
    assert [run.interactions for run in found] == [40] * 8
    assert "interactions" in str(found)
    assert "<th>interactions</th>" in found._repr_html_()


def test_the_command_line_counts_leaves_the_verdict_out_and_shows_it(tmp_path: Path) -> None:
    line = ["run", "gym:Counted-v0,reward_low=0,reward_high=1", "random", "-k", "6", "--json"]
    judged, alone = (json.loads(command.linmdp(*line, *more).out) for more in ([], ["--no-verdict"]))
    assert judged["interactions"] == alone["interactions"] + 7 * EPISODES
    assert (alone["verdict"], alone["random_return"]) == ("", None)
    shown = command.linmdp("compare", *line[1:2], "random", "constant", "-k", "6", "--no-verdict", "-j", "1").out
    assert "interactions" in shown.splitlines()[0]


def test_a_store_that_did_not_count_is_read_and_its_column_is_missing(tmp_path: Path) -> None:
    command.linmdp("run", "lock:H=4", "lsvi-ucb", "-k", "6", "--out", str(tmp_path), "--no-save")
    with sqlite3.connect(tmp_path / "runs.sqlite") as db:
        (text,) = db.execute("SELECT record FROM runs").fetchone()
        record = json.loads(text)
        assert (record.pop("interactions"), len(record.pop("checksum"))) == (24, 64)  # older versions had neither
        db.execute("UPDATE runs SET record = ?", (json.dumps(record),))
    store = Store(tmp_path)
    try:
        rows, (result,) = list(run_rows(store)), list(store.results())
    finally:
        store.close()
    assert result.interactions is None
    assert "interactions" not in result.to_json()
    assert "interactions" not in run_columns(rows)
    assert "interactions" not in comparison_table(Comparison([result]).summaries)
