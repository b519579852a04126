"""`reproduce tasks`: every task and agent of it exists, and the page shows what was run."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import linmdp
from linmdp.experiments.tasks import TaskRuns, ends, lost, task_page, tasks
from linmdp.results.store import Store
from linmdp.runner.batch import Job, run_unit
from linmdp.runner.registry import make_model
from linmdp.runner.sweep import run_sweep


@pytest.mark.parametrize("scale", ["quick", "paper"])
@pytest.mark.filterwarnings("ignore::linmdp.LinMDPWarning")
def test_every_task_and_agent_can_be_made(scale: str) -> None:
    for task in tasks(scale):
        if "MiniGrid" in task.env:
            pytest.importorskip("minigrid")
        envs: dict[str, Any] = {spec: linmdp.make_env(spec) for spec in {task.env, task.raw}}
        for agent in task.agents:
            if agent.startswith("sb3"):
                pytest.importorskip("stable_baselines3")
            linmdp.make_agent(agent, envs[task.played(agent)], episodes=task.episodes)


def test_the_page_has_a_table_for_each_task() -> None:
    agents = {"lsvi-ucb:stationary=true": "LSVI-UCB", "random": "random"}
    task = TaskRuns("inventory", "inventory", 60, agents, "inventory")
    results = [run_unit([Job(task.env, agent, 60, seed, 5)])[0] for agent in agents for seed in range(2)]
    page = task_page([task, TaskRuns("absent", "sensor", 5, agents, "sensor")], results)
    assert "### inventory" in page
    assert "absent" not in page
    lines = [line for line in page.splitlines() if line.startswith("| ")]
    assert [line.split("|")[1].strip() for line in lines[2:]] == ["LSVI-UCB", "random"]
    best = float(linmdp.optimum(make_model("inventory")).V[0, 0])
    behind = lost([r for r in results if r.agent == "random"], best)
    assert behind is not None
    np.testing.assert_allclose(behind, 0.54, atol=0.02)


def test_a_thinned_curve_gives_the_return_of_an_episode(tmp_path: Path) -> None:
    """A store keeps fewer points than a long run has episodes."""
    jobs = [Job("lock:H=2", "optimal", 3000, 0, 100)]
    store = Store(tmp_path)
    run_sweep(jobs, store, processes=1)
    (kept,) = store.results(store.keys())
    assert len(kept.rewards) < 3000
    np.testing.assert_allclose(ends([kept]), [1.0], rtol=0.01)
    behind = lost([kept], 1.0)
    assert behind is not None
    assert abs(float(behind[0])) < 1e-9
