"""A traffic light with two phases, where two streets cross.

At each step (some seconds) cars come to either street at random, and one of the two has green, from which up to one or
two cars leave. The two actions are to keep the phase or to change it, in some instances to ask for green in the first
or the second street. A change takes one or two steps in which nobody has green, and until then nothing that is asked
for is heard. The reward is minus the minutes that all cars wait, and a fine for each car that finds its street
full. Shown are both queues, the phase, and how many steps of a change are left.
"""

from __future__ import annotations

import numpy as np

from linmdp.envs.general.base import Family, TableInstance, runs
from linmdp.envs.general.display import Device
from linmdp.envs.general.explored import explored

State = tuple[int, int, int, int]
"""Cars in either street, the phase (which street has green, or will have), steps until it is green."""


def make(rng: np.random.Generator) -> TableInstance:
    """Draw a crossing."""
    H, room, lost = int(rng.integers(50, 101)), int(rng.integers(7, 13)), int(rng.integers(1, 3))
    leave = int(rng.integers(1, 3))
    busy = leave * rng.uniform(0.4, 0.75)  # of what the green can take away
    share = rng.uniform(0.2, 0.8)
    # two chances of a car in each street at a step
    comes = [min(busy * part / 2, 0.5) for part in (share, 1 - share)]
    arrivals = [((1 - p) ** 2, 2 * p * (1 - p), p * p) for p in comes]
    minutes, fine = rng.uniform(0.05, 2.0), rng.uniform(0.0, 10.0)
    asked = bool(rng.random() < 0.5)
    order = rng.permutation(2)

    def outcomes(state: State, action: int) -> list[tuple[float, State | None, float]]:
        one, two, phase, left = state
        wish = int(order[action])
        if left:
            left -= 1
        elif (wish != phase) if asked else wish == 1:
            phase, left = 1 - phase, lost
        queues = [one, two]
        if not left:
            queues[phase] = max(queues[phase] - leave, 0)
        result: list[tuple[float, State | None, float]] = []
        for i, p in enumerate(arrivals[0]):
            for j, q in enumerate(arrivals[1]):
                first, second = queues[0] + i, queues[1] + j
                turned = max(first - room, 0) + max(second - room, 0)
                first, second = min(first, room), min(second, room)
                reward = -minutes * (first + second + fine * turned)
                result.append((p * q, (first, second, phase, left), float(reward)))
        return result

    model, states = explored({(int(rng.integers(4)), int(rng.integers(4)), 0, 0): 1.0}, 2, H, outcomes)
    return Device(model, states, lambda s: s, rng, hours=1 / 60)


FAMILY = Family(name="traffic", half="kept", make=make, H=100, episodes=runs(100))
