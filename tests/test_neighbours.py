"""Published algorithms to be compared with: each step is its paper's, and each learns where that is easy."""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import linmdp
from linmdp.agents.greedy import Falling
from linmdp.agents.neighbours.base import Growth
from linmdp.agents.neighbours.forest import Forest
from linmdp.agents.neighbours.inputs import Inputs, RunningMoments
from linmdp.agents.neighbours.kbsf import FactoredModel
from linmdp.agents.neighbours.kernel_ucbvi import Visits
from linmdp.agents.neighbours.lspi import LSTDQ
from linmdp.agents.neighbours.network import Network
from linmdp.agents.neighbours.representatives import Representatives
from linmdp.types import Array
from reference_neighbours import ReferenceStreamQ, Sample, distance, reference_kbsf, reference_kernel_ucbvi

few = settings(max_examples=15, deadline=None)
seeds = st.integers(0, 2**32 - 1)
WALK = "gym:FrozenLake-v1,is_slippery=false"
"""Random play earns about 0.015."""


pytestmark = pytest.mark.filterwarnings("ignore::linmdp.LinMDPWarning")


def returns(env: str, agent: str, episodes: int, seed: int) -> Array:
    task = linmdp.make_env(env)
    return linmdp.run(task, linmdp.make_agent(agent, task, episodes=episodes), episodes=episodes, seed=seed).rewards


@few
@given(
    seed=seeds,
    decay=st.floats(0.0, 0.99),
    lr=st.floats(0.01, 2.0),
    kappa=st.floats(0.1, 3.0),
    hidden=st.integers(2, 5),
    size=st.integers(1, 4),
)
def test_steps_of_stream_q_are_those_of_its_paper(
    seed: int, decay: float, lr: float, kappa: float, hidden: int, size: int
) -> None:
    rng = np.random.default_rng(seed)
    net = Network(size, hidden, A := 3, np.float64)
    net.theta[:] = rng.normal(size=net.theta.shape)
    reference = ReferenceStreamQ(net.layers(net.theta))
    for _ in range(3):
        x, action, target = rng.normal(size=size), int(rng.integers(A)), float(rng.normal(scale=3.0))
        q, passed = net.forward(x[None])
        # gradients of the reference are differences over 2e-6, which err by about 1e-9
        np.testing.assert_allclose(q[0], reference.q(x), rtol=1e-6, atol=1e-6)
        net.accumulate(decay, passed, action)
        net.step(target - float(q[0, action]), lr, kappa)
        reference.learn(x, action, target, decay, lr, kappa)
        for mine, literal in zip(net.layers(net.trace), reference.traces, strict=True):
            np.testing.assert_allclose(mine, literal, rtol=1e-4, atol=1e-5)


@given(seed=seeds, hidden=st.integers(1, 40), size=st.integers(1, 30))
def test_at_first_nine_tenths_of_the_weights_into_a_unit_are_zero_and_none_has_no_input(
    seed: int, hidden: int, size: int
) -> None:
    net = Network(size, hidden, 2)
    net.initialise(np.random.default_rng(seed))
    W1, b1, W2, _, W3, _ = net.layers(net.theta)
    for W in (W1, W2, W3):
        assert ((W != 0).sum(axis=1) == W.shape[1] - int(0.9 * W.shape[1])).all()
        assert np.abs(W).max() <= 1 / np.sqrt(W.shape[1]) + 1e-6
    assert not b1.any()


@given(seed=seeds, n=st.integers(2, 30))
def test_moments_are_mean_and_variance(seed: int, n: int) -> None:
    X = np.random.default_rng(seed).normal(3.0, 2.0, (n, 4))
    moments = RunningMoments(4)
    for x in X:
        moments.add(x)
    np.testing.assert_allclose(moments.mean, X.mean(axis=0))
    np.testing.assert_allclose(moments.variance, X.var(axis=0, ddof=1))


def test_stream_q_learns_cartpole_within_60_episodes() -> None:
    runs = np.array([returns("gym:CartPole-v1", "stream-q", 60, seed) for seed in range(3)])
    assert runs[:, -15:].mean() > 2 * 22  # random play earns 22


def samples(rng: np.random.Generator, places: Array, n: int, A: int) -> list[Sample]:
    """Transitions between the places; some end there."""
    return [
        Sample(
            places[rng.integers(len(places))],
            int(rng.integers(A)),
            float(rng.normal()),
            None if rng.random() < 0.2 else places[rng.integers(len(places))],
        )
        for _ in range(n)
    ]


@few
@given(seed=seeds, m=st.integers(1, 5), tau=st.floats(0.3, 3.0), tau_bar=st.floats(0.3, 3.0), gamma=st.floats(0, 0.95))
def test_the_model_of_kbsf_is_the_product_of_its_factors(
    seed: int, m: int, tau: float, tau_bar: float, gamma: float
) -> None:
    rng, A = np.random.default_rng(seed), 2
    Z, data = rng.normal(size=(m, 2)), samples(rng, rng.normal(size=(20, 2)), 12, A)
    model = FactoredModel(m + 3, A)
    for some in (data[:5], data[5:]):  # in two lots
        for a in range(A):
            of = [s for s in some if s.action == a]
            K = np.array([[np.exp(-((distance(z, s.place) / tau) ** 2)) for s in of] for z in Z]).reshape(m, len(of))
            D = np.zeros((len(of), m))
            for n, s in enumerate(of):
                if s.following is not None:
                    weights = np.array([np.exp(-((distance(z, s.following) / tau_bar) ** 2)) for z in Z])
                    D[n] = weights / weights.sum()
            model.add(a, K, D, np.array([s.reward for s in of]))
    model.solve(m, gamma)
    literal = reference_kbsf(list(Z), data, A, tau, tau_bar, gamma)
    np.testing.assert_allclose(model.Q[:m], literal, atol=1e-4 * (1 + np.abs(literal).max()))
    assert not model.Q[m:].any()


def test_an_agent_of_kbsf_learns_the_model_of_its_transitions() -> None:
    rng, task = np.random.default_rng(3), linmdp.make_env("gym:CartPole-v1,H=9,features=fourier").task
    agent = linmdp.KBSF(task, M=6, tau=1.0, tau_bar=0.7, spacing=0.5, discount=0.8, replan=0.0)
    points = rng.normal(size=(10, 4))
    agent.begin_episode()
    for h in range(9):
        agent.observe(h, points[h], h % 2, float(h % 3) / 3, points[h + 1], h == 8)
    agent.end_episode()
    agent.begin_episode()
    seen, m = points[:9], agent._places.m
    scale = seen.std(axis=0, ddof=1) * 2  # of 4 coordinates
    Z = agent._places.Z[:m] / scale
    data = [
        Sample(points[h] / scale, h % 2, float(h % 3) / 3, None if h == 8 else points[h + 1] / scale) for h in range(9)
    ]
    assert m == 6
    Q = reference_kbsf(list(Z), data, 2, 1.0, 0.7, 0.8)
    np.testing.assert_allclose(agent._model.Q[:m], Q, rtol=1e-4, atol=1e-4)
    weights = np.array([np.exp(-((distance(z, points[0] / scale) / 0.7) ** 2)) for z in Z])
    np.testing.assert_allclose(agent.q_values(0, points[0]), weights / weights.sum() @ Q, rtol=1e-4, atol=1e-4)


@few
@given(
    seed=seeds,
    m=st.integers(1, 4),
    sigma=st.floats(0.2, 3.0),
    beta=st.floats(0.01, 1.0),
    c=st.floats(0.0, 1.0),
    top=st.floats(-1.0, 5.0),
)
def test_the_backup_of_kernel_ucbvi_is_that_of_its_paper(
    seed: int, m: int, sigma: float, beta: float, c: float, top: float
) -> None:
    rng, A, H = np.random.default_rng(seed), 2, 4
    Z, caps, span = rng.normal(size=(m, 2)), top * np.arange(H, 0, -1.0), 1.7
    data = samples(rng, Z, 9, A)
    visits = Visits(H, m + 2, A)
    for s in data:
        i = int((s.place == Z).all(axis=1).argmax())
        visits.N[s.action, i] += 1
        visits.R[s.action, i] += s.reward
        if s.following is not None:
            visits.C[s.action, i, (s.following == Z).all(axis=1).argmax()] += 1
    psi = np.array([[np.exp(-(distance(x, z) ** 2) / (2 * sigma**2)) for z in Z] for x in Z])
    visits.plan(psi, beta, c, span, caps)
    literal = reference_kernel_ucbvi(list(Z), data, A, sigma, beta, c, span, caps)
    np.testing.assert_allclose(visits.Q[:, :m], literal, rtol=1e-9, atol=1e-9)


def representatives(env: str, M: int, spacing: float) -> Representatives:
    task = linmdp.make_env(env).task
    return Representatives("x", task, Inputs("x", task, clock=False), M, spacing)


@given(seed=seeds, n=st.integers(2, 20), m=st.integers(1, 6))
def test_distances_are_in_units_of_deviations(seed: int, n: int, m: int) -> None:
    places, k = representatives("gym:CartPole-v1,H=9,features=fourier", m, 0.3), 4
    X = np.random.default_rng(seed).normal(5.0, 3.0, (n, k)).astype(np.float32)
    for x in X:
        places.seen.add(x)
    places.admit(X)
    scale = X.std(axis=0, ddof=1) * np.sqrt(k)
    expected = [[distance(x / scale, z / scale) ** 2 for z in places.Z[: places.m]] for x in X]
    np.testing.assert_allclose(places.squared(X), expected, rtol=1e-3, atol=1e-4)
    between = np.sqrt(places.squared(places.Z[: places.m]))
    assert (between[~np.eye(places.m, dtype=bool)] > 0.299).all()
    assert places.m == m or (np.sqrt(expected).min(axis=1) < 0.301).all()


def test_finite_states_are_the_same_or_far_apart() -> None:
    places = representatives("gym:FrozenLake-v1", 3, 0.2)
    places.admit(np.array([[4.0], [7.0], [4.0], [5.0], [9.0]]))
    assert places.Z[:, 0].tolist() == [4, 7, 5]
    assert (places.squared(np.array([[7.0]])) == [[1e6, 0, 1e6]]).all()


@given(seed=seeds, n=st.integers(1, 60), k=st.integers(1, 4), n_min=st.integers(2, 9))
def test_trees_split_until_nodes_are_small_or_constant(seed: int, n: int, k: int, n_min: int) -> None:
    rng = np.random.default_rng(seed)
    X, y = rng.integers(0, 5, (n, k)).astype(np.float32), rng.normal(size=n).round()
    forest = Forest(3, n, n_min)
    forest.grow(X, y, rng)
    for leaves in forest.leaves(X):
        for leaf in np.unique(leaves):
            inside = leaves == leaf
            assert forest.feature[leaf] == -1
            assert forest.value[leaf] == pytest.approx(y[inside].mean())
            same = (X[inside] == X[inside][0]).all() or (y[inside] == y[inside][0]).all()
            assert same or inside.sum() < n_min
    distinct = np.unique(X, axis=0, return_index=True)[1]
    exact = Forest(2, n, 2)
    exact.grow(X[distinct], y[distinct] + np.arange(len(distinct)) * np.pi, rng)
    np.testing.assert_allclose(exact.predict(X[distinct]), y[distinct] + np.arange(len(distinct)) * np.pi)


@given(seed=seeds, n=st.integers(2, 30), k=st.integers(1, 4))
def test_a_cut_takes_from_the_squared_error_what_it_says(seed: int, n: int, k: int) -> None:
    rng = np.random.default_rng(seed)
    X, y, starts = rng.normal(size=(2 * n, k)).astype(np.float32), rng.normal(3.0, size=2 * n), np.array([0, n])
    feature, cut, gain = Forest(1, 2 * n, 2)._cuts(X, y, starts, np.array([n, n]), rng)
    for node in range(2):
        inside, rows = y[node * n : (node + 1) * n], X[node * n : (node + 1) * n]
        right = rows[:, feature[node]] >= cut[node]
        assert 0 < right.sum() < n
        error = sum(((part - part.mean()) ** 2).sum() for part in (inside[right], inside[~right]))
        assert gain[node] == pytest.approx(((inside - inside.mean()) ** 2).sum() - error)


@few
@given(seed=seeds, d=st.integers(1, 5), gamma=st.floats(0.0, 0.99))
def test_lspi_solves_its_equations(seed: int, d: int, gamma: float) -> None:
    rng, equations = np.random.default_rng(seed), LSTDQ(d, 0.5)
    G, z = 0.5 * np.eye(d), np.zeros(d)
    for _ in range(8):
        phi, following, reward = rng.normal(size=d) * (rng.random(d) < 0.6), rng.normal(size=d), float(rng.normal())
        equations.add(phi, reward, gamma * following)
        G, z = G + np.outer(phi, phi - gamma * following), z + reward * phi
    equations.solve()
    np.testing.assert_allclose(G @ equations.w, z, atol=1e-6 * (1 + np.abs(equations.w).max()))


def test_best_constant_tries_each_action_and_then_plays_the_best() -> None:
    task = linmdp.make_env("gym:FrozenLake-v1").task
    agent, played = linmdp.BestConstant(task, rounds=2), []
    for _ in range(12):
        agent.begin_episode()
        played.append(agent.act(0, 0))
        agent.observe(0, 0, played[-1], [0.1, 0.2, 0.9, 0.3][played[-1]], 1, True)
        agent.end_episode()
    assert sorted(played[:8]) == [0, 0, 1, 1, 2, 2, 3, 3]
    assert played[8:] == [2, 2, 2, 2]


def test_random_actions_grow_rare() -> None:
    falling = Falling.checked("x", 0.05, 0.5, 40)
    assert [falling(k) for k in (0, 10, 20, 39)] == pytest.approx([1.0, 0.525, 0.05, 0.05])
    assert Falling.checked("x", 0.3, 0.0, None)(0) == 0.3


def test_steps_that_have_grown_by_a_fraction_are_due() -> None:
    growth, due = Growth("x", 0.5), []
    for _ in range(10):
        growth.steps += 1
        due.append(growth.due())
    assert np.flatnonzero(due).tolist() == [0, 1, 2, 4, 7]  # 1, 2, 3, 5, 8 steps


class Pairs(gymnasium.Env[Any, Any]):
    """Two whole numbers that are too many to be counted; action 1 pays."""

    observation_space = gymnasium.spaces.MultiDiscrete([2000, 2000])
    action_space = gymnasium.spaces.Discrete(2)

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)
        return np.array([3, 4]), {}

    def step(self, action: int) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        return self.np_random.integers(0, 5, 2), float(action), False, False, {}


@pytest.mark.parametrize("agent", ["stream-q", "fqi-trees", "kbsf", "kernel-ucbvi", "best-constant"])
def test_states_that_are_hashed_are_told_apart_by_their_bits(agent: str) -> None:
    env = linmdp.GymTask(Pairs(), H=5, features="hashed")
    result = linmdp.run(env, linmdp.make_agent(agent, env, episodes=30), episodes=30, seed=0)
    assert result.rewards[-5:].mean() > 3  # random play earns 2.5
    first, second = Inputs("x", env.task)(0, [5, 6])
    assert set(first) == {-1.0, 1.0}
    assert (first != second).sum() == 2


def test_lspi_refuses_what_it_cannot_solve() -> None:
    env = linmdp.GymTask(Pairs(), H=5, features="hashed")
    with pytest.raises(linmdp.InvalidParameter, match="d at most 4096"):
        linmdp.make_agent("lspi", env)


@pytest.mark.parametrize(
    ("agent", "words"),
    [
        ("stream-q:hidden=0", "'hidden' parameter of stream-q"),
        ("fqi-trees:n_min=1", "'n_min' parameter of fqi-trees"),
        ("lspi:discount=1.5", "'discount' parameter of lspi"),
        ("kbsf:M=0", "'M' parameter of kbsf"),
        ("kernel-ucbvi:beta=0", "'beta' parameter of kernel-ucbvi"),
        ("best-constant:rounds=0", "'rounds' parameter of best-constant"),
        ("lspi:epsilon=2", "'epsilon' parameter of lspi"),
        ("kbsf:replan=-1", "'replan' parameter of kbsf"),
    ],
)
def test_bad_parameters_are_refused_by_name(agent: str, words: str) -> None:
    with pytest.raises(linmdp.InvalidParameter, match=words):
        linmdp.make_agent(agent, linmdp.make_env(WALK))


@pytest.mark.parametrize("agent", ["lspi", "kbsf", "kernel-ucbvi", "fqi-trees"])
def test_each_learns_to_walk(agent: str) -> None:
    assert returns(WALK, agent, 200, seed=0)[-40:].mean() > 0.3


def test_kbsf_takes_a_transition_far_from_all_for_none() -> None:
    model = FactoredModel(2, 1)
    model.add(0, np.array([[1.0], [1e-320]]), np.array([[1.0, 0.0]]), np.array([1.0]))
    model.solve(2, 0.5)
    assert np.allclose(model.Q, [[2.0], [0.0]], atol=1e-4)
