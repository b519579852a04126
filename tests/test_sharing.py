"""Rewards that come later, and learners that share what they have seen."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import pytest

import linmdp
from linmdp.types import Transition

EXACT = ["ucbvi", "psrl", "ucbvi:stationary=true", "lsvi-ucb:beta=0.1,lam=1,storage=counts"]
ENV = "riverswim:H=8"


def logs(env: Any, episodes: int, seed: int) -> list[list[Transition]]:
    """Episodes of random play."""
    rng, found = np.random.default_rng(seed), list[list[Transition]]()
    for k in range(episodes):
        state, _ = env.reset(seed=1000 * seed + k)
        found.append([])
        for h in range(env.task.H):
            action = int(rng.integers(env.task.A))
            following, reward, ended, _, _ = env.step(action)
            found[-1].append(Transition(h, state, action, reward, following, ended))
            state = following
    return found


def taught(spec: str, env: Any, episodes: Sequence[Sequence[Transition]]) -> linmdp.Agent:
    agent = linmdp.make_agent(spec, env)
    for episode in episodes:
        agent.begin_episode()
        for step in episode:
            agent.observe(*step)
        agent.end_episode()
    return agent


@pytest.mark.parametrize("spec", EXACT)
@pytest.mark.parametrize("name", [ENV, "synthetic:S=12,A=3,d=5,H=4"])
def test_four_learners_merged_know_what_one_would_that_saw_it_all(spec: str, name: str) -> None:
    env: Any = linmdp.make_env(name)
    parts = [logs(env, 10 + i, seed=i) for i in range(4)]
    agents = [taught(spec, env, part) for part in parts]
    before = [agent.state_dict() for agent in agents]
    merged, one = linmdp.merge(agents), taught(spec, env, [e for part in parts for e in part])
    for mine, whole in zip(merged.summed(), one.summed(), strict=True):
        np.testing.assert_allclose(mine, whole, rtol=1e-12, atol=1e-12)
        if name == ENV and spec != EXACT[-1] and not np.any(whole % 1):
            np.testing.assert_array_equal(mine, whole)  # counts are whole numbers: nothing is rounded
    for agent, state in zip(agents, before, strict=True):
        np.testing.assert_equal(agent.state_dict(), state)  # they go on as if nothing had been
    if spec.startswith("lsvi"):
        merged.begin_episode()
        one.begin_episode()
        for h in range(env.task.H):
            np.testing.assert_allclose(merged.q_values(h, 1), one.q_values(h, 1), rtol=1e-9)
    again = linmdp.merge([agents[0]])
    for mine, whole in zip(again.summed(), agents[0].summed(), strict=True):
        np.testing.assert_allclose(mine, whole, rtol=1e-12)


@pytest.mark.parametrize("spec", EXACT)
def test_what_they_had_in_common_counts_once(spec: str) -> None:
    env: Any = linmdp.make_env(ENV)
    parts = [logs(env, 6, seed=i) for i in range(5)]
    common = taught(spec, env, parts[0])
    agents = list[linmdp.Agent]()
    for part in parts[1:]:
        agents.append(linmdp.make_agent(spec, env))
        agents[-1].load_state_dict(common.state_dict())
        for episode in part:
            agents[-1].begin_episode()
            for step in episode:
                agents[-1].observe(*step)
            agents[-1].end_episode()
    one = taught(spec, env, [e for part in parts for e in part])
    for mine, whole in zip(linmdp.merge(agents, since=common).summed(), one.summed(), strict=True):
        np.testing.assert_allclose(mine, whole, rtol=1e-12, atol=1e-12)


def test_four_learners_that_share_lose_less_than_four_that_do_not() -> None:
    def lost(share: bool) -> float:
        learners = [linmdp.Learner(ENV, "psrl", seed=seed) for seed in range(4)]
        last: linmdp.Agent | None = None
        for _ in range(15):
            for learner in learners:
                learner.learn(4)
            if share:
                last = linmdp.merge(learners, since=last)
                for learner in learners:
                    learner.take(last)
        return -sum(sum(learner.returns) for learner in learners)

    assert lost(share=True) < lost(share=False)


class Fleet(NamedTuple):
    """What four devices earned, how often each sent, and what the last merge knows."""

    earned: float
    sent: list[int]
    merged: linmdp.Agent


def fleet(spec: str, rule: str, episodes: int = 100) -> Fleet:
    """Four devices and one server, which never waits for anybody: a device sends, and takes what the server has then.

    `rule` is "always", "never" or "trigger".
    """
    devices = [linmdp.Learner(ENV, spec, seed=seed) for seed in range(4)]
    began: list[linmdp.Agent | None] = [None] * 4
    server: linmdp.Agent | None = None
    sent = [0] * 4
    for _ in range(episodes):
        for i, device in enumerate(devices):
            device.learn(1)
            if rule == "always" or (rule == "trigger" and linmdp.worth_sending(device, began[i])):
                server = linmdp.merge([device] if server is None else [server, device], since=began[i])
                device.take(server)
                began[i], sent[i] = server, sent[i] + 1
    return Fleet(sum(sum(device.returns) for device in devices), sent, server or devices[0].agent)


@pytest.mark.parametrize("spec", ["ucbvi", "psrl", EXACT[-1] + ",stationary=true"])
def test_four_devices_send_seldom_when_a_determinant_says_so_and_earn_nearly_what_sending_always_does(
    spec: str,
) -> None:
    always, trigger, never = (fleet(spec, rule) for rule in ("always", "trigger", "never"))
    assert always.sent == [100] * 4
    d, G = always.merged.task.d, len(always.merged.log_determinants())
    assert 0 < max(trigger.sent) <= G * d * np.log2(1 + 4 * 100 * 8 / G / d)
    assert sum(trigger.sent) < 0.5 * sum(always.sent)
    assert trigger.earned > never.earned + 0.8 * (always.earned - never.earned)


@pytest.mark.parametrize("spec", EXACT)
def test_what_is_worth_sending_has_doubled_a_determinant(spec: str) -> None:
    env: Any = linmdp.make_env(ENV)
    episodes = logs(env, 40, seed=0)
    some, rest = taught(spec, env, episodes[:20]), taught(spec, env, episodes)
    grown = rest.log_determinants() - some.log_determinants()
    state = rest.state_dict()
    assert linmdp.worth_sending(rest)
    assert not linmdp.worth_sending(some, since=some)
    first, last = (np.linalg.slogdet(grams(env, len(grown), part))[1] for part in (episodes[:20], episodes))
    direct = last - first
    np.testing.assert_allclose(grown, direct, rtol=1e-9)
    for eta in (0.999, 1.001):
        assert linmdp.worth_sending(rest, some, eta=float(np.exp(grown.max())) * eta) == (eta < 1)
    np.testing.assert_equal(rest.state_dict(), state)
    with pytest.raises(linmdp.InvalidParameter, match="'eta' parameter of worth_sending must be"):
        linmdp.worth_sending(rest, eta=1.0)
    with pytest.raises(linmdp.InvalidParameter, match="agent of worth_sending must keep sums that add"):
        linmdp.worth_sending(linmdp.make_agent("q-learning", env))


def grams(env: Any, G: int, episodes: Sequence[Sequence[Transition]]) -> np.ndarray:
    """I + the sum of phi phi' of each regression."""
    found = np.stack([np.eye(env.task.d)] * G)
    for step in (step for episode in episodes for step in episode):
        phi = env.task.features.phi(step.state)[step.action]
        found[step.h % G] += np.outer(phi, phi)
    return found


@pytest.mark.parametrize("spec", ["q-learning", "lsvi-ucb", "lsvi-ucb-fixed:beta=1,lam=1", "rlsvi", "auto", "ucrl2"])
def test_what_does_not_add_is_refused_in_one_line(spec: str) -> None:
    env = linmdp.make_env(ENV)
    with pytest.raises(linmdp.InvalidParameter, match="must keep sums that add: ucbvi, psrl, or lsvi-ucb") as found:
        linmdp.merge([linmdp.make_agent(spec, env, 10)] * 2)
    assert "\n" not in str(found.value)


def test_learners_that_are_not_alike_are_refused() -> None:
    env, other = linmdp.make_env(ENV), linmdp.make_env("riverswim:H=9")
    for odd in (linmdp.make_agent("psrl:prior=2", env), linmdp.make_agent("psrl", other)):
        with pytest.raises(linmdp.InvalidParameter, match="of one kind, with the same parameters"):
            linmdp.merge([linmdp.make_agent("psrl", env), odd])
    with pytest.raises(linmdp.InvalidParameter, match="'agents' parameter of merge must be one agent or more"):
        linmdp.merge([])


@pytest.mark.parametrize("spec", ["q-learning", "ucbvi", "lsvi-ucb", "lsvi-ucb:beta=0.1,lam=1"])
@pytest.mark.parametrize("late", [0, 1, 5])
def test_an_agent_that_is_paid_late_ends_where_one_ends_that_is_paid_at_once(spec: str, late: int) -> None:
    env: Any = linmdp.make_env(ENV)
    episodes = logs(env, 25, seed=1)
    at_once, waits = taught(spec, env, episodes), linmdp.Late(linmdp.make_agent(spec, env))
    owed = list[list[tuple[int, float]]]()
    for episode in episodes:
        waits.begin_episode()
        owed.append([])
        for h, state, action, reward, following, ended in episode:
            waits.act(h, state)
            owed[-1].append((waits.observe(h, state, action, following, ended), reward))
        waits.end_episode()
        if len(owed) > late:
            assert all(waits.pay(*each) for each in reversed(owed.pop(0)))
        assert waits.waiting <= (late + 1) * env.task.H
    for each in (each for some in owed for each in some):
        assert waits.pay(*each)
    waits.begin_episode()
    at_once.begin_episode()
    for h in range(env.task.H):
        np.testing.assert_allclose(waits.agent.q_values(h, 2), at_once.q_values(h, 2), rtol=1e-9)
    assert waits.waiting == 0


def test_the_queue_has_a_bound_and_a_ticket_is_paid_once() -> None:
    env: Any = linmdp.make_env(ENV)
    waits, tickets = linmdp.Late(linmdp.make_agent("ucbvi", env), most=20), list[int]()
    for episode in logs(env, 5, seed=0):
        waits.begin_episode()
        tickets += [waits.observe(s.h, s.state, s.action, s.next_state, s.terminated) for s in episode]
        waits.end_episode()
        assert waits.waiting <= 20
    assert tickets == list(range(40))
    assert waits.dropped == 3
    assert not waits.pay(0, 1.0)
    assert waits.pay(39, 1.0)
    assert not waits.pay(39, 1.0)
    with pytest.raises(linmdp.InvalidParameter, match="'ticket' parameter of pay must be one that observe"):
        waits.pay(40, 1.0)
    with pytest.raises(linmdp.InvalidParameter, match="'most' parameter of Late must be a whole number >= 8"):
        linmdp.Late(linmdp.make_agent("ucbvi", env), most=3)


def test_what_is_no_agent_is_refused_in_one_line() -> None:
    learner = linmdp.Learner("lock:H=4", "ucbvi")
    calls: list[tuple[str, Any]] = [
        ("merge", lambda: linmdp.merge(["x"])),
        ("worth_sending", lambda: linmdp.worth_sending("x")),
        ("Late", lambda: linmdp.Late("x")),  # type: ignore[arg-type]
        ("take", lambda: learner.take("x")),  # type: ignore[arg-type]
    ]
    for name, call in calls:
        with pytest.raises(
            linmdp.InvalidParameter, match=f"'agent' parameter of {name} must be an agent, or a learner"
        ):
            call()
