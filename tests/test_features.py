"""Feature maps: tables are checked as a whole, maps from outside at every call."""

from __future__ import annotations

import numpy as np
import pytest

import linmdp
from linmdp.features import CheckedFeatures, TableFeatures, one_hot
from linmdp.types import Array


def test_table_phi_and_batch_agree() -> None:
    table = np.random.default_rng(0).dirichlet(np.ones(4), size=(5, 3))
    features = TableFeatures(table)
    np.testing.assert_array_equal(features.table(), table)
    for s in range(5):
        np.testing.assert_array_equal(features.phi(s), table[s])
    np.testing.assert_array_equal(features.batch(np.array([4, 1])), table[[4, 1]])
    assert features.nbytes == table.nbytes


def test_one_hot_is_the_tabular_case() -> None:
    features = one_hot(3, 2)
    rows = features.table().reshape(6, 6)
    np.testing.assert_array_equal(rows, np.eye(6))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (np.nan, "must be finite"),
        (np.inf, "must be finite"),
        (3.0, "must have norm at most 1"),
    ],
)
def test_a_bad_table_is_refused(change: float, message: str) -> None:
    table = np.full((2, 2, 3), 0.1)
    table[1, 1, 2] = change
    with pytest.raises(linmdp.InvalidData, match=message):
        TableFeatures(table)
    with pytest.raises(linmdp.InvalidData, match=r"must have shape \(S, A, d\)"):
        TableFeatures(table[0])


class Moody:
    """A map from outside that goes wrong in a chosen state."""

    A, d, bound = 2, 3, 1.0
    nbytes = 0

    def __init__(self, bad: Array) -> None:
        self.bad = bad

    def phi(self, state: Array) -> Array:
        return self.bad if state[0] > 0.5 else np.full((2, 3), 0.2)

    def batch(self, states: Array) -> Array:
        return np.stack([self.phi(s) for s in states])


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        (np.full((2, 3), np.nan), "must be finite"),
        (np.full((2, 3), 0.9), "norm at most 1"),
        (np.full((3, 2), 0.1), r"shape \(..., 2, 3\)"),
    ],
)
@pytest.mark.parametrize("storage", ["features", "states"])
def test_an_agent_checks_features_from_outside(bad: Array, message: str, storage: str) -> None:
    features = Moody(bad)
    task = linmdp.Task(S=None, A=2, d=3, H=2, reward_range=(0.0, 1.0), features=features)
    agent = linmdp.LSVIUCB(task, storage=storage)
    agent.begin_episode()
    agent.act(0, np.zeros(1))
    agent.observe(0, np.zeros(1), 0, 0.5, np.zeros(1), False)
    with pytest.raises(linmdp.InvalidData, match=message):
        agent.act(1, np.ones(1))
    with pytest.raises(linmdp.InvalidData, match=message):
        CheckedFeatures(features).batch(np.ones((2, 1)))


def test_counts_need_finite_states() -> None:
    task = linmdp.Task(S=None, A=2, d=3, H=2, reward_range=(0.0, 1.0), features=Moody(np.zeros((2, 3))))
    with pytest.raises(
        linmdp.InvalidParameter,
        match="parameter of lsvi-ucb must be 'features', 'states', 'merged' or 'centres' where",
    ):
        linmdp.LSVIUCB(task, storage="counts")
