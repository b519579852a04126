"""Published algorithms to be compared with: each step is its paper's, and each learns where that is easy."""

from __future__ import annotations

import warnings
from collections.abc import Iterator

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import linmdp
from linmdp.agents.neighbours.inputs import Moments
from linmdp.agents.neighbours.network import Network
from linmdp.types import Array
from reference_neighbours import ReferenceStreamQ

few = settings(max_examples=15, deadline=None)
seeds = st.integers(0, 2**32 - 1)
WALK = "gym:FrozenLake-v1,is_slippery=false"
"""Random play earns about 0.015."""


@pytest.fixture(autouse=True)
def quiet() -> Iterator[None]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", linmdp.LinMDPWarning)
        yield


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
        np.testing.assert_allclose(q[0], reference.q(x), rtol=1e-9, atol=1e-9)
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
    moments = Moments(4)
    for x in X:
        moments.add(x)
    np.testing.assert_allclose(moments.mean, X.mean(axis=0))
    np.testing.assert_allclose(moments.variance, X.var(axis=0, ddof=1))


def test_stream_q_learns_cartpole_within_60_episodes() -> None:
    runs = np.array([returns("gym:CartPole-v1", "stream-q", 60, seed) for seed in range(3)])
    assert runs[:, -15:].mean() > 2 * 22  # random play earns 22
