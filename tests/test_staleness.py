"""What Fold says of its own error is an estimate: of the right size, and where it belongs."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import linmdp
from linmdp.report.tables import comparison_table
from linmdp.results.summary import by_agent

ENV = "synthetic:S=60,A=4,d=8,H=6"


def true_and_said(correction: str, M: int, seed: int) -> tuple[float, float]:
    """The error of the targets of all steps, in the norm of Lambda^-1 and per direction, and what Fold says."""
    env: Any = linmdp.make_env(ENV)
    agent: Any = linmdp.make_agent(f"lsvi-ucb-fold:beta=0.05,lam=0.1,replan=0.05,M={M},correction={correction}", env)
    agent.rng, features = np.random.default_rng(seed), env.task.features
    samples: list[list[tuple[Any, Any, bool]]] = [[] for _ in range(6)]
    for k in range(160):
        agent.begin_episode()
        state, _ = env.reset(seed=seed if not k else None)
        for h in range(6):
            action = agent.act(h, state)
            following, reward, over, _, _ = env.step(action)
            agent.observe(h, state, action, reward, following, over)
            samples[h].append((features.phi(state)[action], following, over))
            state = following
        agent.end_episode()
    planner, storage = agent._planner, agent._planner.storage
    agent._plan[:] = True
    planner.prepare(agent._plan, agent._store, agent._plan)
    planner.plan(agent._plan, whole=True, rng=agent.rng)
    storage.begin()
    storage._staying = []
    true = said = 0.0
    for h in range(5):
        z = storage._target(h, fold=False)
        exact = sum(phi * (0.0 if over else agent.q_values(h + 1, s).max()) for phi, s, over in samples[h])
        true += float((z - exact) @ planner.ridge.Lambda_inv[h] @ (z - exact)) / 8
        said += float(storage.errors[h]) ** 2
    return true**0.5, said**0.5


@pytest.mark.parametrize("correction", ["slope", "probe", "frozen"])
def test_the_estimate_is_of_the_size_of_the_true_error(correction: str) -> None:
    found = np.array([true_and_said(correction, 30, seed) for seed in range(4)])
    true, said = np.sqrt((found**2).mean(axis=0))
    assert true > 0
    assert true / 3 < said < 8 * true


def test_it_is_in_results_and_tables_of_fold_alone() -> None:
    env = linmdp.make_env(ENV)
    specs = ("lsvi-ucb-fold:beta=0.05,lam=0.1,M=20", "lsvi-ucb:beta=0.05,lam=0.1")
    results = [linmdp.run(env, linmdp.make_agent(spec, env), episodes=60, seed=0) for spec in specs]
    assert (results[0].staleness or 0.0) > 0
    assert results[0].to_json()["staleness"] == results[0].staleness
    assert results[0].certificate is None
    assert results[1].staleness is None
    assert "staleness" not in results[1].to_json()
    head = comparison_table(by_agent(results)).splitlines()[0]
    assert "staleness" in head
    assert "certificate" not in head


def test_it_is_nothing_while_nothing_is_folded() -> None:
    env = linmdp.make_env("lock:H=4")
    result = linmdp.run(env, linmdp.make_agent("lsvi-ucb-fold:M=64", env), episodes=40, seed=0)
    assert result.staleness == 0
