"""What a log is worth to a learner, and for the value of a policy: benchmarks/warm_start.py in short."""

from __future__ import annotations

import numpy as np
import pytest
from warm_start import TASKS, offline, regret

FOUR = [task for task in TASKS if task not in ("lock", "hypercube")]


@pytest.mark.parametrize("task", FOUR)
def test_fifty_recorded_episodes_leave_at_most_a_third_of_the_regret(task: str) -> None:
    _is_a_third(task, 4)


@pytest.mark.slow
@pytest.mark.parametrize("task", FOUR)
def test_the_same_with_forty_seeds(task: str) -> None:
    _is_a_third(task, 40)


def _is_a_third(task: str, seeds: int) -> None:
    cold, warm = (np.mean([regret(task, seed, each) for seed in range(seeds)]) for each in (False, True))
    assert 0 < warm <= cold / 3


@pytest.mark.slow
def test_of_two_hundred_offline_intervals_93_to_99_in_a_hundred_hold(capsys: pytest.CaptureFixture[str]) -> None:
    table = offline(200)
    with capsys.disabled():
        print(f"\n{table}")
    assert 186 <= int(table.splitlines()[-1].split("|")[3]) <= 198
