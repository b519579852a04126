"""At most M links of unit vectors: exact while they fit, what the page says beyond, and certified always."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import linmdp
from linmdp import LSVIUCB, Task
from reference_kept import ReferenceKept
from test_agents_against_reference import RandomTask, assert_same, common, runs
from test_storages import unit_tasks

some = settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])


@some
@given(task=unit_tasks(), common=common, run=runs, stationary=st.booleans(), M=st.integers(2, 20))
def test_links_that_do_not_fit_are_merged_as_the_page_says(
    task: Task, common: dict[str, Any], run: dict[str, Any], stationary: bool, M: int
) -> None:
    fast = LSVIUCB(task, storage="sparse", M=M, stationary=stationary, **common)
    slow = ReferenceKept(task, M=M, stationary=stationary, **common)
    assert_same(fast, slow, task, **run)
    storage: Any = fast._planner.storage
    assert storage.links.count == len(slow.links) <= M
    np.testing.assert_allclose(storage.merged, slow.merged)


@some
@given(task=unit_tasks(), seed=st.integers(0, 2**16), M=st.integers(2, 20), ends=st.sampled_from((0.0, 0.2)))
def test_the_certificate_is_never_below_the_true_error(task: Task, seed: int, M: int, ends: float) -> None:
    """The regression with links, against that on all next states with the same V, in every direction."""
    M = max(M, task.d * task.H)  # no unit vector is left out
    fast, source = LSVIUCB(task, storage="sparse", M=M, beta=0.5, lam=0.5, ties="first"), RandomTask(task, seed, ends)
    fast.rng, samples = np.random.default_rng(seed), [[] for _ in range(task.H)]  # type: ignore[var-annotated]
    for _ in range(12):
        fast.begin_episode()
        state = source.reset()
        for h in range(task.H):
            action = fast.act(h, state)
            following, reward, over = source.step()
            fast.observe(h, state, action, reward, following, over)
            samples[h].append((task.features.phi(state)[action], reward, following, over))
            if over:
                break
            state = following
        fast.end_episode()
    fast.begin_episode()
    storage, ridge = fast._planner.storage, fast._planner.ridge
    for h in range(task.H - 1):
        right = np.zeros(task.d)
        for phi, reward, following, over in samples[h]:
            right += phi * (reward + (0.0 if over else float(fast.q_values(h + 1, following).max())))
        inverse = ridge.Lambda_inv[h, :, 0, 0]
        off = np.abs(inverse * right - fast._planner.w[h])
        assert (off <= storage.errors[h] * np.sqrt(inverse) + 1e-6).all()


def test_memory_is_flat_to_the_byte_while_links_are_merged() -> None:
    env, held = linmdp.make_env("riverswim:S=6,H=10"), set()
    agent: Any = linmdp.make_agent("lsvi-ucb:storage=sparse,M=14,beta=0.1", env)
    forecast = agent.bytes_after(10**6)
    linmdp.run(env, agent, episodes=50, seed=0, on_episode=lambda record: held.add(record.agent_bytes))
    assert held == {forecast}
    assert agent._planner.storage.merged.any()


@pytest.mark.filterwarnings("ignore::linmdp.LinMDPWarning")  # a wider bonus learns later
def test_the_bound_may_widen_the_bonus() -> None:
    env = linmdp.make_env("riverswim:S=6,H=10")
    agents: list[Any] = [
        linmdp.make_agent(f"lsvi-ucb:storage=sparse,M={M},beta=0.1,inflate=0.5", env) for M in (1000, 20)
    ]
    for agent in agents:
        linmdp.run(env, agent, episodes=60, seed=0)
    exact, merged = (agent._exploration.beta for agent in agents)
    assert (exact == 0.1).all()
    np.testing.assert_allclose(merged, 0.1 + 0.5 * agents[1]._planner.storage.errors)
    assert merged.max() > 0.1


def test_a_saved_agent_goes_on_and_must_have_links_that_can_be() -> None:
    env = linmdp.make_env("riverswim:S=6,H=10")
    agent: Any = linmdp.make_agent("lsvi-ucb:storage=sparse,M=16", env)
    linmdp.run(env, agent, episodes=20, seed=0)
    other: Any = linmdp.make_agent("lsvi-ucb:storage=sparse,M=16", env)
    other.load_state_dict(agent.state_dict())
    one, two = (linmdp.run(env, a, episodes=20, seed=1) for a in (agent, other))
    assert (one.rewards == two.rewards).all()
    for name, value in (("links", 3), ("sums", np.nan), ("merged", -1)):
        damaged = agent.state_dict()
        damaged[f"planner.storage.{name}"][...] = value
        with pytest.raises(linmdp.InvalidData, match=name):
            other.load_state_dict(damaged)
    wider: Any = linmdp.make_agent("lsvi-ucb:storage=sparse,M=100", env)
    linmdp.run(env, wider, episodes=20, seed=0)
    damaged = agent.state_dict()
    for name in ("links", "sums"):
        damaged[f"planner.storage.{name}"] = wider.state_dict()[f"planner.storage.{name}"]
    with pytest.raises(linmdp.InvalidData, match="at most 16"):
        other.load_state_dict(damaged)


def test_within_few_bytes_unit_vectors_share_one_q_and_keep_few_links() -> None:
    env = linmdp.make_env("gym:FrozenLake-v1")
    agents: list[Any] = [linmdp.make_agent(f"lsvi-ucb:max_bytes={limit}", env) for limit in ("1GiB", "40KiB")]
    assert "discount" not in agents[0].chosen
    assert "reason" not in agents[0].chosen
    assert agents[1].chosen["discount"] == 0.99
    assert agents[1].chosen["M"] >= 64
    assert agents[1].chosen["reason"].startswith("sparse would take")
    result = linmdp.run(env, agents[1], episodes=30, seed=0)
    assert result.peak_bytes <= agents[1].chosen["bytes"] <= 40 << 10
    assert result.certificate is not None
    with pytest.raises(linmdp.InvalidParameter, match="'M' parameter of lsvi-ucb must be"):
        linmdp.make_agent("lsvi-ucb:storage=sparse,M=1", env)
