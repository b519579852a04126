"""Counts of the states that were seen alone: the same agent as with a column for every state."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import linmdp
from linmdp.agents import choice
from linmdp.agents.lsvi import LSVIAgent
from linmdp.agents.memory import table
from linmdp.agents.memory.table import SeenCounts
from linmdp.runner.batch import jobs_for, run_jobs
from linmdp.types import RunResult

ENV = "synthetic:S=60,A=3,d=5,H=4"
AGENTS = [
    "lsvi-ucb:beta=0.1,lam=0.1",
    "lsvi-ucb",
    "lsvi-ucb-fixed:beta=0.1,rho=0.5",
    "lsvi-ucb:stationary=true,beta=0.1",
]


@pytest.fixture
def many_from_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every finite task has many states, and the first growth comes soon."""
    monkeypatch.setattr(choice, "MANY_STATES", 1)
    monkeypatch.setattr(table, "FIRST", 2)


def played(spec: str, episodes: int = 60) -> tuple[LSVIAgent, RunResult]:
    env = linmdp.make_env(ENV)
    agent = linmdp.make_agent(spec, env, episodes)
    assert isinstance(agent, LSVIAgent)
    return agent, linmdp.run(env, agent, episodes=episodes, seed=1)


@pytest.mark.parametrize("spec", AGENTS)
def test_it_plays_as_with_a_column_for_every_state(spec: str, monkeypatch: pytest.MonkeyPatch) -> None:
    whole, expected = played(spec)
    monkeypatch.setattr(choice, "MANY_STATES", 1)
    monkeypatch.setattr(table, "FIRST", 2)
    seen, found = played(spec)
    assert isinstance(seen._planner.storage, SeenCounts)
    np.testing.assert_array_equal(found.rewards, expected.rewards)  # noise and all: the same actions
    np.testing.assert_allclose(np.array(found.regret), np.array(expected.regret))
    np.testing.assert_allclose(seen.q_values(0, 0), whole.q_values(0, 0))


def test_it_holds_columns_for_the_states_that_followed(many_from_one: None) -> None:
    agent, _ = played(AGENTS[0], episodes=2)
    storage = agent._planner.storage
    assert isinstance(storage, SeenCounts)
    assert 0 < len(storage.states) <= 2 * 3 <= storage.N.shape[-1] <= 8
    assert agent.nbytes <= agent.bytes_after(2)
    assert agent.bytes_after(2) < agent.bytes_after(50) == agent.bytes_after(10**6)


@pytest.mark.parametrize("spec", AGENTS)
def test_it_is_saved_and_read_back(spec: str, many_from_one: None, tmp_path: Path) -> None:
    agent, _ = played(spec, episodes=20)
    agent.save(tmp_path / "agent.safetensors")
    back = linmdp.load_agent(tmp_path / "agent.safetensors", linmdp.make_env(ENV))
    for one in (agent, back):
        one.rng = np.random.default_rng(0)
        one.begin_episode()
    np.testing.assert_array_equal(agent.q_values(1, 7), back.q_values(1, 7))
    mine, other = agent.state_dict(), back.state_dict()
    assert all(np.array_equal(mine[name], other[name], equal_nan=True) for name in mine)


@pytest.mark.parametrize("states", [[0, 0], [0, 60], [-1, 0]])
def test_columns_of_states_that_are_none_are_refused(states: list[int], many_from_one: None) -> None:
    agent, _ = played(AGENTS[0], episodes=1)
    storage = agent._planner.storage
    saved = storage.state_dict() | {"N": np.zeros((3, 5, 2)), "states": np.array(states)}
    with pytest.raises(linmdp.InvalidData, match="'states'"):
        storage.load_state_dict(saved)


def test_an_agent_of_a_lockstep_run_has_what_the_run_has_seen(many_from_one: None, tmp_path: Path) -> None:
    paths = [str(tmp_path / f"{i}.safetensors") for i in range(2)]
    jobs = jobs_for(ENV, [AGENTS[0]], episodes=30, seeds=2)
    list(run_jobs([job._replace(save=path) for job, path in zip(jobs, paths, strict=True)], processes=1))
    env = linmdp.make_env(ENV)
    alone = linmdp.make_agent(AGENTS[0], env, 30)
    linmdp.run(env, alone, episodes=30, seed=1)
    np.testing.assert_allclose(linmdp.load_agent(paths[1], env).q_values(0, 0), alone.q_values(0, 0), rtol=1e-9)


def test_forms_made_in_blocks_are_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    agents = []
    for block in (table.BLOCK, 7):
        monkeypatch.setattr(table, "BLOCK", block)
        agents.append(played(AGENTS[0], episodes=20)[0])
    whole, parts = (agent._planner.storage for agent in agents)
    for storage in (whole, parts):
        storage.refresh(np.ones(4, dtype=np.bool_))
    assert isinstance(whole, table.Counts)
    assert isinstance(parts, table.Counts)
    np.testing.assert_allclose(parts.forms, whole.forms, rtol=1e-12)
