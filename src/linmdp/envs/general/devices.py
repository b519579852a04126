"""Devices with a table of transitions and a display."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from gymnasium import spaces

from linmdp.envs import linear_devices
from linmdp.envs.general.base import Outcomes, Table, TableInstance, explored, family, runs, tabulated
from linmdp.types import Array

DAY = 24.0


class Display:
    """Numbers between bounds; whether time and humidity stand beside them is drawn.

    Parameters
    ----------
    rng : what is shown is drawn from it
    low, high : of each number
    hours : of a step of the episode
    clock : whether the time of day is shown; None: drawn
    """

    def __init__(
        self, rng: np.random.Generator, low: Sequence[float], high: Sequence[float], hours: float, clock: bool | None
    ) -> None:
        drawn = rng.random(2) < 1 / 3
        self.clock = bool(drawn[0]) if clock is None else clock
        self.humidity, self.hours = bool(drawn[1]), hours
        self.first = float(rng.integers(24)) if clock is None else 0.0  # the hour at which the day begins
        extra = [DAY] * self.clock + [100.0] * self.humidity
        bottom, top = [*low, *[0.0] * len(extra)], [*high, *extra]
        self.space = spaces.Box(np.array(bottom, np.float32), np.array(top, np.float32), dtype=np.float32)

    def __call__(self, numbers: Sequence[float], h: int, rng: np.random.Generator) -> Array:
        """The observation at step h."""
        shown = list(numbers)
        if self.clock:
            shown.append((self.first + h * self.hours) % DAY)
        if self.humidity:
            shown.append(100 * rng.beta(4, 4))
        seen: Array = np.clip(np.array(shown, np.float32), self.space.low, self.space.high)
        return seen


class Device(TableInstance):
    """A device with a table of transitions, and a display of the numbers that `read` makes of a state."""

    def __init__(
        self,
        model: Table,
        states: Sequence[Any],
        read: Callable[[Any], Sequence[float]],
        rng: np.random.Generator,
        *,
        hours: float,
        clock: bool | None = None,
        noise: float = 0.0,
    ) -> None:
        self.numbers = [tuple(float(x) for x in read(s)) for s in states]
        columns = np.array(self.numbers)
        self.display = Display(rng, columns.min(axis=0).tolist(), columns.max(axis=0).tolist(), hours, clock)
        super().__init__(model, space=self.display.space, noise=noise, ends=bool(rng.random() < 0.5))

    def show(self) -> Array:
        return self.display(self.numbers[self.state], self.h, self.np_random)


@family("admission", "kept", H=100, episodes=runs(100))
def admission(rng: np.random.Generator) -> TableInstance:
    """Admission to a queue: who comes to the door is let in or sent away, and whoever waits costs.

    At most one customer comes at each step, of one of two or three kinds that pay differently. Letting one in pays at
    once; sending one away costs a little, in some instances. Whoever is in the queue costs money for each step that it
    waits, and one server ends a service with some chance a step. Whoever is let into a full queue leaves angrily,
    which is a fine. In half of the instances nobody pays, and who is sent away costs that instead (a duty to serve).
    Shown are the number in the queue and the kind at the door (0: nobody), sometimes as whole numbers, else as numbers
    of a display.
    """
    H, places, kinds = int(rng.integers(40, 101)), int(rng.integers(6, 16)), int(rng.integers(2, 4))
    served = rng.uniform(0.3, 0.7)
    crowd = min(served * rng.uniform(0.8, 1.8), 0.95)
    shares = np.concatenate([[1 - crowd], crowd * rng.dirichlet(np.full(kinds, 4.0))])
    unit = float(rng.choice([0.1, 1.0, 30.0]))
    wait = unit * rng.uniform(0.5, 1.5)
    pays = wait / served * np.concatenate([[0.0], np.sort(rng.uniform(0.3, 6.0, kinds))])
    refusal, fine = wait * float(rng.choice([0.0, 1.0])), wait * rng.uniform(2.0, 8.0)
    duty = bool(rng.random() < 0.5)  # nobody pays: who is sent away costs what others would earn
    let_in = int(rng.integers(2))

    def outcomes(state: tuple[int, int], action: int) -> Outcomes:
        n, kind = state
        reward = -wait * n
        if kind and action == let_in:
            reward += (0.0 if duty else pays[kind]) if n < places else -fine - duty * pays[kind]
            n = min(n + 1, places)
        elif kind:
            reward -= refusal + duty * pays[kind]
        for done, p in ((1, served), (0, 1 - served)):
            after = n - done if n else 0
            yield from ((p * share, (after, other), float(reward)) for other, share in enumerate(shares))

    first = int(rng.integers(places // 2 + 1))
    model, states = explored({(first, kind): float(p) for kind, p in enumerate(shares)}, 2, H, outcomes)
    if rng.random() < 0.4:
        space = spaces.MultiDiscrete([places + 1, kinds + 1])
        ends = bool(rng.random() < 0.5)
        return TableInstance(model, space=space, shown=lambda s: np.array(states[s]), ends=ends)
    return Device(model, states, lambda s: s, rng, hours=1 / 12)


@family("battery", "made", H=48, episodes=runs(48))
def battery(rng: np.random.Generator) -> Device:
    """A battery in a house whose electricity has a price that changes.

    Each step (an hour, or half of one) the house needs energy, and the battery is discharged by a lot, left alone, or
    charged by a lot (in some instances by two lots as well). What the house and the battery need is bought at the price
    of the step; what the battery gives beyond the need is sold, in some instances for a part of the price, in others
    for nothing. Charging loses energy. The price is a profile over the day times a level (cheap, usual, dear) that
    stays as it is or changes at random. The reward is what is paid, so it is mostly negative; what is left at the end
    of the day is worth nothing. Shown are the charge in kWh, the price, and always the time of day.
    """
    H = int(rng.choice([24, 48]))
    capacity, lot = int(rng.integers(4, 9)), rng.uniform(0.5, 2.5)
    moves = [-1, 0, 1] if rng.random() < 0.6 else [-2, -1, 0, 1, 2]
    efficiency, sold = rng.uniform(0.8, 0.98), rng.choice([0.0, 0.5, 0.9])
    hour = np.arange(H) * 24 / H
    peak, width = rng.uniform(0, 24), rng.uniform(2, 5)
    away = np.minimum(abs(hour - peak), 24 - abs(hour - peak))
    profile = 1 + rng.uniform(0.5, 2.0) * np.exp(-0.5 * (away / width) ** 2)
    profile *= rng.choice([0.25, 25.0])  # euros or cents
    levels = np.array([1 - rng.uniform(0.2, 0.5), 1.0, 1 + rng.uniform(0.3, 1.0)])
    need = rng.uniform(0.3, 1.5) * lot * (1 + rng.uniform(-0.4, 0.4, H))
    stays = rng.uniform(0.6, 0.95)

    def outcomes(state: tuple[int, int, int], action: int) -> Outcomes:
        charge, level, h = state
        after = min(max(charge + moves[action], 0), capacity)
        change = after - charge
        energy = need[h] + lot * (change / efficiency if change > 0 else change)
        reward = -profile[h] * levels[level] * (energy if energy > 0 else sold * energy)
        if h == H - 1:
            return [(1.0, (after, level, h), float(reward))]
        chances = [stays if other == level else (1 - stays) / 2 for other in range(3)]
        return [(p, (after, other, h + 1), float(reward)) for other, p in enumerate(chances)]

    first = int(rng.integers(capacity + 1))
    model, states = explored({(first, level, 0): 1 / 3 for level in range(3)}, len(moves), H, outcomes)
    noise = float(rng.choice([0.0, 0.05])) * lot * float(profile.mean())

    def read(state: tuple[int, int, int]) -> tuple[float, float]:
        charge, level, h = state
        return charge * lot, profile[h] * levels[level]

    return Device(model, states, read, rng, hours=24 / H, clock=True, noise=noise)


@family("traffic", "kept", H=100, episodes=runs(100))
def traffic(rng: np.random.Generator) -> TableInstance:
    """A traffic light with two phases, where two streets cross.

    At each step (some seconds) cars come to either street at random, and one of the two has green, from which up to one
    or two cars leave. The two actions are to keep the phase or to change it, in some instances to ask for green in the
    first or the second street. A change takes one or two steps in which nobody has green, and until then nothing that
    is asked for is heard. The reward is minus the minutes that all cars wait, and a fine for each car that finds its
    street full. Shown are both queues, the phase, and how many steps of a change are left.
    """
    H, places, lost = int(rng.integers(50, 101)), int(rng.integers(7, 13)), int(rng.integers(1, 3))
    leave = int(rng.integers(1, 3))
    busy = leave * rng.uniform(0.4, 0.75)  # of what the green can take away
    share = rng.uniform(0.2, 0.8)
    # two chances of a car in each street at a step
    comes = [min(busy * part / 2, 0.5) for part in (share, 1 - share)]
    arrivals = [((1 - p) ** 2, 2 * p * (1 - p), p * p) for p in comes]
    minutes, fine = rng.uniform(0.05, 2.0), rng.uniform(0.0, 10.0)
    asked = bool(rng.random() < 0.5)
    order = rng.permutation(2)

    def outcomes(state: tuple[int, int, int, int], action: int) -> Outcomes:
        one, two, phase, left = state
        wish = int(order[action])
        if left:
            left -= 1
        elif (wish != phase) if asked else wish == 1:
            phase, left = 1 - phase, lost
        queues = [one, two]
        if not left:
            queues[phase] = max(queues[phase] - leave, 0)
        for i, p in enumerate(arrivals[0]):
            for j, q in enumerate(arrivals[1]):
                first, second = queues[0] + i, queues[1] + j
                turned = max(first - places, 0) + max(second - places, 0)
                first, second = min(first, places), min(second, places)
                reward = -minutes * (first + second + fine * turned)
                yield p * q, (first, second, phase, left), float(reward)

    model, states = explored({(int(rng.integers(4)), int(rng.integers(4)), 0, 0): 1.0}, 2, H, outcomes)
    return Device(model, states, lambda s: s, rng, hours=1 / 60)


def demand_law(rng: np.random.Generator, mean: float, most: int) -> Array:
    """Chances of 0 to `most` units; what is beyond counts as `most`."""
    n, kind = np.arange(most + 1), rng.integers(3)
    if kind == 0:
        law = np.array([mean**k * math.exp(-mean) / math.factorial(k) for k in n])
    elif kind == 1:
        law = (1 / (1 + mean)) * (mean / (1 + mean)) ** n
    else:
        rush = int(rng.integers(most // 2, most + 1))
        law = np.where(n == rush, mean / (2 * rush), 0) + np.where(n == 1, min(mean / 2, 0.6), 0)
        law[0] += max(1 - law.sum(), 0)
    law[-1] += max(1 - law.sum(), 0)
    chances: Array = law / law.sum()
    return chances


@family("inventory", "made", H=50, episodes=runs(50))
def inventory(rng: np.random.Generator) -> TableInstance:
    """A store that orders goods before it knows the demand.

    Each step (a day) it orders nothing or one of two to four sizes, which arrive at once or one or two days later. Then
    demand comes, with a law that is drawn (Poisson, geometric, or a rush on some days), and is met from the stock; the
    rest is lost, with a fine for lost good will in some instances. A unit sold pays its margin, an order costs a fixed
    sum, a unit that is left over costs storage, in some instances a part of it spoils overnight, and what exceeds the
    shelf is thrown away. Shown are the stock and what is on its way, in units.
    """
    H, shelf, lead = int(rng.integers(20, 51)), int(rng.integers(6, 16)), int(rng.integers(0, 3))
    A = int(rng.integers(3, 6)) if lead < 2 else 3
    mean = shelf * rng.uniform(0.12, 0.3)
    lot = max(1, round(mean * rng.uniform(0.8, 1.5)))
    most = int(max(4, math.ceil(3 * mean)))
    law = demand_law(rng, mean, most)
    margin = float(rng.choice([1.0, 7.5, 120.0]))
    storing, order = margin * rng.uniform(0.03, 0.25), margin * rng.uniform(0.0, 1.0)
    missed, waste = margin * float(rng.choice([0.0, 0.5])), margin * rng.uniform(0.2, 0.8)
    spoils = float(rng.choice([0.0, 0.3]))  # chance that one unit has spoilt in the morning
    unit = int(rng.choice([1, 12]))  # a unit may be a box of twelve

    def outcomes(state: tuple[int, ...], action: int) -> Outcomes:
        stock, *due = state
        due.append(action * lot)
        stock += due.pop(0)
        lost = max(stock - shelf, 0)
        stock -= lost
        cost = order * (action > 0) + waste * lost
        for wanted, p in enumerate(law):
            sold = min(stock, wanted)
            left = stock - sold
            reward = margin * sold - missed * (wanted - sold) - storing * left - cost
            yield float(p) * (1 - spoils), (left, *due), float(reward)
            yield float(p) * spoils, (max(left - 1, 0), *due), float(reward)

    start = (int(rng.integers(shelf + 1)), *[0] * lead)
    model, states = explored({start: 1.0}, A, H, outcomes)
    return Device(model, states, lambda s: [unit * n for n in s], rng, hours=24, clock=False)


def sensor(rng: np.random.Generator) -> TableInstance:
    """The sensor of this package, drawn."""
    battery, queue = int(rng.integers(4, 10)), int(rng.integers(2, 7))
    model = linear_devices.sensor(
        battery=battery,
        queue=queue,
        units=int(rng.integers(1, 4)),
        bright=rng.uniform(0.6, 0.95),
        dark=rng.uniform(0.0, 0.2),
        persistence=rng.uniform(0.6, 0.95),
        sample_cost=int(rng.integers(1, 3)),
        send_cost=int(rng.integers(2, 5)),
        H=int(rng.integers(40, 101)),
    )
    phi = model.features.table()
    unit, shift = float(rng.choice([0.1, 1.0, 50.0])), float(rng.choice([0.0, 0.0, -0.5]))
    chances, pay = phi @ model.mu[0], unit * (phi @ model.theta[0] + shift)
    order = rng.permutation(3)

    def outcomes(s: int, a: int) -> Outcomes:
        row = chances[s, order[a]]
        return [(float(row[i]), int(i), float(pay[s, order[a]])) for i in np.flatnonzero(row)]

    table: Table = tabulated(model.S, 3, model.H, 0, outcomes)
    sizes = [n for _, n in model.state_fields]
    energy, light = rng.uniform(0.5, 20), rng.uniform(200, 2000)
    states: list[Any] = [np.unravel_index(s, sizes) for s in range(model.S)]
    return Device(table, states, lambda s: (energy * s[0], s[1], 20 + light * s[2]), rng, hours=0.25, noise=0.01 * unit)


def machine(rng: np.random.Generator) -> TableInstance:
    """A machine that wears."""
    H, worn = int(rng.integers(40, 101)), int(rng.integers(6, 21))
    earns, unit = rng.uniform(1.0, 2.0), float(rng.choice([0.1, 1.0, 50.0]))
    fades, wears = rng.uniform(0.2, 1.0), rng.uniform(0.3, 0.9)
    fails = rng.uniform(0.1, 0.5) * (np.arange(worn + 1) / worn) ** rng.uniform(1.0, 3.0)
    fine, repair = rng.uniform(1.0, 6.0), int(rng.integers(1, 4))
    fees = (rng.uniform(0.5, 1.5), rng.uniform(2.0, 6.0))
    better = int(rng.integers(2, max(3, worn // 2)))
    order = rng.permutation(3)

    def outcomes(state: tuple[int, int], action: int) -> Outcomes:
        wear, down = state
        if down:
            return [(1.0, (wear, down - 1), 0.0)]
        what = int(order[action])
        if what == 1:
            return [(1.0, (max(wear - better, 0), 0), -unit * fees[0])]
        if what == 2:
            return [(1.0, (0, 0), -unit * fees[1])]
        pay, p = earns * (1 - fades * wear / worn), float(fails[wear])
        more = min(wear + 1, worn)
        return [
            (p, (wear, repair), -unit * fine),
            ((1 - p) * wears, (more, 0), unit * pay),
            ((1 - p) * (1 - wears), (wear, 0), unit * pay),
        ]

    model, states = explored({(int(rng.integers(worn // 2 + 1)), 0): 1.0}, 3, H, outcomes)
    return Device(model, states, lambda s: (1.5 * s[0], s[1]), rng, hours=1, noise=0.02 * unit)


@family("sensor", "kept", H=100, episodes=runs(100))
def sensor_of_either_kind(rng: np.random.Generator) -> TableInstance:
    """Small machines that must last: a sensor that lives on harvested energy, and a machine that wears out.

    Half of the instances are `linmdp`'s own sensor with drawn sizes and weather: it sleeps, samples or transmits, and
    what it delivers pays. The other half is a machine that wears as it runs and earns less the more it has worn, and
    breaks down more often. Each step (an hour) it runs, is serviced, which takes some of the wear away for a fee, or is
    renewed for a higher one. A breakdown costs a fine and some hours of repair, in which no action has an effect; after
    it the machine is as worn as before. Shown are the battery in mWh, the readings in the queue and the light in lux;
    or the wear in hundreds of hours, and the hours of repair that are left.
    """
    return sensor(rng) if rng.random() < 0.5 else machine(rng)
