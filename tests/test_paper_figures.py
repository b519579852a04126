"""The figures that the paper's program was measured at, and those of the setting where LSVI-UCB learns.

Long runs: `pytest -m slow tests/test_paper_figures.py` (about 5 minutes on 2 cores).
"""

from __future__ import annotations

import numpy as np
import pytest

from linmdp.runner.batch import jobs_for, run_jobs


def mean_regret(env: str, agent: str) -> float:
    results = run_jobs(jobs_for(env, [agent], episodes=1500, seeds=5))
    return float(np.mean([result.final_regret for result in results]))


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(5))
def test_published_setting_has_the_published_regret(seed: int) -> None:
    """Published: 679 +- 20 over 20 runs."""
    assert 650 <= mean_regret(f"synthetic:seed={seed}", "lsvi-ucb:beta=published,lam=0.1,cap=H") <= 720


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(5))
def test_a_smaller_beta_learns(seed: int) -> None:
    assert mean_regret(f"synthetic:seed={seed}", "lsvi-ucb:beta=0.05,lam=0.1") <= 500


def test_the_order_of_the_agents_at_a_glance() -> None:
    """A short run of the same: LSVI-UCB learns, a random policy loses 0.535 an episode."""
    agents = ["lsvi-ucb:beta=0.05,lam=0.1", "lsvi-ucb-fixed:beta=0.05,lam=0.1", "random", "optimal"]
    results = run_jobs(jobs_for("synthetic", agents, episodes=300, seeds=1, eval_every=5))
    exact, fixed, random, optimal = (result.final_regret or 0.0 for result in results)
    assert random == pytest.approx(0.535 * 300, rel=0.01)
    assert optimal == pytest.approx(0.0, abs=1e-6)
    assert exact < fixed < random
