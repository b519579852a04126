"""The device tasks against their stories, told again as simulations that know nothing of features."""

from __future__ import annotations

import itertools
from collections.abc import Callable

import numpy as np
import pytest

import linmdp
from linmdp.envs.base import check_linear
from linmdp.envs.linear_devices import inventory, sensor
from linmdp.envs.linear_mdps import LINEAR_MDPS
from linmdp.envs.planning import policy_value, uniform_policy

DRAWS = 4000
Rng = np.random.Generator


def live_sensor(state: tuple[int, ...], action: int, rng: Rng, B: int, Q: int) -> tuple[tuple[int, ...], float]:
    """One step of a node with the default chances and costs."""
    battery, queue, weather = state
    paid = 0.0
    if action == 1 and battery >= 1:
        battery, queue = battery - 1, min(Q, queue + 1)
    elif action == 2 and battery >= 2:
        battery, queue, paid = battery - 2, 0, queue / Q
    if weather and rng.random() < 0.9:
        battery = min(B, battery + 2)
    if rng.random() >= 0.75:
        weather = 1 - weather
    return (battery, 0 if battery == 0 else queue, weather), paid


def run_store(state: tuple[int, ...], action: int, rng: Rng, C: int) -> tuple[tuple[int, ...], float]:
    """One step of a store with the default demand and costs, and the profit."""
    stock, arriving, *later = state
    stock = min(C, stock + 3 * arriving)
    sold = min(stock, int(rng.poisson(1.5)))
    return (stock - sold, *later, action), sold - 0.3 * (stock - sold) - 0.3 * (action > 0)


@pytest.mark.parametrize(("battery", "queue"), [(3, 2), (2, 3)])
def test_sensor_moves_and_pays_as_its_story_says(battery: int, queue: int) -> None:
    model, rng = sensor(battery=battery, queue=queue), np.random.default_rng(0)
    states: list[tuple[int, ...]] = list(itertools.product(range(battery + 1), range(queue + 1), range(2)))
    assert len(states) == model.S
    for s, a in itertools.product(rng.choice(model.S, 6, replace=False), range(3)):
        seen = np.zeros(model.S)
        for _ in range(DRAWS):
            following, paid = live_sensor(states[s], a, rng, battery, queue)
            seen[states.index(following)] += 1 / DRAWS
            assert paid == pytest.approx(model.features.row(s, a) @ model.theta[0])
        np.testing.assert_allclose(model.features.row(s, a) @ model.mu[0], seen, atol=4 * np.sqrt(0.25 / DRAWS))


@pytest.mark.parametrize("lead", [1, 2])
def test_inventory_moves_and_pays_as_its_story_says(lead: int) -> None:
    C, A = 5, 3
    model, rng = inventory(capacity=C, lead=lead), np.random.default_rng(0)
    states = list(itertools.product(range(C + 1), *[range(A)] * lead))
    pairs = [(s, a) for s in rng.choice(model.S, 8, replace=False) for a in range(A)]
    profits = []
    for s, a in pairs:
        seen, profit = np.zeros(model.S), 0.0
        for _ in range(DRAWS):
            following, paid = run_store(states[s], a, rng, C)
            seen[states.index(following)] += 1 / DRAWS
            profit += paid / DRAWS
        profits.append(profit)
        np.testing.assert_allclose(model.features.row(s, a) @ model.mu[0], seen, atol=4 * np.sqrt(0.25 / DRAWS))
    rewards = np.array([model.features.row(s, a) @ model.theta[0] for s, a in pairs])
    slope, offset = np.polyfit(profits, rewards, 1)
    assert slope > 0
    np.testing.assert_allclose(slope * np.array(profits) + offset, rewards, atol=0.1)  # four deviations of a mean


@pytest.mark.parametrize("make", [sensor, inventory])
def test_rewards_span_0_to_1(make: Callable[..., linmdp.LinearModel]) -> None:
    theta = make().theta[0]
    assert theta.min() == 0.0
    assert theta.max() == 1.0


@pytest.mark.parametrize(
    ("model", "d"),
    [
        (sensor(), 32),
        (sensor(battery=6, queue=4), 110),
        (inventory(), 7 * 3),
        (inventory(capacity=4, A=2, lead=3), 5 * 8),
        (inventory(capacity=9, A=5, lot=1, demand=30.0), 50),
    ],
)
def test_sizes_give_features_far_below_a_table_and_a_linear_mdp(model: linmdp.LinearModel, d: int) -> None:
    assert model.d == d < model.S * model.A
    assert [finding.text for finding in check_linear(model) if not finding.ok] == []


@pytest.mark.parametrize("family", ["sensor", "inventory"])
def test_a_random_policy_earns_less_than_half_and_a_constant_one_less_than_most(family: str) -> None:
    """There is something to learn."""
    model = LINEAR_MDPS[family]()
    best = linmdp.optimum(model).V[0, 0]
    assert policy_value(model, uniform_policy(model))[0, 0] < 0.5 * best
    for action in range(model.A):
        constant = np.full(model.S, action)
        assert policy_value(model, lambda h, pi=constant: pi)[0, 0] < 0.7 * best  # type: ignore[misc]


@pytest.mark.parametrize(("family", "agent"), [("sensor", "beta=0.3,lam=0.0005"), ("inventory", "beta=0.5,lam=0.001")])
def test_optimism_learns_it_within_a_tenth_of_the_best(family: str, agent: str) -> None:
    env = linmdp.make_env(family)
    result = linmdp.run(env, linmdp.make_agent(f"lsvi-ucb:{agent}", env), episodes=800, seed=0, eval_every=20)
    assert result.regret is not None
    lost = (result.regret[-1] - result.regret[-101]) / 100
    assert lost < 0.1 * linmdp.optimum(LINEAR_MDPS[family]()).V[0, 0]
