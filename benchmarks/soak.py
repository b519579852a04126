"""Numbers that stay numbers: a million episodes, with drift, symmetry, definiteness and memory looked at on the way.

python benchmarks/soak.py [EPISODES]     default: 1,000,000; about ten minutes for each agent
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

sys.path.insert(0, str(Path(__file__).parent))

import numpy as np
from faults import Row

import linmdp

ENV = "riverswim:S=4,H=3"
AGENTS = (
    "lsvi-ucb:beta=0.5",
    "lsvi-ucb-fixed:beta=0.5,rho=0.6",
    "lsvi-ucb-fold:beta=0.5,M=4",
    "lsvi-ucb:stationary=true",
)
LOOKS = 50
DRIFT = 1e-6


def matrices(agent: Any) -> np.ndarray:
    """Every Lambda^-1 of an agent, (n, d, d)."""
    return np.asarray(agent._planner.ridge.Lambda_inv)


def healthy(agent: Any) -> bool:
    """Finite, symmetric to the last bit, positive definite, and the inverse of what it should be."""
    inverse = matrices(agent)
    return bool(
        np.isfinite(inverse).all()
        and (inverse == inverse.swapaxes(-1, -2)).all()
        and (np.linalg.eigvalsh(inverse) > 0).all()
        and (agent.drift() or 0.0) < DRIFT
    )


def soak(agent_spec: str, episodes: int) -> Row:
    """One agent for that many episodes; a failure is a look at which something was wrong."""
    env: Any = linmdp.make_env(ENV)
    agent: Any = linmdp.make_agent(agent_spec, env, episodes=episodes)
    agent.rng, failures, first = np.random.default_rng(0), 0, 0
    state, worst = env.reset(seed=0)[0], 0.0
    for k in range(episodes):
        agent.begin_episode()
        state, _ = env.reset()
        for h in range(env.task.H):
            action = agent.act(h, state)
            following, reward, *_ = env.step(action)
            agent.observe(h, state, action, float(reward), following, False)
            state = following
        agent.end_episode()
        if (k + 1) % (episodes // LOOKS) == 0:
            first = first or agent.nbytes
            worst = max(worst, agent.drift() or 0.0)
            failures += not (healthy(agent) and agent.nbytes == first)
    how = f"{agent_spec}, looked at {LOOKS} times: drift at most {worst:.0e}, {agent.nbytes:,} bytes throughout"
    return Row(f"{episodes:,} episodes leave numbers that are right", episodes, failures, how)


def rows(scale: float) -> Iterator[Row]:
    """For the table of promises."""
    for agent in AGENTS:
        yield soak(agent, max(10_000, round(1_000_000 * scale)))


if __name__ == "__main__":
    began = time.monotonic()
    for found in (soak(agent, int((sys.argv[1:] or ["1000000"])[0])) for agent in AGENTS):
        print(found.promise, found.trials, found.failures, found.how, f"{time.monotonic() - began:.0f} s", flush=True)
