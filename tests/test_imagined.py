"""Transitions that nobody has seen: what is imagined, where, and what that changes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from linmdp import LSVIUCB
from linmdp.agents.storage.imagined import KINDS, RIDGE, STATES, Imagined
from linmdp.features.basis import RandomFourier
from linmdp.features.scaling import Scaling
from linmdp.runner.diagnostics import Probe
from linmdp.types import Task

A, P, STEPS = 2, 6, 30


def made(**own: Any) -> Any:
    features = RandomFourier(A, Scaling(np.zeros(2), np.ones(2)), dim=P, bandwidth=0.7)
    task = Task(S=None, A=A, d=features.d, H=STEPS, reward_range=(0.0, 1.0), features=features, stationary=True)
    return LSVIUCB(task, **own)


def push(state: Any, action: int) -> Any:
    """Smooth: position and speed, and a force that depends on the position."""
    x, v = state
    v = v + 0.05 * (2 * action - 1) - 0.02 * np.sin(3 * x)
    return np.array([x + 0.1 * v, v])


def played(noise: float, episodes: int = 20, **own: Any) -> Any:
    """An agent after episodes of random play that end beyond 0.3."""
    agent, rng = made(**own), np.random.default_rng(0)
    agent.rng = np.random.default_rng(1)
    for _ in range(episodes):
        agent.begin_episode()
        state = rng.uniform(-0.2, 0.2, 2)
        for h in range(STEPS):
            action = int(rng.integers(A))
            following = push(state, action) + noise * rng.standard_normal(2)
            over = bool(abs(following[0]) > 0.3)
            agent.observe(h, state, action, float(following[1] > 0), following, over)
            if over:
                break
            state = following
        agent.end_episode()
    return agent


def drawn_kind(storage: Any) -> tuple[int, Any, np.random.Generator]:
    """The kind of the next planning, the factors of the weights, and what draws the states."""
    rng = np.random.default_rng(int(storage.sums[0].sum()))
    factor = rng.exponential(size=storage.count)
    return int(rng.integers(len(KINDS))), factor, rng


@pytest.mark.parametrize("kind", range(len(KINDS)))
def test_what_is_imagined_is_what_the_page_says(kind: int) -> None:
    """Against loops over the transitions, one after the other."""
    agent = played(0.0)
    while drawn_kind(agent._planner.storage)[0] != kind:  # one more sample, and others are drawn
        agent.begin_episode()
        agent.observe(0, np.array([0.1, 0.1]), 0, 0.0, push((0.1, 0.1), 0), False)
        agent.end_episode()
    assert type(agent._planner.storage) is Imagined
    storage: Any = agent._planner.storage
    assert storage.count > 200
    n, held, psi = storage.count, storage._make_held(0), storage.blocks.psi
    action, ended = storage.key[:n] // 2, storage.key[:n] % 2 == 1
    before, after = storage.ends[:n, 0], storage.ends[:n, 1]
    low, width = before.min(axis=0), np.ptp(before, axis=0)
    scaled = [(s - low) / width for s in before]
    finals = [(after[i] - low) / width for i in range(n) if ended[i]]
    factor, rng = drawn_kind(storage)[1:]
    share, weight = KINDS[kind]
    box = np.quantile(scaled, share, axis=0), np.quantile(scaled, 1 - share, axis=0)
    drawn = rng.uniform(*box, size=(STATES, 2))

    def over(x: Any) -> bool:
        nearest = min(((x - s) ** 2).sum() for s in finals)
        return bool(nearest < min(((x - s) ** 2).sum() for s in scaled))

    new = [x for x in drawn if not over(x)]
    assert new
    assert len(new) < STATES or kind  # there are ends near the border of the box
    assert len(held.times) == n + A * len(new)
    for a in range(A):
        mine = [i for i in range(n) if action[i] == a]
        F = np.array([[*psi(before[i][None])[0], *scaled[i]] for i in mine])
        Z = np.array([[*((after[i] - before[i]) / width), storage.sums[1, i]] for i in mine])
        W = np.linalg.solve(F.T @ F + RIDGE * np.eye(P + 2), F.T @ Z)
        rows = range(held.part[a].start + len(mine), held.part[a].stop)
        np.testing.assert_array_equal(held.times[held.part[a]][: len(mine)], factor[: len(mine)])
        factor = factor[len(mine) :]
        for row, x in list(zip(rows, new, strict=True))[:: len(new) // 40]:
            predicted = np.array([*psi((low + width * x)[None])[0], *x]) @ W
            np.testing.assert_allclose(held.X[row], psi((low + width * x)[None])[0], atol=1e-12)
            np.testing.assert_allclose(held.Y[row], psi((low + width * (x + predicted[:2]))[None])[0], atol=1e-6)
            assert held.times[row] == weight
            assert held.reward[row] == pytest.approx(min(max(predicted[2], -1.0), 0.0), abs=1e-6)
            assert held.ended[row] == over(x + predicted[:2])
            state = low + width * x
            np.testing.assert_allclose(low + width * (x + predicted[:2]), push(state, a), atol=0.02)


def test_samples_and_ends_that_were_seen_count_as_without_imagined_ones() -> None:
    storage = played(0.0)._planner.storage
    kind, factor, _ = drawn_kind(storage)
    real, held = storage._seen(0, factor), storage.hold(0)
    pairs = zip(real.part, held.part, strict=True)
    imagined = [np.arange(part.start + old.stop - old.start, part.stop) for old, part in pairs]
    outer = storage.gram(0)
    for a, rows in enumerate(imagined):
        outer[a] -= KINDS[kind][1] * held.X[rows].T @ held.X[rows]
    np.testing.assert_array_equal(held.final, real.final)
    storage._held = {0: real}
    np.testing.assert_allclose(outer, storage.gram(0), atol=1e-9)


def test_nothing_is_imagined_where_the_next_state_cannot_be_predicted() -> None:
    storage = played(0.1, episodes=60)._planner.storage
    assert storage.count > 200
    assert len(storage._make_held(0).times) == storage.count


def test_another_plan_is_tried_soon_after_one_that_fell_short() -> None:
    agent = played(0.0)
    agent.begin_episode()
    agent.end_episode()
    agent._urge = 1
    agent.begin_episode()
    storage, version = agent._planner.storage, agent.policy_version
    assert storage.imagined == storage.sums[0].sum()
    assert not storage.restless
    for h in range(STEPS):  # over 3% of the samples, and below 10%
        agent.observe(h, np.full(2, 0.01 * h / STEPS), h % A, 0.0, np.full(2, 0.01 * (h + 1) / STEPS), False)
    assert storage.imagined * 1.03 < storage.sums[0].sum() < storage.imagined * 1.1
    assert storage.restless
    agent.end_episode()
    agent.begin_episode()
    assert agent.policy_version == version + 1


@pytest.mark.parametrize("own", [{"max_bytes": "4 MiB"}, {"beta": 0.1, "lam": 0.1, "storage": "merged"}])
def test_nothing_is_imagined_within_bytes_or_with_a_width_that_was_given(own: dict[str, Any]) -> None:
    assert type(made(**own, episodes=20)._planner.storage) is not Imagined


def test_a_saved_agent_plans_the_same() -> None:
    agent, other = played(0.0), made()
    other.load_state_dict(agent.state_dict())
    for one in (agent, other):
        one._urge = 1
        one.begin_episode()
    assert len(agent._planner.storage._make_held(0).times) > agent._planner.storage.count
    np.testing.assert_array_equal(agent.q_values(0, np.zeros(2)), other.q_values(0, np.zeros(2)))


def test_values_at_the_cap_are_no_fault_where_no_episode_can_be_better() -> None:
    agent, found = made(), []
    for reward in (1.0, 0.0):  # always the best reward, then always the worst
        for _ in range(2):
            agent.rng = np.random.default_rng(0)
            agent.begin_episode()
            for h in range(STEPS):
                agent.observe(h, np.zeros(2), 0, reward, np.zeros(2), False)
            agent.end_episode()
        probe = Probe(made())  # knows nothing: all its values are at the cap
        probe.look(0, np.zeros(2), 0)
        probe._agent.content = agent.content
        found.append(any("largest possible" in words for words in probe.findings(10)))
    assert found == [False, True]
