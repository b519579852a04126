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
    "lsvi-ucb:storage=centres,beta=0.5,M=4",
    "lsvi-ucb:stationary=true",
)
MERGING = ("lsvi-ucb:storage=centres,beta=0.5,M=2,replan=0.1", "lsvi-ucb:storage=sparse,beta=0.5,M=17,replan=0.1")
"""Agents with too little space for all that follows."""
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


def certified(agent: Any, counts: np.ndarray) -> bool:
    """Plan anew: with a bounded storage no weight may be farther from that of all samples than the storage says.

    `counts` (H, S, A, S) has every transition.
    """
    if agent.certificate() is None:
        return True
    planner, (H, S, *_) = agent._planner, counts.shape
    every = np.ones(H, dtype=np.bool_)
    planner.prepare(every, ~every, every)
    planner.plan(every, whole=True)
    cells = np.array([agent.task.features.phi(s).argmax(axis=1) for s in range(S)])  # (S, A): phi are unit vectors
    for h in range(H - 1):
        V = np.array([agent.q_values(h + 1, s).max() for s in range(S)])
        samples, targets = (np.bincount(cells.ravel(), x.ravel()) for x in (counts[h].sum(axis=2), counts[h] @ V))
        inverse = 1 / (agent.lam_value + samples)
        off = np.abs(inverse * (planner.ridge.u[h] + targets) - planner.w[h])
        if not (off <= planner.storage.errors[h] * np.sqrt(inverse) + DRIFT).all():
            return False
    return True


def soak(agent_spec: str, episodes: int, what: str = "episodes") -> Row:
    """One agent for that many episodes; a failure is a look at which something was wrong."""
    env: Any = linmdp.make_env(ENV)
    agent: Any = linmdp.make_agent(agent_spec, env, episodes=episodes)
    agent.rng, failures, first = np.random.default_rng(0), 0, 0
    state, worst, task = env.reset(seed=0)[0], 0.0, env.task
    counts = np.zeros((task.H, task.S, task.A, task.S))
    for k in range(episodes):
        agent.begin_episode()
        state, _ = env.reset()
        for h in range(task.H):
            action = agent.act(h, state)
            following, reward, *_ = env.step(action)
            agent.observe(h, state, action, float(reward), following, False)
            counts[h, state, action, following] += 1
            state = following
        agent.end_episode()
        if (k + 1) % (episodes // LOOKS) == 0:
            first = first or agent.nbytes
            worst = max(worst, agent.drift() or 0.0)
            failures += not (healthy(agent) and agent.nbytes == first and certified(agent, counts))
    how = f"{agent_spec}, looked at {LOOKS} times: drift at most {worst:.0e}, {agent.nbytes:,} bytes throughout"
    return Row(f"{episodes:,} {what} leave numbers that are right", episodes, failures, how)


def rows(scale: float) -> Iterator[Row]:
    """For the table of promises."""
    for agent in AGENTS:
        yield soak(agent, max(10_000, round(1_000_000 * scale)))


def merging(scale: float) -> Iterator[Row]:
    """The same where memory is bounded, and what is kept is merged all the time."""
    for agent in MERGING:
        yield soak(agent, max(10_000, round(1_000_000 * scale)), "episodes of merging")


if __name__ == "__main__":
    began = time.monotonic()
    for found in (soak(agent, int((sys.argv[1:] or ["1000000"])[0])) for agent in (*AGENTS, *MERGING)):
        print(found.promise, found.trials, found.failures, found.how, f"{time.monotonic() - began:.0f} s", flush=True)
