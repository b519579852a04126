"""pytest-benchmark on the hot paths: `make bench-micro`. Compare runs with `--benchmark-compare`."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import linmdp
from linmdp.agents.ridge import Ridge
from linmdp.envs.planning import optimum
from linmdp.runner.batch import Job, run_unit

SYNTHETIC = "synthetic:S=500,A=15,d=30,H=50"


@pytest.fixture(scope="module")
def learner() -> Any:
    env = linmdp.make_env(SYNTHETIC)
    agent = linmdp.make_agent("lsvi-ucb:beta=0.05", env)
    linmdp.run(env, agent, episodes=20, eval_every=10)
    return agent


def test_planning_pass(benchmark: Any, learner: Any) -> None:
    benchmark(learner._planner.storage.sweep, 7, np.full(30, 1e-9))


def test_planning_an_episode(benchmark: Any, learner: Any) -> None:
    benchmark(learner.begin_episode)


def test_absorbing_a_sample_of_every_step(benchmark: Any) -> None:
    ridge, everywhere = Ridge(50, 30, 0.1), np.ones(50, dtype=np.bool_)
    ridge.pending[:] = 0.1

    def absorb() -> None:
        ridge.keep(ridge.pending)
        ridge.absorb(everywhere, whole=True)

    benchmark(absorb)


def test_exact_planning(benchmark: Any) -> None:
    env: Any = linmdp.make_env(SYNTHETIC)
    benchmark(optimum, env.model)


@pytest.mark.parametrize("runs", [1, 8])
def test_twenty_episodes(benchmark: Any, runs: int) -> None:
    jobs = [Job(SYNTHETIC, "lsvi-ucb:beta=0.05", 20, seed, 20) for seed in range(runs)]
    benchmark.pedantic(run_unit, args=(jobs,), rounds=3)
