"""Small devices with a known model: a sensor that lives on harvested energy, and a store that orders goods.

Both are exactly linear. What an action does at once is certain, what follows is chance: the state *after the decision*
settles the distribution of the next state. phi(s, a) is the unit vector of that state, together with what the action
pays, so d is the number of different outcomes, far below S * A.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence

import numpy as np

from linmdp.envs.base import LinearModel, stationary_model
from linmdp.errors import InvalidParameter, check_int, check_number
from linmdp.features.basis import LARGEST_D
from linmdp.features.tabular import TableFeatures
from linmdp.types import Array

Outcome = tuple[int, ...]


def outcome_features(outcomes: Sequence[Sequence[Outcome]]) -> tuple[TableFeatures, list[Outcome]]:
    """phi(s, a) = e_i, with i the outcome of a in s: the features of an S x A table of outcomes, and the d outcomes."""
    different = list(dict.fromkeys(outcome for row in outcomes for outcome in row))
    index = {outcome: i for i, outcome in enumerate(different)}
    phi = np.eye(len(different))[[[index[outcome] for outcome in row] for row in outcomes]]
    return TableFeatures(phi), different


def _check_size(name: str, S: int, d: int) -> None:
    if d > LARGEST_D:
        raise InvalidParameter(f"The sizes of {name} must give d at most {LARGEST_D}. Got {d}, with S={S}.")


def sensor(
    *,
    battery: int = 3,
    queue: int = 2,
    units: int = 2,
    bright: float = 0.9,
    dark: float = 0.0,
    persistence: float = 0.75,
    sample_cost: int = 1,
    send_cost: int = 2,
    H: int = 48,
    seed: int = 0,
    noise: float = 0.0,
    start: str = "fixed",
) -> LinearModel:
    """A sensor node that lives on harvested energy: when to sleep, when to measure, when to send.

    The node has a battery, a queue of readings, and a panel. Each step it sleeps (action 0), samples (1: one more
    reading in the queue, for `sample_cost` units of energy) or transmits (2: all readings leave, for `send_cost`).
    Readings that are delivered pay their number divided by `queue`, so a full queue pays 1. Sending costs the same for
    one reading as for many: patience pays, but a reading sampled into a full queue is lost. Without the energy for its
    action the node sleeps. Then the panel harvests `units`, with probability `bright` or `dark` depending on the
    weather (what the battery cannot hold is lost), and the weather stays as it is with probability `persistence`. If
    the battery is empty after that, the node browns out and forgets its queue.

    States are (battery, queue, weather), the first (fixed) one is an empty battery and queue in the dark. The
    features are unit vectors of (battery, queue, weather, readings delivered) after the decision. The model is
    not random: `seed` has no effect.

    Parameters
    ----------
    battery, queue : the most units of energy, and the most readings
    units : of energy, harvested at once
    bright, dark : chance of a harvest in a step of such weather
    persistence : chance that the weather of the next step is that of this one
    sample_cost, send_cost : units of energy
    """
    B = check_int("sensor", "battery", battery, low=1)
    Q = check_int("sensor", "queue", queue, low=1)
    units = check_int("sensor", "units", units, low=1, high=B)
    gain = [check_number("sensor", n, x, low=0.0, high=1.0) for n, x in (("dark", dark), ("bright", bright))]
    persistence = check_number("sensor", "persistence", persistence, low=0.0, high=1.0)
    measure = check_int("sensor", "sample_cost", sample_cost, low=0, high=B)
    send = check_int("sensor", "send_cost", send_cost, low=0, high=B)
    check_int("sensor", "seed", seed, low=0)
    _check_size("sensor", 2 * (B + 1) * (Q + 1), 4 * (B + 1) * (Q + 1))

    def decided(b: int, q: int, w: int, action: int) -> tuple[int, int, int, int]:
        """Battery, queue and weather after the decision, and how many readings were delivered."""
        if action == 1 and b >= measure:
            return b - measure, min(q + 1, Q), w, 0
        if action == 2 and b >= send:
            return b - send, 0, w, q
        return b, q, w, 0

    states = list(itertools.product(range(B + 1), range(Q + 1), range(2)))
    place = {state: i for i, state in enumerate(states)}
    features, outcomes = outcome_features([[decided(*state, a) for a in range(3)] for state in states])
    mu, theta = np.zeros((features.d, len(states))), np.zeros(features.d)
    for i, (b, q, w, delivered) in enumerate(outcomes):
        theta[i] = delivered / Q
        for gained, weather in itertools.product(range(2), range(2)):
            chance = gain[w] if gained else 1 - gain[w]
            chance *= persistence if weather == w else 1 - persistence
            charge = min(b + units * gained, B)
            mu[i, place[charge, q if charge else 0, weather]] += chance
    return stationary_model(
        check_int("sensor", "H", H, low=1),
        theta,
        mu,
        name="sensor",
        features=features,
        noise=noise,
        start=start,
        state_fields=(("battery", B + 1), ("queue", Q + 1), ("weather", 2)),
        action_names=("sleep", "sample", "transmit"),
    )


def inventory(
    *,
    capacity: int = 6,
    A: int = 3,
    lot: int = 3,
    demand: float = 1.5,
    lead: int = 1,
    holding: float = 0.3,
    fixed: float = 0.3,
    H: int = 20,
    seed: int = 0,
    noise: float = 0.0,
    start: str = "fixed",
) -> LinearModel:
    """A store that orders goods before it knows the demand: too little loses sales, too much costs room.

    Each step it orders a * `lot` units, a = 0 ... A-1, which arrive `lead` steps later. Then what was ordered `lead`
    steps ago comes in (beyond `capacity` it goes back to the supplier), and the demand, Poisson with mean `demand`, is
    met from the stock as far as that goes; the rest is lost. A unit sold earns a margin of 1, a unit that is left over
    costs `holding`, and an order costs `fixed`, whatever its size.

    States are the stock and the orders in transit; the first (fixed) one is an empty store. The reward is the expected
    profit of the step, scaled so that the worst one pays 0 and the best one 1. The features are unit vectors of (stock
    after arrival, orders in transit, this order), d = (capacity + 1) * A^lead. The model is not random: `seed`
    has no effect.

    Parameters
    ----------
    capacity : the most units in stock
    A, lot : order sizes 0, lot, ..., (A - 1) lot
    demand : mean of the demand of one step
    lead : steps from an order to its arrival, at least 1
    holding, fixed : in margins of one unit
    """
    C = check_int("inventory", "capacity", capacity, low=1)
    A = check_int("inventory", "A", A, low=2)
    lot = check_int("inventory", "lot", lot, low=1)
    demand = check_number("inventory", "demand", demand, low=0.0, open_low=True, high=1e6)
    lead = check_int("inventory", "lead", lead, low=1, high=10)
    holding = check_number("inventory", "holding", holding, low=0.0)
    fixed = check_number("inventory", "fixed", fixed, low=0.0)
    check_int("inventory", "seed", seed, low=0)
    _check_size("inventory", (C + 1) * A**lead, (C + 1) * A**lead)

    states = list(itertools.product(range(C + 1), *[range(A)] * lead))
    place = {state: i for i, state in enumerate(states)}
    # after the decision: the stock with what arrives, and the orders still on their way, the newest last
    features, outcomes = outcome_features(
        [[(min(stock + first * lot, C), *later, a) for a in range(A)] for stock, first, *later in states]
    )
    left = _left_over(C, demand)
    profit, mu = np.zeros(features.d), np.zeros((features.d, len(states)))
    for i, (stock, *orders) in enumerate(outcomes):
        remain = left[stock] @ np.arange(C + 1)
        profit[i] = (stock - remain) - holding * remain - fixed * (orders[-1] > 0)
        for rest in range(C + 1):
            mu[i, place[rest, *orders]] += left[stock, rest]
    worst, best = profit.min(), profit.max()
    theta = (profit - worst) / (best - worst)
    return stationary_model(
        check_int("inventory", "H", H, low=1),
        theta,
        mu,
        name="inventory",
        features=features,
        noise=noise,
        start=start,
        state_fields=(("stock", C + 1), *((f"lots_due_in_{i + 1}", A) for i in range(lead))),
        action_names=tuple(f"order_{a * lot}" for a in range(A)),
    )


def _left_over(C: int, demand: float) -> Array:
    """Chance of each stock (columns) after the demand has been met from each stock (rows), (C+1, C+1)."""
    log_chance = np.array([n * math.log(demand) - demand - math.lgamma(n + 1) for n in range(C + 1)])
    chance = np.exp(log_chance)
    left = np.zeros((C + 1, C + 1))
    for stock in range(C + 1):
        left[stock, 1 : stock + 1] = chance[:stock][::-1]
        left[stock, 0] = 1 - chance[:stock].sum()
    return left
