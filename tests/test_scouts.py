"""Scouts: a wide plan on the same data plays an episode now and then."""

from __future__ import annotations

import numpy as np
import pytest

import linmdp


@pytest.mark.parametrize("agent", ["lsvi-gp:every=3,budget=10,settled=1"])
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
