"""Insurance: what its page says without a probability holds for every run, and what has one holds on random tasks."""

from __future__ import annotations

import math
from fractions import Fraction
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import linmdp
import reference_insured as reference
from linmdp.agents.insured import power_floor
from linmdp.agents.optimist import Optimist
from linmdp.agents.widths import table_width, theorem_width
from linmdp.envs.linear import LinearMDPEnv

SEEDS = st.integers(0, 2**32 - 1)


def tables_env(seed: int, H: int = 3, S: int = 3, A: int = 2, start: str = "uniform") -> LinearMDPEnv:
    """A random table as a linear task on unit vectors; the reward noise is a part of the next state's draw."""
    rng = np.random.default_rng(seed)
    mu = rng.dirichlet(np.full(S, 0.3), (H, S * A))
    model = linmdp.LinearModel(
        name="random", features=linmdp.one_hot(S, A), theta=rng.random((H, S * A)), mu=mu, start=start
    )
    return LinearMDPEnv(model)


class Log(NamedTuple):
    """One episode: who was to play, b before it, U, the return, and its steps."""

    plays: int
    budget: float
    U: float
    G: float
    steps: list[tuple[int, int, int, float, int]]


def played(env: Any, agent: linmdp.Insured, episodes: int, seed: int = 0) -> list[Log]:
    """Episodes, with what the rule saw before and in each."""
    agent.rng = np.random.default_rng(seed)
    log = []
    for k in range(episodes):
        budget = agent._budget(k + 1)
        agent.begin_episode()
        state, _ = env.reset(seed=seed if k == 0 else None)
        U = agent.optimistic_value(state)
        steps, G = [], 0.0
        for h in range(env.task.H):
            action = agent.act(h, state)
            after, reward, terminated, _, _ = env.step(action)
            agent.observe(h, state, action, float(reward), after, terminated)
            steps.append((h, state, action, float(reward), after))
            state, G = after, G + float(reward)
        agent.end_episode()
        log.append(Log(agent._plays, budget, U, G, steps))
    return log


def inner_of(name: str, env: Any) -> str | linmdp.Agent:
    if name == "optimal":
        return linmdp.OptimalAgent(env.task, Q=env.optimum.Q)
    return "lsvi-ucb:beta=0.1;lam=1" if name == "lsvi-ucb" else name


RULES = st.fixed_dictionaries(
    {
        "mode": st.sampled_from(("mean", "balanced")),
        "alpha": st.sampled_from(("1/3", 0.5, "2/3")),
        "margin": st.sampled_from((0.0, 1.0)),
        "width": st.sampled_from(("theory", "tables", 0.3)),
        "eta": st.sampled_from((1.0, 2.0)),
        "own_data": st.booleans(),
    }
)
INNER = st.sampled_from(("random", "constant", "optimal", "lsvi-ucb", "auto"))


@settings(max_examples=200, deadline=None)
@given(k=st.integers(1, 10**12), r=st.integers(1, 9), q=st.integers(2, 10))
def test_power_floor_is_exact(k: int, r: int, q: int) -> None:
    if r < q:
        alpha = Fraction(r, q)
        n = power_floor(k, alpha)
        assert n**alpha.denominator <= k**alpha.numerator < (n + 1) ** alpha.denominator
    assert power_floor(1000, Fraction(1, 3)) == 10


@pytest.mark.parametrize("alpha", [Fraction(1, 3), Fraction(1, 2), Fraction(7, 10)])
def test_W_has_floor_of_k_to_the_alpha_episodes_and_the_first(alpha: Fraction) -> None:
    env = tables_env(0)
    agent = linmdp.Insured(env.task, alpha=str(alpha))
    due = [agent._is_due(k) for k in range(1, 400)]
    assert due[0]
    assert np.cumsum(due).tolist() == [power_floor(k, alpha) for k in range(1, 400)]
    assert due == [reference.in_W(k, alpha) for k in range(1, 400)]


@settings(max_examples=25, deadline=None)
@given(seed=SEEDS, inner=INNER, rule=RULES)
def test_certified_regrets_follow_from_the_log_and_keep_their_budget(
    seed: int, inner: str, rule: dict[str, Any]
) -> None:
    env = tables_env(seed)
    agent = linmdp.Insured(env.task, inner=inner_of(inner, env), episodes=40, **rule)
    log, H = played(env, agent, 40, seed % 1000), env.task.H
    C, n, least = [0.0, 0.0], [0, 0], dict[int, float]()
    allowed = 0.0
    for k, (plays, budget, U, G, steps) in enumerate(log, start=1):
        start = steps[0][1]
        assert 0 <= U <= H
        assert least.get(start, np.inf) >= U
        least[start] = U
        due = agent.mode == "mean" and reference.in_W(k, Fraction(str(agent.alpha)))
        assert plays == int(due or C[0] > budget)
        if not plays:
            allowed = budget
        C[plays] += U - G
        n[plays] += 1
        assert C[0] <= H + allowed + 1e-9
    assert agent.certified_regret == pytest.approx(tuple(C))
    assert agent.turns == tuple(n)


@settings(max_examples=10, deadline=None)
@given(seed=SEEDS, mode=st.sampled_from(("mean", "balanced")))
def test_the_agent_is_the_page_transcribed(seed: int, mode: str) -> None:
    """U, and who plays, from sums over the log; tables at beta_1, planned before every episode."""
    K, lam, p = 60, 1.0, 0.4
    env = tables_env(seed, H=2, S=2)
    agent = linmdp.Insured(env.task, inner="random", width="tables", mode=mode, p=p, eta=1.0, episodes=K)
    H, S, A = 2, 2, 2
    beta = reference.beta_1(H, S, A, K, p, lam)
    assert table_width(np.array([2.0, 1.0]), d=S * A, K=K, lam=lam, p=p) == pytest.approx(beta)
    N, R, least = np.zeros((H, S, A, S)), np.zeros((H, S, A)), np.full(S, np.inf)
    for log in played(env, agent, K, seed % 1000):
        V = np.zeros(S)
        for h in reversed(range(H)):
            n = N[h].sum(-1)
            score = (R[h] + N[h] @ V) / (n + lam) + beta[h] / np.sqrt(n + lam)
            Q = np.clip(score, 0, H - h)
            V = Q.max(-1)
            if log.plays and h == 0:
                s, a = log.steps[0][1:3]
                tied = Q[s] >= V[s] - 1e-9
                assert tied[a]
                assert score[s, a] >= score[s][tied].max() - 1e-9
        start = log.steps[0][1]
        least[start] = min(least[start], V[start])
        assert pytest.approx(least[start], abs=1e-9) == log.U
        for h, s, a, reward, after in log.steps:
            N[h, s, a, after] += h < H - 1
            N[h, s, a, 0] += h == H - 1  # where it leads is worth nothing there
            R[h, s, a] += reward


@settings(max_examples=10, deadline=None)
@given(seed=SEEDS, width=st.sampled_from((0.05, 0.3, "theory")))
def test_an_episode_telescopes_and_norms_obey_the_potential(seed: int, width: float | str) -> None:
    env, K, lam = tables_env(seed), 40, 1.0
    task = env.task
    agent = linmdp.Insured(task, inner="random", mode="balanced", width=width, eta=1.0, lam=lam, episodes=K)
    agent.rng = np.random.default_rng(seed % 1000)
    Lambda = np.broadcast_to(lam * np.eye(task.d), (task.H, task.d, task.d)).copy()
    squares = np.zeros(task.H)
    for k in range(K):
        agent.begin_episode()
        state, _ = env.reset(seed=seed % 1000 if k == 0 else None)
        V = [float(agent._B.q_values(0, state).max())]
        G, differences, phis = 0.0, 0.0, []
        for h in range(task.H):
            action = agent.act(h, state)
            phis.append(task.features.phi(state)[action])
            after, reward, terminated, _, _ = env.step(action)
            V.append(float(agent._B.q_values(h + 1, after).max()) if h + 1 < task.H else 0.0)
            agent.observe(h, state, action, float(reward), after, terminated)
            differences += V[h] - float(reward) - V[h + 1]
            state, G = after, G + float(reward)
        assert V[0] - G == pytest.approx(differences, abs=1e-9)
        assert all(0 <= v <= task.H - h for h, v in enumerate(V))
        for h, phi in enumerate(phis):
            if agent._plays:
                squares[h] += phi @ np.linalg.solve(Lambda[h], phi)
            Lambda[h] += np.outer(phi, phi)
        agent.end_episode()
        n_B = agent.turns[1]
        assert (squares <= 2 * task.d * math.log1p(n_B / (lam * task.d)) + 1e-9).all()


@pytest.mark.parametrize("mode", ["mean", "balanced"])
@pytest.mark.parametrize("spec", ["synthetic:S=12,A=3,d=4,H=5", "riverswim:H=6"])
def test_insured_by_itself_an_optimist_is_itself(spec: str, mode: str) -> None:
    env = linmdp.make_env(spec)
    parameters: dict[str, Any] = {"width": 0.2, "eta": 1.0, "episodes": 50}
    inner = Optimist(env.task, storage="counts", **parameters)
    agent = linmdp.Insured(env.task, inner=inner, mode=mode, **parameters)
    for _ in range(5):
        linmdp.run(env, agent, episodes=10)
        for h in range(env.task.H):
            np.testing.assert_allclose(agent._A.policy(h), agent._B.policy(h))
            for s in range(12 if env.task.S == 12 else 6):
                np.testing.assert_array_equal(agent._A.q_values(h, s), agent._B.q_values(h, s))


@pytest.mark.parametrize("mode", ["mean", "balanced"])
@pytest.mark.parametrize("inner", reference.INNER)
def test_on_tables_the_measured_bound_is_above_what_was_lost(inner: str, mode: str) -> None:
    """Hundreds of random tasks, each with its own run; benchmarks/insured.py has ten thousand."""
    for i, (H, S, A) in enumerate(((1, 1, 2), (2, 2, 2), (3, 3, 2))):
        tasks = reference.Tables.random(40, H, S, A, np.random.default_rng(i))
        starts = ("fixed", "random", "adversarial")[i]
        found = reference.insured(tasks, inner, 300, mode=mode, starts=starts, seed=i)
        assert (found.worst >= -1e-9).all()
        assert (found.certified >= found.lost).all()
        assert (found.over <= 1e-9).all()
        if H == 1 and (inner == "random" or mode == "balanced"):  # elsewhere an action may be unseen
            assert (found.U < 1).mean() > 0.3  # it says something


@settings(max_examples=10, deadline=None)
@given(seed=SEEDS, inner=INNER, mode=st.sampled_from(("mean", "balanced")))
def test_the_agent_too_certifies_what_it_lost(seed: int, inner: str, mode: str) -> None:
    env = tables_env(seed, H=2, S=2)
    agent = linmdp.Insured(env.task, inner=inner_of(inner, env), width="tables", mode=mode, episodes=60)
    log = played(env, agent, 60, seed % 1000)
    V_star = env.optimum.V[0]
    assert all(V_star[episode.steps[0][1]] <= episode.U + 1e-9 for episode in log)
    assert sum(V_star[e.steps[0][1]] - e.G for e in log) <= sum(agent.certified_regret) + 1e-9


def test_a_certificate_of_a_table_is_valid_and_shrinks() -> None:
    env = tables_env(4, H=1, S=1, A=2, start="fixed")
    found, returns = [], np.full(2000, float(env.optimum.V[0, 0]))
    agent = linmdp.Insured(env.task, inner=inner_of("optimal", env), width="tables", mode="balanced", episodes=2000)
    agent.rng = np.random.default_rng(0)
    for _ in range(4):
        linmdp.run(env, agent, episodes=500)
        found.append(agent.certify(returns, 0))
    assert found == sorted(found, reverse=True)
    assert 0 <= found[-1] < 0.7 * found[0]


def test_B_certifies_no_more_than_its_bound() -> None:
    env = linmdp.make_env("synthetic:S=12,A=3,d=4,H=5")
    agent = linmdp.Insured(env.task, inner="random", mode="balanced", episodes=200)
    linmdp.run(env, agent, episodes=200)
    beta = theorem_width(d=4, H=5, K=200, lam=1.0, p=0.05)
    assert agent.chosen["width"] == pytest.approx(beta)
    assert agent.certified_regret[1] <= reference.optimist_bound(
        agent.turns[1], beta, d=4, H=5, lam=1.0, p=0.05, eta=2.0
    )


def test_width_grows_with_K_where_K_is_not_known_and_survives_saving() -> None:
    env = tables_env(1)
    agent, twin = (linmdp.Insured(env.task, inner="random") for _ in range(2))
    widths = []
    for _ in range(5):
        played(env, agent, 10)
        widths.append(agent._B.beta_value)
    assert widths == sorted(widths)
    assert widths[0] < widths[-1]
    assert widths[-1] >= theorem_width(d=6, H=3, K=50, lam=1.0, p=0.05)
    twin.load_state_dict(agent.state_dict())
    assert twin._B.beta_value == agent._B.beta_value
    np.testing.assert_array_equal(twin._B.q_values(0, 1), agent._B.q_values(0, 1))


def test_own_data_is_that_of_Bs_episodes_alone() -> None:
    env = tables_env(2)
    agent = linmdp.Insured(env.task, inner="random", own_data=True, width=0.3, delta=0.01, eta=1.0, episodes=30)
    log = played(env, agent, 30)
    storage: Any = agent._B._planner.storage
    assert storage.N[0].sum() == sum(e.plays for e in log) < 30
    believed = float(agent._B.q_values(0, 0).max())
    assert agent.optimistic_value(0) <= min(believed + 3 * 0.01, 3)
    assert theorem_width(d=6, H=3, K=30, lam=1, p=0.1, more=1.0) > theorem_width(d=6, H=3, K=30, lam=1, p=0.1)


def test_states_without_number_take_one_regression_in_bounded_memory() -> None:
    env = linmdp.make_env("gym:CartPole-v1,H=100")
    agent = linmdp.Insured(env.task, episodes=30)
    result = linmdp.run(env, agent, episodes=5)
    assert agent._B.horizon.groups == 1
    assert result.peak_bytes < 32 << 20


def test_a_saved_agent_is_a_file(tmp_path: Path) -> None:
    env = linmdp.make_env("riverswim:H=4")
    agent = linmdp.Insured(env.task, episodes=5)
    agent.save(tmp_path / "new.safetensors")
    linmdp.run(env, agent, episodes=5)
    agent.save(tmp_path / "agent.safetensors")
    twin = linmdp.load_agent(tmp_path / "agent.safetensors", env)
    assert twin.diagnostics() == agent.diagnostics()


def test_bounded_memory_does_not_grow_and_widens() -> None:
    env = linmdp.make_env("synthetic:S=40,A=3,d=6,H=4")
    agent = linmdp.Insured(env.task, inner="random", M=4, episodes=60)
    played(env, agent, 20)
    before = agent.nbytes
    played(env, agent, 40)
    assert agent.nbytes == before
    assert agent._B._exploration.beta[0] > agent._B.beta_value  # by the error of its centres


@pytest.mark.parametrize("scale", [(-2.0, 3.0), (0.0, 10.0), (-1.0, 0.0)])
def test_U_is_optimistic_for_any_range_of_rewards(scale: tuple[float, float]) -> None:
    low, high = scale
    rng = np.random.default_rng(3)
    theta = low + (high - low) * rng.random((3, 6))
    mu = rng.dirichlet(np.full(3, 0.3), (3, 6))
    model = linmdp.LinearModel(
        name="scaled", features=linmdp.one_hot(3, 2), theta=theta, mu=mu, start="uniform", reward_range=scale
    )
    env = LinearMDPEnv(model)
    agent = linmdp.Insured(env.task, inner="random", width="tables", mode="balanced", episodes=80)
    log = played(env, agent, 80)
    assert all(env.optimum.V[0, e.steps[0][1]] <= e.U + 1e-9 for e in log)
    assert all(3 * min(low, 0.0) <= e.U <= 3 * max(high, 0.0) for e in log)


@pytest.mark.parametrize(
    ("parameters", "words"),
    [
        ({"alpha": 1}, "alpha"),
        ({"alpha": "1/0"}, "alpha"),
        ({"alpha": "one third"}, "alpha"),
        ({"alpha": 0.333}, "alpha"),
        ({"mode": "both"}, "mode"),
        ({"omega": 0.5}, "omega"),
        ({"margin": 1.5}, "margin"),
        ({"delta": 0.1}, "own_data"),
        ({"width": "narrow"}, "width"),
        ({"width": "tables", "M": 3}, "width"),
        ({"lam": 0.5}, "lam"),
        ({"inner": "optimal"}, "inner"),
        ({"inner": "insured"}, "inner"),
        ({"inner": "lsvi"}, "rlsvi"),
    ],
)
def test_what_is_refused_says_which_parameter(parameters: dict[str, Any], words: str) -> None:
    env = linmdp.make_env("riverswim:H=4")
    with pytest.raises(linmdp.LinMDPError, match=words) as refused:
        linmdp.Insured(env.task, **parameters)
    assert "\n" not in str(refused.value)


def test_tables_need_unit_vectors() -> None:
    with pytest.raises(linmdp.LinMDPError, match="unit vectors"):
        linmdp.Insured(linmdp.make_env("synthetic:S=12,A=3,d=4,H=5").task, width="tables")
