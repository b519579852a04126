"""Scouts: a wide plan on the same data plays an episode now and then."""

from __future__ import annotations

import numpy as np
import pytest

import linmdp
from linmdp.types import Transition


@pytest.mark.parametrize("agent", ["lsvi-gp:every=3,budget=10,settled=1", "lsvi-ucb-scouts:budget=5,settled=1"])
def test_a_policy_that_changes_says_so(agent: str) -> None:
    env = linmdp.make_env("riverswim:H=6")
    made, seen = linmdp.make_agent(agent, env), dict[int, np.ndarray]()
    made.rng = np.random.default_rng(0)
    for k in range(40):
        made.begin_episode()
        state, _ = env.reset(seed=1 if k == 0 else None)
        for h in range(env.task.H):
            if h == 0:
                policy = np.asarray(made.policy(h))
                np.testing.assert_array_equal(seen.setdefault(made.policy_version, policy), policy)
            action = made.act(h, state)
            after, reward, terminated, _, _ = env.step(action)
            made.observe(h, state, action, float(reward), after, terminated)
            state = after
        made.end_episode()


def value_of_the_start(masked: bool) -> float:
    """After 40 days of a walk past a shop, whose second door is locked and has never been tried."""
    agent = linmdp.make_agent("lsvi-gp:scout=0", linmdp.make_env("lock:H=2,A=2"))
    agent.rng = rng = np.random.default_rng(0)
    locked, free = np.array([True, False]), np.array([True, True])
    for _ in range(40):
        agent.begin_episode()
        agent.act_within(0, 0, free)
        agent.observe_within(Transition(0, 0, 0, 0.0, 1, False), locked if masked else free)
        agent.act_within(1, 1, locked if masked else free)
        agent.observe_within(Transition(1, 1, 0, float(rng.random() < 0.3), 2, False), free)
        agent.end_episode()
    return float(agent.q_values(0, 0)[0])


def test_what_a_mask_forbids_counts_for_nothing_in_targets() -> None:
    """The door that was never tried may be as good as the best day; where it is locked, the other is all there is."""
    assert value_of_the_start(masked=False) > 0.95
    assert value_of_the_start(masked=True) < 0.85
