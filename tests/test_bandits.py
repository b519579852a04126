"""With episodes of one step LSVI-UCB is LinUCB, as the page for those who come from bandits says."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import linmdp
from linmdp.runner.registry import make_learner
from test_docs_examples import DOCS, examples


@pytest.fixture(scope="module")
def page() -> dict[str, Any]:
    """What the first example of the page defines."""
    names: dict[str, Any] = {}
    exec(examples(DOCS / "from-bandits.md")[0], names)
    return names


def test_the_loop_of_the_page_earns_more_than_chance(page: dict[str, Any]) -> None:
    assert page["clicks"] / 500 > 0.6  # chance: 0.5, the best: 0.73


@pytest.mark.parametrize(("alpha", "l2"), [(0.5, 1.0), (1.5, 0.1), (0.0, 3.0)])
def test_with_one_step_lsvi_ucb_is_linucb(page: dict[str, Any], alpha: float, l2: float) -> None:
    """Written out arm by arm, as Li et al. (2010) have it."""
    agent, rng = linmdp.LSVIUCB(page["task"], beta=alpha, lam=l2), np.random.default_rng(1)
    A, b = np.stack([l2 * np.eye(4)] * 3), np.zeros((3, 4))
    differ = 0
    for _ in range(200):
        context = rng.random(4)
        x = context / np.linalg.norm(context)
        theta = np.linalg.solve(A, b[..., None])[..., 0]
        upper = np.minimum(theta @ x + alpha * np.sqrt([x @ np.linalg.solve(part, x) for part in A]), 1.0)
        agent.begin_episode()
        np.testing.assert_allclose(agent.q_values(0, context), upper, rtol=1e-9)
        arm = agent.act(0, context)
        assert upper[arm] >= upper.max() - 1e-9
        differ += len({*np.round(upper, 6).tolist()}) > 1
        reward = float(rng.random() < context[arm])
        agent.observe(0, context, arm, reward, context, True)
        agent.end_episode()
        A[arm] += np.outer(x, x)
        b[arm] += reward * x
    assert differ > 100


@pytest.mark.parametrize(
    "spec", ["rlsvi", "ucbvi", "psrl", "q-learning-greedy:epsilon=0.1", "lsvi-ucb:beta=0.5,lam=1", "auto"]
)
def test_every_agent_of_the_page_learns_a_bandit_of_one_step(spec: str) -> None:
    """Three visitors, three arms; each visitor likes one."""
    task = linmdp.Task(S=3, A=3, d=9, H=1, reward_range=(0.0, 1.0), features=linmdp.one_hot(3, 3))
    agent: Any = make_learner(spec, task, 1200)
    agent.rng, rng, late = np.random.default_rng(0), np.random.default_rng(2), 0.0
    for k in range(1200):
        state = int(rng.integers(3))
        agent.begin_episode()
        arm = agent.act_within(0, state, np.arange(3) != (state + 1) % 3)  # one of them is not there
        assert arm != (state + 1) % 3
        reward = float(rng.random() < (0.8 if arm == state else 0.3))
        agent.observe(0, state, arm, reward, state, True)
        agent.end_episode()
        late += reward * (k >= 900)
    assert late / 300 > 0.68  # chance: 0.55, the best: 0.8
