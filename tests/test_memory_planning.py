"""What a learner holds, and what its planning takes on top: the two figures together are what Python allocates."""

from __future__ import annotations

import json
import sqlite3
import subprocess
import sys
import tracemalloc
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any, NamedTuple

import gymnasium as gym
import numpy as np
import pytest
from gymnasium import spaces

import linmdp
from linmdp.report.comparison import Comparison
from linmdp.results.rows import SIGNED
from linmdp.results.run_folder import read_folder
from linmdp.results.store import Store
from linmdp.runner.batch import jobs_for
from linmdp.runner.loop import RunState
from linmdp.runner.sweep import run_sweep


class Drawn(gym.Env[Any, Any]):
    """Observations of a space, drawn afresh at each of H steps; some actions pay more than others."""

    def __init__(self, space: spaces.Space[Any], A: int, H: int = 30) -> None:
        self.observation_space, self.action_space, self.H = space, spaces.Discrete(A), H

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)
        self.observation_space.seed(seed)
        self._t = 0
        return self.observation_space.sample(), {}

    def step(self, action: int) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        self._t += 1
        reward = float(action % 3) * self.np_random.random()
        return self.observation_space.sample(), reward, self._t >= self.H, False, {}


TASKS: dict[str, tuple[Callable[[], Any], str, int]] = {
    "finite": (lambda: linmdp.make_env("synthetic:S=100,A=4,H=10"), "lsvi-gp", 40),
    "hashed": (lambda: linmdp.make_env(Drawn(spaces.MultiDiscrete([9] * 8), 3), features="hashed"), "auto", 8),
    "continuous": (lambda: linmdp.make_env("gym:CartPole-v1"), "auto", 10),
    "image": (lambda: linmdp.make_env(Drawn(spaces.Box(0, 255, (32, 32, 3), np.uint8), 3)), "auto", 8),
    "1,024 actions": (lambda: linmdp.make_env(Drawn(spaces.Box(-1, 1, (3,), np.float32), 1024)), "auto:features=8", 2),
    "2,000 steps": (lambda: linmdp.make_env(Drawn(spaces.Discrete(40), 2, 2000), H=2000), "lsvi-gp", 2),
}


class Traced(NamedTuple):
    """The most bytes that Python allocated for an agent in a run, what it says that it took, and how many states."""

    seen: int
    held: int
    planning: int
    states: int | None


def traced(name: str, spec: str) -> Traced:
    task, _, episodes = TASKS[name]
    env = task()
    for other, first in ((env, "random"), (linmdp.make_env("lock:H=4"), "lsvi-gp")):  # imports, and what is made once
        linmdp.run(other, linmdp.make_agent(first, other), episodes=2, verdict=False)
    assert env.task.reward_range  # which takes random play, where nobody knows it
    tracemalloc.start()
    agent: Any = linmdp.make_agent(spec, env)
    state = RunState(env, agent, episodes=episodes, seed=0, eval_every=episodes, name=None)
    before = tracemalloc.get_traced_memory()[0] - agent.nbytes
    tracemalloc.reset_peak()
    for _ in range(episodes):
        state.episode()
    seen = tracemalloc.get_traced_memory()[1] - before
    found = state.result()
    assert found.planning_bytes is not None
    return Traced(
        seen, found.agent_bytes, found.planning_bytes, agent.sizes["states"] if agent.name == "lsvi-gp" else None
    )


def allocated(name: str, spec: str) -> Traced:
    """In a process of its own: threads that other tests have left behind allocate, too, and old objects delay gc."""
    line = [sys.executable, "-W", "ignore", __file__, name, spec]
    done = subprocess.run(line, capture_output=True, text=True, check=True, timeout=600)
    return Traced(*json.loads(done.stdout))


@pytest.mark.parametrize("name", TASKS)
def test_held_and_planning_are_what_python_allocates(name: str) -> None:
    found = allocated(name, TASKS[name][1])
    assert abs(found.held + found.planning - found.seen) <= max(0.1 * found.seen, 64 << 10)


@pytest.mark.parametrize(("name", "limit"), [("finite", 200), ("continuous", 256), ("image", 8 << 10), ("hashed", 700)])
def test_max_bytes_bounds_what_is_held_and_planning_together(name: str, limit: int) -> None:
    found = allocated(name, f"lsvi-gp:max_bytes={limit}KiB")
    assert found.seen <= limit << 10
    assert found.states is not None
    assert found.states < 1024


def test_a_smaller_auto_says_what_it_left_out_and_is_written_down() -> None:
    env = linmdp.make_env("gym:CartPole-v1")
    agent = linmdp.make_agent("auto:max_bytes=512KiB", env)
    assert agent.reasons[-3].startswith("states=167: states=1024 features=40 kept=50 would take 4.")  # type: ignore[attr-defined]
    again = linmdp.make_agent(agent.spec, env)  # type: ignore[attr-defined]
    runs = [linmdp.run(env, a, episodes=12, seed=3, verdict=False) for a in (agent, again)]
    assert np.array_equal(runs[0].rewards, runs[1].rewards)
    assert again.bytes_after(10**6) <= 512 << 10


def test_auto_leaves_counts_where_they_do_not_fit() -> None:
    env = linmdp.make_env("riverswim:H=6")
    for limit, name in (("1MiB", "lsvi-ucb-scouts"), ("80KiB", "lsvi-gp")):
        agent = linmdp.make_agent(f"auto:max_bytes={limit}", env)
        assert agent.chosen["agent"] == name  # type: ignore[attr-defined]
    with pytest.raises(linmdp.InvalidParameter, match="'max_bytes' parameter of lsvi-gp must be at least"):
        linmdp.make_agent("auto:max_bytes=8KiB", env)
    with pytest.raises(linmdp.InvalidParameter, match="'beta' parameter"):
        linmdp.make_agent("auto:max_bytes=1MiB,beta=-1", env)


def test_a_table_has_both_figures_and_a_dash_where_there_is_none() -> None:
    runs = linmdp.compare("lock:H=4", ["lsvi-gp", "lsvi-ucb"], episodes=5, seeds=2)
    learned, none = runs[0], runs.select(agent="lsvi-ucb")
    assert learned.planning_bytes
    assert learned.to_json()["planning_bytes"] == learned.planning_bytes
    head, _, *rows = (line.strip("| ").split(" | ") for line in runs.table().splitlines() if line.startswith("|"))
    names = [name.strip() for name in head]
    at = names.index("while planning")
    assert names[at - 1] == "agent memory"
    assert [row[at].strip()[-3:] for row in rows] == ["KiB", "-", "-", "-"]  # random and optimal play beside them
    assert "while planning" not in none.table()  # a column of dashes says nothing
    assert none[0].to_json()["planning_bytes"] is None


def test_what_planning_took_is_stored_and_a_store_without_it_still_opens(tmp_path: Path) -> None:
    with closing(Store(tmp_path)) as store:
        run_sweep(jobs_for("lock:H=4", ["lsvi-gp"], episodes=5, seeds=2), store, processes=1)
    assert all(run.planning_bytes for run in read_folder(tmp_path).results)
    with closing(sqlite3.connect(tmp_path / "runs.sqlite", isolation_level=None)) as db:
        for row, text in db.execute("SELECT rowid, record FROM runs").fetchall():
            record = json.loads("{" + SIGNED.sub("", text))
            del record["planning_bytes"]
            db.execute("UPDATE runs SET record = ? WHERE rowid = ?", (json.dumps(record), row))
    assert [run.planning_bytes for run in read_folder(tmp_path).results] == [None, None]
    with closing(Store(tmp_path)) as store:
        assert "agent memory" in Comparison(run.result for run in store.stored()).table()


def test_a_saved_learner_and_a_resumed_run_keep_the_figure(tmp_path: Path) -> None:
    learner = linmdp.Learner("lock:H=4", "lsvi-gp").learn(episodes=20)
    before = learner._result().planning_bytes
    learner.save(tmp_path / "learner")
    assert before
    assert linmdp.Learner.load(tmp_path / "learner")._result().planning_bytes == before
    env = linmdp.make_env("lock:H=4")
    runs = [linmdp.run(env, linmdp.make_agent("lsvi-gp", env), episodes=20, checkpoint=tmp_path) for _ in range(2)]
    assert runs[0].planning_bytes == runs[1].planning_bytes
    assert runs[1].planning_bytes


if __name__ == "__main__":
    print(json.dumps(traced(*sys.argv[1:])))
