"""Unit vectors and merged transitions: the same Q as the literal transcription, and what merging must not change."""

from __future__ import annotations

import dataclasses
import math
from typing import Any, cast

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import linmdp
from linmdp import LSVIUCB, InvalidParameter, LSVIUCBAdaptive, LSVIUCBFixed, TableFeatures, Task
from linmdp.agents import LSVIPHE, LSVIUCBRareSwitch
from linmdp.agents.memory.centres import Centres
from linmdp.agents.memory.links import Links
from linmdp.features import HashedFeatures, RandomFourier, Scaling, UnitFeatures
from linmdp.runner.measured import Probe
from reference import (
    ReferenceAdaptive,
    ReferenceEvidence,
    ReferenceFixed,
    ReferenceLSVI,
    ReferencePHE,
    ReferenceRareSwitch,
    ReferenceStationary,
)
from reference import Sample as ReferenceSample
from test_agents_against_reference import STORAGES, assert_same, common, many, runs, tasks


@st.composite
def unit_tasks(draw: st.DrawFn) -> Task:
    """Every state and action has a unit vector, and several may share one."""
    S, A, H, d = (draw(st.integers(1, n)) for n in (6, 4, 5, 12))
    index = np.random.default_rng(draw(st.integers(0, 2**16))).integers(d, size=(S, A))
    return Task(S=S, A=A, d=d, H=H, reward_range=(0.0, 1.0), features=TableFeatures(np.eye(d)[index]))


EXACT: dict[str, tuple[st.SearchStrategy[Task], Any]] = {
    **{storage: (tasks(), lambda task: None) for storage in STORAGES},
    "sparse": (unit_tasks(), lambda task: None),
    "sparse with M": (unit_tasks(), lambda task: 2 + task.H * task.d * ((task.S or 0) + 1)),
    "centres": (tasks(), lambda task: max(2, task.S or 0)),
}
"""Storages with their tasks, and the M with which nothing is lost."""


@pytest.mark.parametrize("name", EXACT)
@many
@given(data=st.data(), common=common, run=runs, stationary=st.booleans())
def test_with_space_for_all_it_is_algorithm_1(
    name: str, data: st.DataObject, common: dict[str, Any], run: dict[str, Any], stationary: bool
) -> None:
    """A stationary agent uses every sample at every step."""
    task, M = data.draw(EXACT[name][0]), EXACT[name][1]
    fast = LSVIUCB(task, storage=name.partition(" ")[0], M=M(task), stationary=stationary, **common)
    assert_same(fast, (ReferenceStationary if stationary else ReferenceLSVI)(task, **common), task, **run)
    assert M(task) is None or fast.certificate() == 0


@pytest.mark.parametrize("name", EXACT)
@many
@given(
    data=st.data(),
    run=runs,
    stationary=st.booleans(),
    ties=st.sampled_from(("first", "random")),
    rewards=st.sampled_from(((0.0, 1.0), (-2.0, 1.5), (-3.0, 1.0))),
)
def test_with_no_parameter_it_is_the_shortfall_regression_of_its_page(
    name: str, data: st.DataObject, run: dict[str, Any], stationary: bool, ties: str, rewards: tuple[float, float]
) -> None:
    """For rewards of any sign: those of the source are in [0, 1], and count from the best that the range allows."""
    task = dataclasses.replace(data.draw(EXACT[name][0]), reward_range=rewards)
    storage = "auto" if name == "sparse" else name.partition(" ")[0]
    fast = LSVIUCB(task, storage=storage, M=EXACT[name][1](task), stationary=stationary, replan=0, ties=ties)
    assert name != "sparse" or fast.chosen["storage"] == "sparse"
    assert_same(fast, ReferenceEvidence(task, stationary=stationary, ties=ties), task, **run, tolerance=1e-6)


@many
@given(task=unit_tasks(), common=common, run=runs, which=st.integers(0, 3))
def test_sparse_works_with_other_schedules_and_explorations(
    task: Task, common: dict[str, Any], run: dict[str, Any], which: int
) -> None:
    K = run["episodes"]
    eta = 2 * (1 + np.pi * 1e-6)  # away from determinants that occur exactly
    fast: Any = (
        lambda: LSVIUCBFixed(task, storage="sparse", rho=0.6, episodes=K, **common),
        lambda: LSVIUCBAdaptive(task, storage="sparse", rho=0.7, budget=5, m=2, tau_rel=0.02, episodes=K, **common),
        lambda: LSVIUCBRareSwitch(task, storage="sparse", eta=eta, **common),
        lambda: LSVIPHE(task, storage="sparse", draws=3, **common),
    )[which]()
    tau = np.sqrt(min(2, task.d)) / common["lam"] * 0.02
    slow: Any = (
        lambda: ReferenceFixed(task, K=K, rho=0.6, **common),
        lambda: ReferenceAdaptive(task, K=K, rho=0.7, budget=5, m=2, tau=tau, proxy="all", **common),
        lambda: ReferenceRareSwitch(task, eta=eta, **common),
        lambda: ReferencePHE(task, draws=3, **common),
    )[which]()
    assert_same(fast, slow, task, **run)


def play(agent: Any, task: Task, name_of: Any, episodes: int = 25, seed: int = 3) -> list[int]:
    """Random transitions between 7 states that the agent knows by other names; its actions."""
    rng, actions = np.random.default_rng(seed), []
    agent.rng = np.random.default_rng(seed)
    for _ in range(episodes):
        agent.begin_episode()
        state = int(rng.integers(7))
        for h in range(task.H):
            actions.append(agent.act(h, name_of(state)))
            following, over = int(rng.integers(7)), bool(rng.random() < 0.1)
            agent.observe(h, name_of(state), actions[-1], float(rng.integers(2)), name_of(following), over)
            state = following
            if over:
                break
        agent.end_episode()
    return actions


def unit_task(features: Any, S: int | None) -> Task:
    return Task(S=S, A=3, d=features.d, H=6, reward_range=(0.0, 1.0), features=features, stationary=True)


@pytest.mark.parametrize(
    "parameters", [{"discount": 1.0}, {"beta": 0.3}, {"stationary": False}, {"stationary": True, "discount": 0.9}]
)
def test_a_table_unit_vectors_and_hashed_states_are_the_same_to_a_learner(parameters: dict[str, Any]) -> None:
    table, unit, hashed = linmdp.features.one_hot(7, 3), UnitFeatures(7, 3), HashedFeatures(3)
    tasks = [unit_task(table, 7), unit_task(unit, 7), unit_task(hashed, None)]
    agents = [LSVIUCB(task, storage="sparse", **parameters) for task in tasks]
    names = [int, int, lambda s: 2**39 - 1000 * s]
    played = [play(agent, task, name) for agent, task, name in zip(agents, tasks, names, strict=True)]
    assert played[0] == played[1] == played[2]
    for s in range(7):
        expected = agents[0].q_values(2, s)
        np.testing.assert_allclose(agents[1].q_values(2, s), expected, atol=1e-12)
        np.testing.assert_allclose(agents[2].q_values(2, 2**39 - 1000 * s), expected, atol=1e-12)
    assert agents[2].nbytes < 100_000  # d is 3 * 2^40


@pytest.mark.parametrize("pay", [0.02, 0.6])
def test_a_discounted_q_is_a_fixed_point(pay: float) -> None:
    features, gamma, H, S, A = UnitFeatures(7, 3), 0.9, 30, 7, 3
    task = Task(S=S, A=A, d=features.d, H=H, reward_range=(-0.5, 1.0), features=features, stationary=True)
    agent, rng = LSVIUCB(task, discount=gamma, stationary=True, replan=0), np.random.default_rng(1)
    agent.rng, samples = np.random.default_rng(2), []
    for _ in range(8):
        agent.begin_episode()
        state = int(rng.integers(S))
        for h in range(H):
            action, following = agent.act(h, state), int(rng.integers(S))
            reward, over = float(rng.choice((1.0, -0.5, 0.0), p=(pay, 0.2, 0.8 - pay))), bool(rng.random() < 0.05)
            agent.observe(h, state, action, reward, following, over)
            samples.append((state, action, reward, following, over))
            state = following
            if over:
                break
        agent.end_episode()
    agent.begin_episode()
    cap = (1 - gamma**H) / (1 - gamma)
    low, lam, beta = -0.5 * cap, agent.lam_value, agent.beta_value
    Q = np.stack([agent.q_values(0, s) for s in range(S)])
    expected, visits = np.full((S, A), lam * cap), np.full((S, A), lam)  # lam imagined visits are worth the cap
    for state, action, reward, following, over in samples:
        expected[state, action] += reward + (0.0 if over else gamma * Q[following].max())
        visits[state, action] += 1
    expected = np.clip(expected / visits + beta / np.sqrt(visits), low, cap)
    np.testing.assert_allclose(Q, expected, atol=3e-3)  # the fixed point is found to 1e-4 of the cap


def test_states_without_a_bound_are_saved_and_go_on() -> None:
    features = HashedFeatures(3)
    task = unit_task(features, None)
    agent, other = LSVIUCB(task), LSVIUCB(task)
    play(agent, task, lambda s: 10**9 + s)
    play(other, task, lambda s: s, episodes=3, seed=4)  # another history, which must go
    other.load_state_dict(agent.state_dict())
    assert play(agent, task, lambda s: 10**9 + s, seed=5) == play(other, task, lambda s: 10**9 + s, seed=5)
    damaged = agent.state_dict()
    damaged["planner.storage.links"] = damaged["planner.storage.links"] + (1 << 60)
    before = other.q_values(0, 10**9).copy()
    with pytest.raises(linmdp.InvalidData, match="links"):
        other.load_state_dict(damaged)
    np.testing.assert_array_equal(other.q_values(0, 10**9), before)


def test_what_needs_a_vector_written_out_is_refused_for_hashed_states() -> None:
    task = unit_task(HashedFeatures(3), None)
    for storage in ("features", "states", "counts", "merged"):
        with pytest.raises(InvalidParameter, match="storage"):
            LSVIUCB(task, storage=storage, beta=0.1)
    with pytest.raises(InvalidParameter, match="storage"):
        LSVIUCB(unit_task(linmdp.features.one_hot(7, 3), 7), storage="merged")
    dense = TableFeatures(np.full((2, 3, 4), 0.5))
    with pytest.raises(InvalidParameter, match="unit vectors"):
        LSVIUCB(Task(S=2, A=3, d=4, H=2, reward_range=(0.0, 1.0), features=dense), storage="sparse")


@pytest.mark.parametrize("make", [LSVIPHE, LSVIUCBAdaptive, LSVIUCBRareSwitch])
def test_agents_that_need_vectors_say_so_before_they_allocate(make: Any) -> None:
    with pytest.raises(InvalidParameter, match="features that can be written out"):
        make(unit_task(HashedFeatures(3), None), beta=0.1)
    with pytest.raises(InvalidParameter, match="'lam' parameter of lsvi-ucb must be 'auto' where states have no bound"):
        LSVIUCB(unit_task(HashedFeatures(3), None), lam=0.1)


def test_a_limit_holds_for_states_without_a_bound() -> None:
    task = unit_task(HashedFeatures(3), None)
    assert "M" in LSVIUCB(task, max_bytes="2MiB").chosen  # nobody knows how many states will come
    agent = LSVIUCB(task, max_bytes="2MiB", episodes=25)
    play(agent, task, lambda s: 10**9 + s)
    assert "M" not in agent.chosen
    assert agent.nbytes <= agent.chosen["bytes"] <= 2 << 20


@given(st.lists(st.tuples(st.integers(0, 2**30), st.integers(0, 2**32 - 1)), max_size=300))
def test_links_count_what_came(pairs: list[tuple[int, int]]) -> None:
    links, expected = Links(), dict[tuple[int, int], float]()
    for i, pair in enumerate(pairs + pairs[::3]):
        links.add(*pair, 1.0, float(i))
        expected[pair] = expected.get(pair, 0.0) + 1.0
    rows, to, (times, _) = links.entries()
    found = {(int(r), int(t)): n for r, t, n in zip(rows, to, times, strict=True)}
    assert found == expected
    assert links.sums[1].sum() == sum(range(len(pairs + pairs[::3])))


# merged transitions


def waves(k: int = 2, A: int = 3, p: int = 5) -> RandomFourier:
    return RandomFourier(A, Scaling(np.zeros(k), np.ones(k)), dim=p, bandwidth=0.5)


class Dense:
    """Features of continuous states that have no blocks."""

    A, d, bound, nbytes = 3, 4, 1.0, 0

    def phi(self, state: Any) -> Any:
        return self.batch(np.asarray(state)[None])[0]

    def batch(self, states: Any) -> Any:
        x = np.asarray(states).reshape(len(states), -1)
        return np.cos(x[:, :1, None] * np.arange(1, 5) + np.arange(3)[None, :, None] + x[:, 1:2, None]) / 2


def continuous_task(features: Any, H: int = 5, rewards: tuple[float, float] = (0.0, 1.0)) -> Task:
    return Task(S=None, A=3, d=features.d, H=H, reward_range=rewards, features=features, stationary=True)


def assert_same_on_vectors(fast: Any, slow: Any, task: Task, episodes: int, seed: int, *, known: bool = False) -> None:
    rng = np.random.default_rng(seed)
    fast.rng, slow.rng = np.random.default_rng(seed), np.random.default_rng(seed)
    probes = rng.random((4, 2))
    for _ in range(episodes):
        fast.begin_episode()
        slow.begin_episode()
        for h in range(task.H):
            for s in probes:
                np.testing.assert_allclose(fast.q_values(h, s), slow.q_values(h, s), rtol=0, atol=1e-5)
        state = rng.random(2)
        for h in range(task.H):
            action, following = int(rng.integers(3)), rng.random(2)
            reward, over = float(rng.integers(3)) / 2, bool(rng.random() < 0.25)
            for agent in (fast, slow):
                agent.observe(h, state, action, reward, following, over)
            if known and over:  # Algorithm 1 with samples of the state in which the episode ended
                for x in task.features.phi(following):
                    slow.samples[h].append(ReferenceSample(x, 0.0, None))
            if over:
                break
            state = following
        fast.end_episode()
        slow.end_episode()


@pytest.mark.parametrize("features", [waves(), Dense()])
@pytest.mark.parametrize("stationary", [True, False])
@pytest.mark.parametrize("rewards", [(0.0, 1.0), (-2.0, 1.5)])
def test_merged_with_space_for_all_is_the_shortfall_regression(
    features: Any, stationary: bool, rewards: tuple[float, float]
) -> None:
    task = continuous_task(features, rewards=rewards)
    for seed in range(5):
        fast = LSVIUCB(task, stationary=stationary, replan=0)
        assert fast.chosen["storage"] == "merged"
        slow = ReferenceEvidence(task, stationary=stationary, absorbing=True)
        slow.fits = [(w, inverse, 0.0) for w, inverse, _ in slow.fits]
        assert_same_on_vectors(fast, slow, task, episodes=8, seed=seed)


@pytest.mark.parametrize("features", [waves(), Dense()])
def test_merged_with_a_given_width_is_algorithm_1_with_known_ends(features: Any) -> None:
    task = continuous_task(features)
    for seed in range(8):
        fast = LSVIUCB(task, storage="merged", beta=0.4, lam=0.3)
        slow = ReferenceLSVI(task, beta=0.4, lam=0.3, cap="remaining")
        assert_same_on_vectors(fast, slow, task, episodes=8, seed=seed, known=True)


@pytest.mark.parametrize("features", [waves(), Dense()])
def test_merging_keeps_real_transitions_their_number_and_their_rewards(features: Any) -> None:
    task, M = continuous_task(features, H=40), 50
    agent = LSVIUCB(task, storage="merged", M=M)
    agent.rng = np.random.default_rng(1)
    rng, seen, paid = np.random.default_rng(0), set[bytes](), 0.0
    for episode in range(30):
        agent.begin_episode()
        state = rng.random(2)
        for h in range(task.H):
            action, following, reward = agent.act(h, state), rng.random(2), float(rng.random())
            agent.observe(h, state, action, reward, following, h == 20 and episode % 2 == 0)
            seen.add(np.concatenate((state, following, [action])).tobytes())
            paid += reward - agent._exploration.offset
            state = following
            if h == 20 and episode % 2 == 0:
                break
        agent.end_episode()
        storage: Any = agent._planner.storage
        n = storage.count
        assert n <= M
        for i in range(n):
            kept = np.concatenate((*storage.ends[i], [storage.key[i] // 2 % task.A]))
            assert kept.tobytes() in seen
    steps = 15 * 40 + 15 * 21
    assert storage.sums[0, :n].sum() == pytest.approx(steps)
    assert storage.sums[0, :n] @ storage.sums[1, :n] == pytest.approx(paid)
    assert storage.radius > 0
    other = LSVIUCB(task, storage="merged", M=M)
    other.load_state_dict(agent.state_dict())
    np.testing.assert_array_equal(other.q_values(0, np.zeros(2)), agent.q_values(0, np.zeros(2)))
    assert agent.nbytes == other.nbytes


@many
@given(seed=st.integers(0, 2**16), dtype=st.sampled_from(["float16", "float32", "float64"]), even=st.booleans())
def test_looking_at_those_near_in_one_coordinate_finds_the_nearest_of_all(seed: int, dtype: str, even: bool) -> None:
    task = continuous_task(waves(), H=60)
    agents = [LSVIUCB(task, storage="merged", M=20) for _ in range(2)]
    near, literal = (cast(Any, agent._planner.storage) for agent in agents)
    literal._candidates = lambda _, key: np.flatnonzero((literal.key[: literal.count] == key) & (literal.radius > 0))
    rng = np.random.default_rng(seed)
    for agent in agents:
        agent.begin_episode()
    for h in range(task.H):
        ends = (rng.integers(4, size=(2, 2)) / 4 if even else rng.random((2, 2))).astype(dtype)  # even: many are tied
        action, reward, over = int(rng.integers(3)), float(rng.integers(2)), bool(rng.random() < 0.2)
        for agent in agents:
            agent.observe(h, ends[0], action, reward, ends[1], over)
    assert near.count == literal.count < task.H
    for name, value in literal.state_dict().items():
        np.testing.assert_array_equal(near.state_dict()[name], value)


def test_bytes_are_merged_as_the_same_numbers_are() -> None:
    """A difference of bytes wraps around, and one of numbers does not."""
    states = np.random.default_rng(0).integers(256, size=(200, 2), dtype=np.uint8)
    found = []
    for dtype in (np.uint8, np.float64):
        agent = LSVIUCB(continuous_task(waves(), H=20), storage="merged", M=30)
        agent.rng = np.random.default_rng(0)
        for k in range(9):
            agent.begin_episode()
            for h in range(20):
                state, following = states[20 * k + h].astype(dtype), states[20 * k + h + 1].astype(dtype)
                agent.observe(h, state, h % agent.task.A, 0.5, following, False)
            agent.end_episode()
        storage: Any = agent._planner.storage
        found.append((storage.ends[: storage.count].astype(np.float64), storage.sums[0, : storage.count]))
    for one, other in zip(*found, strict=True):
        np.testing.assert_array_equal(one, other)


def test_merging_needs_space_for_one_transition_of_each_step_and_action() -> None:
    task = continuous_task(waves(), H=6)
    least = math.ceil(2 * 6 * task.A / 0.9)
    with pytest.raises(linmdp.InvalidParameter, match=f"'M' parameter of lsvi-ucb must be .*{least}, "):
        LSVIUCB(task, storage="merged", stationary=False, M=least - 1)
    agent, rng = LSVIUCB(task, storage="merged", stationary=False, M=least), np.random.default_rng(0)
    for _ in range(40):
        agent.begin_episode()
        for h in range(task.H):
            agent.observe(h, rng.random(2), int(rng.integers(task.A)), 0.5, rng.random(2), bool(rng.integers(2)))
        agent.end_episode()
    storage: Any = agent._planner.storage
    assert 2 * 6 * task.A <= storage.count <= least
    assert storage.sums[0, : storage.count].sum() == 40 * 6


def test_a_state_that_is_not_finite_is_refused() -> None:
    task = continuous_task(waves())
    agent = LSVIUCB(task)
    agent.begin_episode()
    with pytest.raises(linmdp.InvalidData, match="finite"):
        agent.observe(0, np.array([0.1, np.nan]), 0, 0.0, np.zeros(2), False)


def test_looking_ahead_over_all_steps_is_planning_as_ever() -> None:
    env = linmdp.make_env("riverswim:H=12")
    results: list[Any] = [
        linmdp.run(env, linmdp.make_agent(f"lsvi-ucb{more}", env), episodes=30, seed=0).regret
        for more in ("", ":lookahead=12", ":lookahead=5")
    ]
    np.testing.assert_array_equal(results[0], results[1])
    assert not np.array_equal(results[0], results[2])
    agent: Any = linmdp.make_agent("lsvi-ucb:lookahead=5", env)
    linmdp.run(env, agent, episodes=30, seed=0)
    np.testing.assert_array_equal(agent.q_values(0, 1), agent.q_values(7, 1))
    assert (agent.q_values(7, 1) != agent.q_values(8, 1)).any()
    assert agent.caps.shape == (12,)
    with pytest.raises(InvalidParameter, match="lookahead"):
        linmdp.make_agent("lsvi-ucb:lookahead=5,stationary=false", env)


def test_an_old_storage_is_read_as_centres() -> None:
    env = linmdp.make_env("riverswim")
    with pytest.warns(linmdp.LinMDPWarning, match="'fold' is 'centres' now"):
        old: Any = linmdp.make_agent("lsvi-ucb:storage=fold,M=5", env)
    assert isinstance(old._planner.storage, Centres)


def test_memory_is_the_name_of_storage() -> None:
    env = linmdp.make_env("riverswim")
    names = {"table": "counts", "samples": "features", "centres": "centres", "states": "states"}
    for name, old in names.items():
        mine, theirs = (linmdp.make_agent(f"lsvi-ucb:{p},beta=0.1", env) for p in (f"memory={name}", f"storage={old}"))
        one, two = (linmdp.run(env, agent, episodes=10, seed=0) for agent in (mine, theirs))
        np.testing.assert_array_equal(one.rewards, two.rewards)
        assert mine.nbytes == theirs.nbytes
    assert linmdp.make_agent("lsvi-ucb:memory=table", env).chosen["storage"] == "sparse"  # type: ignore[attr-defined]
    with pytest.raises(InvalidParameter, match="'storage' parameter of lsvi-ucb must be left out where 'memory'"):
        linmdp.make_agent("lsvi-ucb:memory=counts,storage=counts", env)
    with pytest.raises(InvalidParameter, match="'memory' parameter of lsvi-ucb must be one of"):
        linmdp.make_agent("lsvi-ucb:memory=disk", env)


def test_an_old_name_of_the_learner_is_read() -> None:
    assert isinstance(linmdp.make_agent("lsvi-ucb-fold", linmdp.make_env("riverswim")), linmdp.Auto)


def test_values_at_the_cap_are_no_fault_where_no_episode_can_be_better() -> None:
    task, found = continuous_task(waves()), list[bool]()
    agent = LSVIUCB(task)
    for reward in (1.0, 0.0):  # always the best reward, then always the worst
        agent.begin_episode()
        for h in range(task.H):
            agent.observe(h, np.zeros(2), 0, reward, np.zeros(2), False)
        agent.end_episode()
        fresh = LSVIUCB(task)  # knows nothing: all its values are at the cap
        fresh.at_best = agent.at_best
        probe = Probe(fresh)
        probe.count(0, np.zeros(2), 0)
        found.append(any("largest possible" in words for words in probe.findings(10)))
    assert found == [False, True]
