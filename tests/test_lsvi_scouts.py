"""Scouts of LSVI-UCB: they pay in advance, within their budget, for what the agent itself thinks that they lose."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import linmdp
from linmdp.agents.lsvi_scouts import Wide
from linmdp.envs.linear import LinearMDPEnv
from test_insured import tables_env

pytestmark = pytest.mark.filterwarnings("ignore::linmdp.LinMDPWarning")
SEEDS = st.integers(0, 2**32 - 1)
EAGER: dict[str, Any] = {"budget": 5.0, "settled": 1.0}


def learned(env: LinearMDPEnv, seed: int, episodes: int, **parameters: Any) -> linmdp.LSVIUCBScouts:
    """An agent whose data and plan are of the same moment."""
    agent = linmdp.LSVIUCBScouts(env.task, replan=0.0, **parameters)
    linmdp.run(env, agent, episodes=episodes, seed=seed % 1000)
    agent.begin_episode()
    return agent


def mixed_env(seed: int) -> LinearMDPEnv:
    """Four vectors for three states and two actions: mixtures of each other's transitions."""
    rng = np.random.default_rng(seed)
    table = linmdp.TableFeatures(rng.dirichlet(np.ones(4), (3, 2)))
    theta, mu = rng.random((3, 4)), rng.dirichlet(np.full(3, 0.3), (3, 4))
    return LinearMDPEnv(linmdp.LinearModel(name="mixed", features=table, theta=theta, mu=mu))


@settings(max_examples=20, deadline=None)
@given(seed=SEEDS, mixed=st.booleans(), shared=st.booleans(), beta=st.sampled_from(("auto", 0.1)))
def test_plan_and_cost_are_the_page_transcribed(seed: int, mixed: bool, shared: bool, beta: Any) -> None:
    """State by state and action by action, from Lambda, u and N."""
    env = mixed_env(seed) if mixed else tables_env(seed)
    agent = learned(env, seed, 12, beta=beta, stationary=shared, lam="auto" if beta == "auto" else 0.5)
    plan, planner = Wide(agent), agent._planner
    storage: Any = planner.storage
    explore, N, H, S = planner.exploration, storage.N, 3, 3
    for limit in (0.1, 1.0):
        ways, cost = plan.ways(limit)
        V, C = np.zeros(S), np.zeros(S)
        for h in reversed(range(H)):
            g, top = (0 if shared else h), float(explore.caps[h])
            inverse, going = planner.ridge.inverse(g), h < H - 1
            z = N[g] @ V if going else np.zeros(env.task.d)
            w = inverse @ (planner.ridge.u[g] + z)
            new_V, new_C = np.zeros(S), np.zeros(S)
            for s in range(S):
                rows = env.task.features.phi(s)
                form = np.array([x @ inverse @ x for x in rows])
                own = rows @ planner.w[h]
                q = np.clip(own + explore.beta[h] * np.sqrt(form), top - (H - h), top)
                wide = rows @ w + explore.beta[h] * np.sqrt(form) + agent.scout * (H - h) * form
                wide = np.clip(wide, top - (H - h), top)
                low = np.maximum(own - float(planner.ridge.lam) * np.abs(own) * form, top - (H - h))
                after = np.maximum([x @ inverse @ (N[g] @ C) if going else 0.0 for x in rows], 0.0)
                best, a = q >= q.max() - 1e-8, int(np.where(wide >= wide.max() - 1e-8, low, -np.inf).argmax())
                gap = 0.0 if best[a] else max(q.max() - low[a], 0.0)
                away = gap > 0 and gap + after[a] <= limit
                assert ways[h, s] == (a if away else -1)
                new_C[s] = gap + after[a] if away else min(after[best].mean(), limit)
                new_V[s] = wide.max()
            V, C = new_V, new_C
        np.testing.assert_allclose(cost, C, atol=1e-9)
        np.testing.assert_allclose(plan.values, V + agent.caps[0] - explore.caps[0], atol=1e-9)
        assert (cost <= limit + 1e-12).all()


@settings(max_examples=15, deadline=None)
@given(seed=SEEDS, budget=st.sampled_from((0.01, 0.2, 2.0)), mixed=st.booleans())
def test_scouts_cost_at_most_their_budget(seed: int, budget: float, mixed: bool) -> None:
    env = mixed_env(seed) if mixed else tables_env(seed, start="fixed")
    agent = linmdp.LSVIUCBScouts(env.task, budget=budget, settled=1.0)
    agent.rng = np.random.default_rng(seed % 1000)
    for k in range(1, 60):
        linmdp.run(env, agent, episodes=1, seed=seed % 1000 + k)
        assert 0 <= float(agent.paid) <= budget * k ** (2 / 3) + 1e-9


def test_without_scouts_it_is_lsvi_ucb() -> None:
    env = linmdp.make_env("riverswim")
    rewards = [
        linmdp.run(env, linmdp.make_agent(spec, env), episodes=60, seed=3).rewards
        for spec in ("lsvi-ucb:storage=counts", "lsvi-ucb-scouts:scout=0", "lsvi-ucb-scouts:budget=0")
    ]
    np.testing.assert_array_equal(rewards[0], rewards[1])
    np.testing.assert_array_equal(rewards[0], rewards[2])


def trap() -> LinearMDPEnv:
    """0.4 for sure, or by a toss of 0.6 a tenth at each of the ten steps."""
    P = np.array([[0.0, 0, 1], [0, 1, 0], [0, 0, 1]])
    phi = np.array([[1, 0, 0], [0, 0.6, 0.4], *[[0, 1, 0]] * 2, *[[0, 0, 1]] * 2]).reshape(3, 2, 3)
    theta, mu = np.tile([0.4, 0.1, 0], (10, 1)), np.tile(P, (10, 1, 1))
    return LinearMDPEnv(linmdp.LinearModel(name="trap", features=linmdp.TableFeatures(phi), theta=theta, mu=mu))


def test_scouts_find_what_the_agent_alone_never_sees() -> None:
    stuck = {"lsvi-ucb": 0, "auto": 0}
    for spec in stuck:
        for seed in range(8):
            env = trap()
            regret = linmdp.run(env, linmdp.make_agent(spec, env), episodes=300, seed=seed).regret
            assert regret is not None
            stuck[spec] += float(regret[-1] - regret[-50]) > 0.1 * 49
    assert stuck["lsvi-ucb"] > stuck["auto"] == 0


def test_an_agent_that_is_done_sends_one_and_says_so() -> None:
    env = linmdp.make_env("riverswim:H=6")
    agent = linmdp.LSVIUCBScouts(env.task, **EAGER)
    assert agent.diagnostics()["scouts"] == 0
    result = linmdp.run(env, agent, episodes=60)
    assert agent.diagnostics()["scouts"] > 0
    assert result.certified_kind == "not a proof"


@pytest.mark.parametrize("spec", ["storage=features", "discount=0.9,stationary=true"])
def test_what_scouts_cannot_do_is_refused(spec: str) -> None:
    with pytest.raises(linmdp.InvalidParameter, match="lsvi-ucb-scouts must plan all steps, with storage='counts'"):
        linmdp.make_agent(f"lsvi-ucb-scouts:{spec}", linmdp.make_env("riverswim:H=6"), episodes=10)
    assert linmdp.make_agent("lsvi-ucb-scouts", linmdp.make_env("riverswim:H=6")).lockstep() is None
