"""The fast agents do what the literal transcription does: same Q, same actions."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from linmdp import LSVIUCB, LinMDPWarning, LSVIUCBAdaptive, LSVIUCBFixed, TableFeatures, Task
from linmdp.agents import LSVIPHE, LSVIUCBRareSwitch
from linmdp.agents.horizon import Horizon
from reference import (
    ReferenceAdaptive,
    ReferenceFixed,
    ReferenceLSVI,
    ReferencePHE,
    ReferenceRareSwitch,
)

STORAGES = ("counts", "features", "states")


@st.composite
def tasks(draw: st.DrawFn) -> Task:
    """A random task: dense features, or one-hot ones, where ties abound."""
    S, A, H = draw(st.integers(1, 6)), draw(st.integers(1, 4)), draw(st.integers(1, 5))
    if draw(st.booleans()):
        d = draw(st.integers(1, 7))
        table = np.random.default_rng(draw(st.integers(0, 2**16))).normal(size=(S, A, d))
        table /= np.linalg.norm(table, axis=-1, keepdims=True)
        features = TableFeatures(table, bound=1.0 + 1e-12)
    else:
        features = TableFeatures(np.eye(S * A).reshape(S, A, S * A))
    return Task(S=S, A=A, d=features.d, H=H, reward_range=(0.0, 1.0), features=features)


class RandomTask:
    """Random states, rewards and early ends: the agents need not know where their data come from."""

    def __init__(self, task: Task, seed: int, end_probability: float) -> None:
        self.task, self.end = task, end_probability
        self.rng = np.random.default_rng(seed)

    def reset(self) -> int:
        return int(self.rng.integers(self.task.S or 0))

    def step(self) -> tuple[int, float, bool]:
        # rewards on a coarse grid, so that different actions often have exactly the same worth
        return self.reset(), float(self.rng.integers(3)) / 2, bool(self.rng.random() < self.end)


def assert_same(
    fast: Any, slow: Any, task: Task, *, episodes: int, seed: int, end_probability: float, tolerance: float = 1e-8
) -> None:
    """Both agents on the same data: the Q of every state and the actions agree in every episode."""
    source = RandomTask(task, seed, end_probability)
    fast.rng, slow.rng = np.random.default_rng(seed), np.random.default_rng(seed)
    for _ in range(episodes):
        fast.begin_episode()
        slow.begin_episode()
        for h in range(task.H):
            for s in range(task.S or 0):
                np.testing.assert_allclose(fast.q_values(h, s), slow.q_values(h, s), rtol=0, atol=tolerance)
        state = source.reset()
        for h in range(task.H):
            action = slow.act(h, state)
            assert fast.act(h, state) == action
            next_state, reward, terminated = source.step()
            for agent in (fast, slow):
                agent.observe(h, state, action, reward, next_state, terminated)
            if terminated:
                break
            state = next_state
        fast.end_episode()
        slow.end_episode()


common = st.fixed_dictionaries(
    {
        "beta": st.floats(0.0, 3.0),
        "lam": st.floats(0.05, 5.0),
        "cap": st.sampled_from(("H", "remaining")),
        "ties": st.sampled_from(("first", "random")),
    }
)
runs = st.fixed_dictionaries(
    {
        "episodes": st.integers(1, 14),
        "seed": st.integers(0, 2**16),
        "end_probability": st.sampled_from((0.0, 0.3)),
    }
)
many = settings(max_examples=120, deadline=None, suppress_health_check=[HealthCheck.too_slow])


@pytest.mark.parametrize("storage", STORAGES)
@many
@given(task=tasks(), common=common, run=runs, rho=st.floats(0.2, 1.0))
def test_fixed_is_algorithm_2(
    storage: str, task: Task, common: dict[str, Any], run: dict[str, Any], rho: float
) -> None:
    K = run["episodes"]
    fast = LSVIUCBFixed(task, storage=storage, rho=rho, episodes=K, **common)
    assert_same(fast, ReferenceFixed(task, K=K, rho=rho, **common), task, **run)


@pytest.mark.parametrize("storage", STORAGES)
@many
@given(
    task=tasks(),
    common=common,
    run=runs,
    rho=st.floats(0.3, 1.0),
    m=st.integers(1, 4),
    tau_rel=st.sampled_from((0.0, 0.02, 0.1, 0.3, 2.0)),
    budget=st.integers(2, 8),
    proxy=st.sampled_from(("all", "phase")),
)
def test_adaptive_is_algorithm_3(
    storage: str,
    task: Task,
    common: dict[str, Any],
    run: dict[str, Any],
    rho: float,
    m: int,
    tau_rel: float,
    budget: int,
    proxy: str,
) -> None:
    K = run["episodes"]
    # an irrational shift keeps tau away from distances that occur exactly, where rounding would decide
    tau = tau_rel * np.sqrt(min(m, task.d)) / common["lam"] * (1 + np.pi * 1e-5)
    own = {"rho": rho, "m": m, "tau": tau, "budget": budget, "proxy": proxy}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", LinMDPWarning)
        fast = LSVIUCBAdaptive(task, storage=storage, episodes=K, **own, **common)
    assert_same(fast, ReferenceAdaptive(task, K=K, **own, **common), task, **run)


@pytest.mark.parametrize("storage", STORAGES)
@many
@given(task=tasks(), common=common, run=runs, eta=st.sampled_from((1.0001, 1.5, 2.0, 9.0, 300.0)))
def test_rare_switch_plans_when_a_determinant_has_grown(
    storage: str, task: Task, common: dict[str, Any], run: dict[str, Any], eta: float
) -> None:
    eta = eta * (1 + np.pi * 1e-6)  # away from determinants that occur exactly
    fast = LSVIUCBRareSwitch(task, storage=storage, eta=eta, **common)
    assert_same(fast, ReferenceRareSwitch(task, eta=eta, **common), task, **run)


@pytest.mark.parametrize("storage", STORAGES)
@many
@given(task=tasks(), common=common, run=runs, draws=st.integers(1, 4))
def test_phe_takes_the_best_of_its_perturbed_weights(
    storage: str, task: Task, common: dict[str, Any], run: dict[str, Any], draws: int
) -> None:
    fast = LSVIPHE(task, storage=storage, draws=draws, **common)
    assert_same(fast, ReferencePHE(task, draws=draws, **common), task, **run)


def test_perturbed_weights_have_the_covariance_of_perturbed_rewards() -> None:
    """Perturbing every reward by N(0, beta^2), and the prior, gives weights ~ N(w, beta^2 Lambda^-1)."""
    rng, beta = np.random.default_rng(0), 0.7
    task = Task(S=3, A=2, d=3, H=1, reward_range=(0.0, 1.0), features=TableFeatures(rng.dirichlet(np.ones(3), (3, 2))))
    agent: Any = LSVIPHE(task, beta=beta, lam=0.4, draws=1000)
    for k in range(30):
        agent.begin_episode()
        agent.observe(0, k % 3, k % 2, float(rng.random()), 0, False)
        agent.end_episode()
    found = []
    for _ in range(20):
        agent.begin_episode()
        agent.end_episode()
        found.append(agent._planner.exploration.W[0] - agent._planner.w[0])
    inverse = agent._planner.ridge.Lambda_inv[0]
    np.testing.assert_allclose(np.cov(np.concatenate(found).T), beta**2 * inverse, atol=0.04 * beta**2 * inverse.max())


@many
@given(task=tasks(), common=common, run=runs, storage=st.sampled_from((*STORAGES, "centres")), stationary=st.booleans())
def test_a_weight_of_two_is_the_same_sample_twice(
    task: Task, common: dict[str, Any], run: dict[str, Any], storage: str, stationary: bool
) -> None:
    """In the regression, whatever keeps the samples."""
    heavy, twice = (LSVIUCB(task, storage=storage, stationary=stationary, **common) for _ in range(2))
    add_step = heavy._planner.add_step
    heavy._planner.add_step = lambda step, phi: add_step(step._replace(times=2.0), phi)  # type: ignore[method-assign]
    source = RandomTask(task, run["seed"], run["end_probability"])
    for _ in range(run["episodes"]):
        for agent in (heavy, twice):
            agent.begin_episode()
        state = source.reset()
        for h in range(task.H):
            action, (next_state, reward, terminated) = int(source.rng.integers(task.A)), source.step()
            heavy.observe(h, state, action, reward, next_state, terminated)
            twice.observe(h, state, action, reward, next_state, terminated)
            if not stationary:
                twice._planner.prepare(*(np.array([i == h for i in range(task.H)]) & x for x in (False, True, False)))
            twice._next = h
            twice.observe(h, state, action, reward, next_state, terminated)
            if terminated:
                break
            state = next_state
        for agent in (heavy, twice):
            agent.end_episode()
    for agent in (heavy, twice):
        agent.begin_episode()
    for h in range(task.H):
        for s in range(task.S or 0):
            np.testing.assert_allclose(heavy.q_values(h, s), twice.q_values(h, s), rtol=0, atol=1e-8)


@pytest.mark.parametrize("stationary", [False, True])
@many
@given(task=tasks(), common=common, run=runs, K=st.integers(1, 14))
def test_fixed_and_adaptive_with_centres_that_hold_all_are_themselves(
    stationary: bool, task: Task, common: dict[str, Any], run: dict[str, Any], K: int
) -> None:
    own: dict[str, Any] = {"rho": 0.6, "episodes": K, "stationary": stationary, **common}
    assert_same(LSVIUCBFixed(task, storage="centres", **own), LSVIUCBFixed(task, **own), task, **run)
    own |= {"m": 2, "tau": 0.05 * (1 + np.pi * 1e-5), "budget": 3}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", LinMDPWarning)
        pair = LSVIUCBAdaptive(task, storage="centres", **own), LSVIUCBAdaptive(task, **own)
    assert_same(*pair, task, **run)


def test_a_horizon_by_hand() -> None:
    one, shared, discounted = Horizon(3), Horizon(3, shared=True), Horizon(3, shared=True, discount=0.9)
    assert [(h.groups, h.levels, h.followed) for h in (one, shared, discounted)] == [(3, 3, 2), (1, 3, 1), (1, 1, 1)]
    assert Horizon(1, shared=True).followed == 0
    assert discounted.effective_steps == pytest.approx(1 + 0.9 + 0.81)


def test_single_precision_stays_close_to_the_reference() -> None:
    rng = np.random.default_rng(0)
    table = rng.dirichlet(np.ones(5), size=(6, 3))
    task = Task(S=6, A=3, d=5, H=4, reward_range=(0.0, 1.0), features=TableFeatures(table))
    for storage in STORAGES:
        fast = LSVIUCB(task, beta=0.3, lam=0.5, storage=storage, dtype="float32")
        slow = ReferenceLSVI(task, beta=0.3, lam=0.5, cap="remaining")
        source = RandomTask(task, 1, 0.0)
        for _ in range(60):
            fast.begin_episode()
            slow.begin_episode()
            state = source.reset()
            for h in range(task.H):
                np.testing.assert_allclose(fast.q_values(h, state), slow.q_values(h, state), atol=1e-4)
                next_state, reward, _ = source.step()
                for agent in (fast, slow):
                    agent.observe(h, state, int(state) % 3, reward, next_state, False)
                state = next_state
            fast.end_episode()
