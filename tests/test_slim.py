"""Merged transitions in little memory: the same plans, and no more bytes than were promised."""

from __future__ import annotations

import gc
import subprocess
import sys
import tracemalloc
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import linmdp
from linmdp.agents.afresh import InPlace
from linmdp.agents.storage import choice
from linmdp.agents.storage.base import Sample
from linmdp.agents.storage.forms import PER_FEATURE
from linmdp.agents.storage.imagined_slim import ImaginedSlim
from linmdp.agents.storage.merged import Merged
from linmdp.agents.storage.packed import packed, unpacked
from linmdp.agents.storage.slim import Slim
from linmdp.agents.symmetric import add_outer, shape_of_half
from linmdp.features.basis import RandomFourier
from linmdp.features.scaling import Scaling
from linmdp.types import Task

A, K, STEPS = 3, 2, 12
OBJECTS = 32 << 10
"""Python's own objects, the environment's among them."""


def task_of(p: int) -> Task:
    features = RandomFourier(A, Scaling(np.zeros(K), np.ones(K)), dim=20, bandwidth=0.7).fewer(p)
    return Task(
        S=None, A=A, d=features.d, H=STEPS, reward_range=(0.0, 1.0), features=features, stationary=True, state_bytes=16
    )


def exact(rng: np.random.Generator) -> Any:
    """A state whose difference from any other has few digits: nothing is rounded."""
    return (rng.integers(1024, size=K) / 1024).astype(np.float32)


class Unimagined(Slim):
    """Without imagined states, whatever there is space for."""

    def __init__(self, *given: Any, states: int = 0, **own: Any) -> None:
        super().__init__(*given, **own)


@pytest.mark.parametrize(
    ("own", "tolerance"),
    [
        ({"beta": 0.0, "lam": 0.1, "stationary": True, "discount": 0.9}, 1e-4),  # rewards are 16 bits
        ({"beta": 0.0, "lam": 0.1, "stationary": False}, 1e-4),
        ({"lam": 0.1, "stationary": True}, 0.02),  # and the bonus eight
        ({}, 0.02),
    ],
)
def test_plans_are_those_of_merged_transitions(
    own: dict[str, Any], tolerance: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(choice, "Imagined", Merged)
    monkeypatch.setattr(choice, "ImaginedSlim", Unimagined)
    task, rng = task_of(8), np.random.default_rng(0)
    agents: list[Any] = [
        linmdp.LSVIUCB(task, storage="merged", M=100, ties="first", max_bytes=limit, **own) for limit in (None, 80_000)
    ]
    assert type(agents[0]._planner.storage) is Merged
    assert isinstance(agents[1]._planner.storage, Slim)
    for _ in range(30):
        for agent in agents:
            agent.begin_episode()
        state = exact(rng)
        for h in range(STEPS):
            one, two = (agent.q_values(h, state) for agent in agents)
            np.testing.assert_allclose(one, two, rtol=tolerance, atol=tolerance)
            action, reward, following, over = int(rng.integers(A)), float(rng.random()), exact(rng), rng.random() < 0.1
            for agent in agents:
                agent.observe(h, state, action, reward, following, bool(over))
            if over:
                break
            state = following
        for agent in agents:
            agent.end_episode()
    merged, slim = (agent._planner.storage for agent in agents)
    assert 0 < float(merged.radius) == pytest.approx(float(slim.radius))
    assert merged.count == slim.count
    np.testing.assert_allclose(slim.sums[0, : slim.count], merged.sums[0, : slim.count], rtol=1e-5)
    np.testing.assert_allclose(slim.reward[: slim.count] * slim.paid, merged.sums[1, : slim.count], atol=1e-3)
    agents[1]._urge = 1
    agents[1].begin_episode()
    ridge = agents[1]._planner.ridge
    before = ridge.halves[:, :-1].copy()
    assert 0 < agents[1].drift() < 1e-4
    np.testing.assert_array_equal(before, ridge.halves[:, :-1])
    ridge.halves[0, 0, 0] += 0.1
    assert agents[1].drift() > 1e-3


@given(st.integers(0, 10_000), st.integers(-2, 2))
def test_where_transitions_began_is_known_to_a_fraction_of_what_was_seen(seed: int, power: int) -> None:
    rng = np.random.default_rng(seed)
    agent: Any = linmdp.LSVIUCB(task_of(8), storage="merged", M=100, max_bytes=80_000)
    storage = agent._planner.storage
    states = 10.0**power * rng.standard_normal((60, K)) * np.exp(rng.normal(size=(60, 1)))  # the farthest come late
    states = states[np.argsort(np.abs(states).max(axis=1))]
    for begin, after in pairwise(states):
        storage.add(0, Sample(np.zeros(8), begin, 0, after, False, reward=0.0))
    farthest = np.abs(states - states[0]).max(axis=0)
    assert storage.count == 59
    begin, after = storage.between(slice(0, 59))
    assert (np.abs(begin - states[:-1]) <= farthest / 2**10).all()
    largest = np.abs(after - begin).max(axis=0)
    assert (np.abs(after - states[1:]) <= (farthest + largest) / 2**10).all()


@given(st.integers(0, 10_000))
def test_numbers_of_twelve_bits_are_what_they_were(seed: int) -> None:
    numbers = np.random.default_rng(seed).integers(-(2**11), 2**11, (7, 2, K))
    assert packed(numbers).shape == (7, 3, K)
    np.testing.assert_array_equal(unpacked(packed(numbers)), numbers)


def test_a_fit_in_single_precision_is_that_in_double_where_it_starts_near() -> None:
    rng, p, lam = np.random.default_rng(0), 40, 1e-5
    rows = rng.standard_normal((300, p)) * np.logspace(0, -4, p)  # a condition of 1e7
    Lambda, y = rows.T @ rows + lam * np.eye(p), rng.standard_normal(300)
    ridge = InPlace(1, p, lam, 1)

    def gram(g: int, a: int, out: Any) -> None:
        out[:] = 0.0
        add_outer(out, rows)

    ridge.ready, ridge.gram = (lambda g, scratch: None), gram
    ridge.refactor(np.ones(1, dtype=np.bool_), lambda g: None)
    exact = np.linalg.solve(Lambda, rows.T @ y)
    start = exact * (1 + 0.01 * rng.standard_normal(p))
    far, ridge.near = ridge.fit(0, rows.T @ y), (start, Lambda @ start)
    near = ridge.fit(0, rows.T @ y)
    off = [np.linalg.norm(rows @ (w - exact)) / np.linalg.norm(rows @ exact) for w in (far, start, near)]
    assert off[0] < 1e-3
    assert off[2] < 1e-3 * off[1]
    rss = float(((y - rows @ exact) ** 2).sum())
    assert y @ y - near @ (rows.T @ y) - ridge.penalty(near) == pytest.approx(rss, rel=1e-6)
    assert ridge.dof()[0] == pytest.approx(p - lam * np.trace(np.linalg.inv(Lambda)), rel=1e-3)
    np.testing.assert_allclose(ridge.inverse(0)[0], np.linalg.inv(Lambda), rtol=1e-2, atol=1e-2)


def test_all_features_in_single_precision_are_those_of_the_map() -> None:
    whole = RandomFourier(A, Scaling(np.zeros(K), np.ones(K)), dim=20, bandwidth=0.7)
    states = np.random.default_rng(0).random((5, K))
    np.testing.assert_allclose(whole.fewer(20).psi(states), whole.psi(states), atol=1e-6)


def test_fewer_features_are_the_first_of_the_map() -> None:
    whole = RandomFourier(A, Scaling(np.zeros(K), np.ones(K)), dim=20, bandwidth=0.7)
    states = np.random.default_rng(0).random((5, K))
    np.testing.assert_allclose(whole.fewer(12).psi(states) * (12 / 20) ** 0.5, whole.psi(states)[:, :12], atol=1e-6)


def played(env: Any, agent: Any, episodes: int) -> None:
    rng = np.random.default_rng(0)
    for k in range(episodes):
        state, _ = env.reset(seed=k)
        agent.begin_episode()
        for h in range(agent.task.H):
            action = agent.act(h, state) if rng.random() < 0.7 else int(rng.integers(agent.task.A))
            following, reward, over, cut, _ = env.step(action)
            agent.observe(h, state, action, reward, following, over)
            if over or cut:
                break
            state = following
        agent.end_episode()


def traced(spec: str) -> tuple[int, int, int]:
    """The most bytes at once while an agent plays, those that it promised, and those that it owns in the end."""
    env = linmdp.make_env(spec)
    settings = "lsvi-ucb:storage=merged,M=300,max_bytes=256KiB"
    played(env, linmdp.make_agent(settings, env), 2)  # whatever is loaded or cached once
    np.quantile(np.arange(9.0), (0.1, 0.9))
    gc.collect()
    tracemalloc.start()
    agent: Any = linmdp.make_agent(settings, env)
    agent.rng = np.random.default_rng(1)
    gc.collect()  # what was of use while it was made
    played(env, agent, 14)
    assert agent._planner.storage.radius > 0  # some were merged
    return tracemalloc.get_traced_memory()[1], agent.chosen["bytes"], agent.nbytes


@pytest.mark.parametrize("spec", ["gym:CartPole-v1,H=60", "gym:MountainCar-v0,H=60", "gym:Acrobot-v1,H=40"])
def test_max_bytes_is_kept_with_the_features_of_the_environment(spec: str) -> None:
    code = f"from test_slim import traced; print(*traced({spec!r}))"  # alone: threads of other tests count, too
    done = subprocess.run([sys.executable, "-c", code], cwd=Path(__file__).parent, capture_output=True, check=True)
    peak, promised, owned = map(int, done.stdout.split())
    assert peak <= promised + OBJECTS
    assert owned <= promised <= 256 << 10


def test_fewer_features_are_said() -> None:
    env = linmdp.make_env("gym:CartPole-v1,H=50")
    agent: Any = linmdp.make_agent("lsvi-ucb-fold:max_bytes=128KiB", env)
    p = agent.task.d // 2
    assert 16 <= p < 100 == env.task.d // 2
    assert f"{p} features for each action in place of 100" in agent.chosen["reason"]
    assert agent.chosen["M"] >= PER_FEATURE * p


def test_what_is_said_to_fit_does() -> None:
    env = linmdp.make_env("gym:CartPole-v1,H=50")
    with pytest.raises(linmdp.InvalidParameter, match="must be at least") as refusal:
        linmdp.make_agent("lsvi-ucb-fold:max_bytes=1000", env)
    least = str(refusal.value).split("at least ")[1].split()[0]
    agent: Any = linmdp.make_agent(f"lsvi-ucb-fold:max_bytes={least}", env)
    assert agent.chosen["bytes"] == int(least)


def smooth(state: Any, action: int) -> Any:
    x, v = state
    v = v + 0.05 * (action - 1) - 0.02 * np.sin(3 * x)
    return np.array([x + 0.1 * v, v])


def after_play(noise: float, limit: Any) -> Any:
    """An agent after episodes of random play that end beyond 0.3."""
    agent, rng = linmdp.LSVIUCB(task_of(12), max_bytes=limit), np.random.default_rng(0)
    agent.rng = np.random.default_rng(1)
    for _ in range(80):
        agent.begin_episode()
        state = rng.uniform(-0.2, 0.2, 2)
        for h in range(STEPS):
            action = int(rng.integers(A))
            following = smooth(state, action) + noise * rng.standard_normal(2)
            over = bool(abs(following[0]) > 0.3)
            agent.observe(h, state, action, float(following[1] > 0), following, over)
            if over:
                break
            state = following
        agent.end_episode()
    return agent


def test_imagined_transitions_are_near_the_true_ones() -> None:
    storage: Any = after_play(0.0, "160KiB")._planner.storage
    assert type(storage) is ImaginedSlim
    storage.ready(0, np.zeros(shape_of_half(12)))
    scene: Any = storage._scene
    before = scene.box.outside(scene.x.astype(float))
    for a in range(A):
        after = scene.box.outside(scene.x.astype(float) + scene.change[a])
        off = after - np.array([smooth(state, a) for state in before])
        assert np.abs(off).max() < 0.02
    chunks = list(storage._chunks(0))
    real = sum(len(chunk.times) for chunk in chunks if chunk.times[0] != scene.weight)
    assert real == storage.count
    assert sum(len(chunk.times) for chunk in chunks) == storage._planned == real + A * len(scene.x)


def test_nothing_is_imagined_where_the_next_state_cannot_be_predicted() -> None:
    storage: Any = after_play(0.1, "160KiB")._planner.storage
    storage.ready(0, np.zeros(shape_of_half(12)))
    assert storage.count > 200
    assert storage._scene is None
    assert storage.imagined == 0


def test_a_saved_agent_goes_on_as_before(tmp_path: Any) -> None:
    one: Any = after_play(0.0, "160KiB")
    two: Any = linmdp.LSVIUCB(task_of(12), max_bytes="160KiB")
    two.load_state_dict(one.state_dict())
    for agent in (one, two):
        agent._urge = 1
        agent.begin_episode()
    state = np.array([0.1, 0.0])
    np.testing.assert_array_equal(one.q_values(0, state), two.q_values(0, state))
