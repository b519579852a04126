"""When each algorithm learns and forgets, and what Adaptive keeps to decide it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import linmdp
from linmdp.agents.schedules.adaptive import AdaptiveIntervals, largest_tau
from linmdp.agents.schedules.base import SHORTEST, Power
from linmdp.agents.schedules.fixed import FixedPhases
from linmdp.features import TableFeatures
from linmdp.types import Array


@given(length=st.integers(2, 9), phases=st.integers(1, 4))
def test_fixed_resets_in_the_last_episode_of_each_phase(length: int, phases: int) -> None:
    schedule = FixedPhases(3, length)
    resets = [schedule.begin_episode().reset for _ in range(phases * length)]
    assert resets == ([False] * (length - 1) + [True]) * phases


def test_phase_length_is_floor_of_K_to_the_rho_and_at_least_2() -> None:
    env = linmdp.make_env("lock")
    for K, rho, expected in ((1000, 0.5, 31), (12_000, 0.75, 1146), (2, 0.1, 2), (100, 1.0, 100)):
        agent = linmdp.LSVIUCBFixed(env.task, rho=rho, episodes=K)
        assert agent.schedule.length == expected  # type: ignore[attr-defined]


@given(seed=st.integers(0, 100), m=st.integers(1, 6), d=st.integers(1, 5))
def test_the_window_of_vectors_measures_the_farthest_pair_of_inverses(seed: int, m: int, d: int) -> None:
    """LEARN from m d numbers equals the maximum over all pairs of m+1 explicit inverses."""
    rng = np.random.default_rng(seed)
    lam = 0.3
    schedule = AdaptiveIntervals(1, d, lam=lam, m=m, tau=0.0, budget=10**9, length=1e9, proxy="all")
    L: Array = lam * np.eye(d)
    inverses: list[Array] = [np.eye(d) / lam]
    for _ in range(m + 4):
        schedule.begin_episode()
        phi = rng.normal(size=d)
        schedule.watch(0, phi)
        schedule.end_episode()
        L = L + np.outer(phi, phi)
        inverses.append(np.linalg.inv(L))
    window = inverses[-(m + 1) :]
    farthest = max(float(np.linalg.norm(X - Y)) for X in window for Y in window)
    gram = schedule.window[0] @ schedule.window[0].T
    assert np.linalg.norm(gram) == pytest.approx(farthest, rel=1e-8)
    assert farthest <= largest_tau(m, d, lam)


def test_largest_tau_is_reached_in_the_limit() -> None:
    d, lam = 3, 0.5
    schedule = AdaptiveIntervals(1, d, lam=lam, m=d, tau=0.0, budget=99, length=99, proxy="all")
    for i in range(d):
        schedule.begin_episode()
        schedule.watch(0, 1e6 * np.eye(d)[i])
        schedule.end_episode()
    gram = schedule.window[0] @ schedule.window[0].T
    assert np.linalg.norm(gram) == pytest.approx(largest_tau(d, d, lam), rel=1e-6)


def test_the_lookback_at_512_dimensions_is_a_hundredth_of_the_published_history() -> None:
    """d=512, H=50, m=10: the paper reports m d^2 H numbers, 2 GiB counting its overhead."""
    d, H, m = 512, 50, 10
    short, long = (
        AdaptiveIntervals(H, d, lam=1.0, m=lookback, tau=0.1, budget=22, length=105, proxy="all").nbytes
        for lookback in (1, m + 1)
    )
    published = m * d * d * H * 8
    assert long - short == m * d * H * 8  # what a lookback of m costs
    assert (long - short) * 100 < published


def test_an_unreachable_threshold_is_said_in_words() -> None:
    task = linmdp.make_env("synthetic:S=20,A=3,d=30,H=3").task
    with pytest.warns(linmdp.LinMDPWarning, match="can never be reached"):
        linmdp.LSVIUCBAdaptive(task, tau_c=0.1, lam=0.1, m=10, episodes=100)


def test_adaptive_budget_is_an_exponent_or_a_count() -> None:
    task = linmdp.make_env("lock").task
    for budget, expected in ((0.5, 31), (1.0, 1000), (2, 2), (40, 40)):
        agent = linmdp.LSVIUCBAdaptive(task, budget=budget, episodes=1000)
        assert agent.schedule.budget == expected  # type: ignore[attr-defined]


def test_fixed_forgets_and_pays_again() -> None:
    """On the lock each phase has to find the code anew."""
    env = linmdp.make_env("lock:H=6,A=3")
    regret = {}
    for spec in ("lsvi-ucb:beta=1,lam=1", "lsvi-ucb-fixed:beta=1,lam=1,rho=0.7"):
        regret[spec] = linmdp.run(env, linmdp.make_agent(spec, env, episodes=1500), episodes=1500).final_regret
    exact, fixed = regret.values()
    assert exact is not None
    assert fixed is not None
    assert fixed > 3 * exact


def test_nothing_is_stored_in_a_reset_episode() -> None:
    features = TableFeatures(np.eye(2).reshape(1, 2, 2))
    task = linmdp.Task(S=1, A=2, d=2, H=1, reward_range=(0.0, 1.0), features=features)
    agent = linmdp.LSVIUCBFixed(task, rho=1.0, episodes=2, beta=0.5, lam=1.0, ties="first", storage="features")
    agent.begin_episode()
    agent.observe(0, 0, 1, 1.0, 0, False)
    agent.end_episode()
    old = agent.q_values(0, 0)
    agent.begin_episode()  # resets: the old Q acts, which was planned before the sample came
    np.testing.assert_array_equal(agent.q_values(0, 0), old)
    agent.observe(0, 0, 1, 1.0, 0, False)
    agent.end_episode()
    agent.begin_episode()  # from the empty set
    np.testing.assert_array_equal(agent.q_values(0, 0), [0.5, 0.5])
    assert agent.resets == 1


@pytest.mark.parametrize("rho", [0.5, 0.75, 1.0])
def test_where_k_is_not_known_it_is_doubled(rho: float) -> None:
    """A phase is never shorter than it would be if the run ended now, nor more than 2^rho times as long."""
    anytime = Power(rho, None, 2)
    for k in range(1, 3000):
        known = Power(rho, max(k, SHORTEST), 2).at(k)
        assert known <= anytime.at(k) <= 2**rho * (known + 1)


def test_phases_grow_where_k_is_not_known() -> None:
    schedule = FixedPhases(2, Power(0.5, None, 2))
    resets = [k for k in range(1, 2000) if schedule.begin_episode().reset]
    lengths = np.diff(resets)
    assert (np.diff(lengths) >= -1).all()
    assert lengths[-1] == 45  # floor(2048^0.5)
    assert schedule.most_samples(1999) == 44


@pytest.mark.filterwarnings("ignore::linmdp.LinMDPWarning")
@pytest.mark.parametrize("agent", ["lsvi-ucb-fixed", "lsvi-ucb-adaptive"])
def test_an_agent_that_does_not_know_k_loses_little(agent: str) -> None:
    env: Any = linmdp.make_env("synthetic:S=30,A=4,d=5,H=6,concentration=0.3")
    anytime = linmdp.make_agent(f"{agent}:beta=0.1", env)
    regret = linmdp.run(env, anytime, episodes=400, seed=0).regret
    assert regret is not None
    for K in (100, 200, 400):
        known = linmdp.run(env, linmdp.make_agent(f"{agent}:beta=0.1", env, episodes=K), episodes=K, seed=0)
        assert known.final_regret is not None
        assert regret[K - 1] <= 2 * known.final_regret
