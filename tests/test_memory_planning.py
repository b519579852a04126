"""What a learner holds, and what its planning takes on top: the two figures together are what Python allocates."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium import spaces

import linmdp
from linmdp.runner.loop import RunState


class Drawn(gym.Env[Any, int]):
    """Observations of a space, drawn afresh at each of H steps; some actions pay more than others."""

    def __init__(self, space: spaces.Space[Any], A: int, H: int = 30) -> None:
        self.observation_space, self.action_space, self.H = space, spaces.Discrete(A), H

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)
        self.observation_space.seed(seed)
        self._t = 0
        return self.observation_space.sample(), {}

    def step(self, action: int) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        self._t += 1
        reward = float(action % 3) * self.np_random.random()
        return self.observation_space.sample(), reward, self._t >= self.H, False, {}


TASKS: dict[str, tuple[Callable[[], Any], str, int]] = {
    "finite": (lambda: linmdp.make_env("synthetic:S=100,A=4,H=10"), "lsvi-gp", 40),
    "hashed": (lambda: linmdp.make_env(Drawn(spaces.MultiDiscrete([9] * 8), 3), features="hashed"), "auto", 8),
    "continuous": (lambda: linmdp.make_env("gym:CartPole-v1"), "auto", 10),
    "image": (lambda: linmdp.make_env(Drawn(spaces.Box(0, 255, (32, 32, 3), np.uint8), 3)), "auto", 6),
    "1,024 actions": (lambda: linmdp.make_env(Drawn(spaces.Box(-1, 1, (3,), np.float32), 1024)), "auto:features=8", 2),
    "2,000 steps": (lambda: linmdp.make_env(Drawn(spaces.Discrete(40), 2, 2000), H=2000), "lsvi-gp", 2),
}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", TASKS)
def test_held_and_planning_are_what_python_allocates(name: str) -> None:
    task, spec, episodes = TASKS[name]
    env = task()
    for other, first in ((env, "random"), (linmdp.make_env("lock:H=4"), "lsvi-gp")):  # imports, and what is made once
        linmdp.run(other, linmdp.make_agent(first, other), episodes=2, verdict=False)
    tracemalloc.start()
    try:
        agent = linmdp.make_agent(spec, env)
        state = RunState(env, agent, episodes=episodes, seed=0, eval_every=episodes, name=None)
        before = tracemalloc.get_traced_memory()[0] - agent.nbytes
        tracemalloc.reset_peak()
        for _ in range(episodes):
            state.episode()
        seen = tracemalloc.get_traced_memory()[1] - before
    finally:
        tracemalloc.stop()
    found = state.result()
    print(
        name,
        agent.task.S,
        agent.task.H,
        agent.task.state_bytes,
        found.agent_bytes,
        found.planning_bytes,
        (found.agent_bytes + found.planning_bytes) / seen,
        seen,
    )
    assert found.planning_bytes is not None
    assert abs(found.agent_bytes + found.planning_bytes - seen) <= max(0.1 * seen, 64 << 10)
