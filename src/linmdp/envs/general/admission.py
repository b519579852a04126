"""Admission to a queue: who comes to the door is let in or sent away, and whoever waits costs.

At most one customer comes at each step, of one of two or three kinds that pay differently. Letting one in pays at once;
sending one away costs a little, in some instances. Whoever is in the queue costs money for each step that it waits,
and one server ends a service with some chance a step. A customer who is let into a full room leaves angrily, which is
a fine. In half of the instances nobody pays, and who is sent away costs that instead (a duty to serve). Shown are the
number in the queue and the kind at the door (0: nobody), sometimes as whole numbers, else as numbers of a display.
"""

from __future__ import annotations

import numpy as np
from gymnasium import spaces

from linmdp.envs.general.base import Family, TableInstance, runs
from linmdp.envs.general.display import Device
from linmdp.envs.general.explored import explored

State = tuple[int, int]
"""Customers in the queue, kind at the door."""


def make(rng: np.random.Generator) -> TableInstance:
    """Draw customers, a room and a server."""
    H, room, kinds = int(rng.integers(40, 101)), int(rng.integers(6, 16)), int(rng.integers(2, 4))
    served = rng.uniform(0.3, 0.7)
    crowd = min(served * rng.uniform(0.8, 1.8), 0.95)
    shares = np.concatenate([[1 - crowd], crowd * rng.dirichlet(np.full(kinds, 4.0))])
    unit = float(rng.choice([0.1, 1.0, 30.0]))
    wait = unit * rng.uniform(0.5, 1.5)
    pays = wait / served * np.concatenate([[0.0], np.sort(rng.uniform(0.3, 6.0, kinds))])
    refusal, fine = wait * float(rng.choice([0.0, 1.0])), wait * rng.uniform(2.0, 8.0)
    duty = bool(rng.random() < 0.5)  # nobody pays: who is sent away costs what others would earn
    let_in = int(rng.integers(2))

    def outcomes(state: State, action: int) -> list[tuple[float, State | None, float]]:
        n, kind = state
        reward = -wait * n
        if kind and action == let_in:
            reward += (0.0 if duty else pays[kind]) if n < room else -fine - duty * pays[kind]
            n = min(n + 1, room)
        elif kind:
            reward -= refusal + duty * pays[kind]
        result: list[tuple[float, State | None, float]] = []
        for done, p in ((1, served), (0, 1 - served)):
            after = n - done if n else 0
            result += [(p * share, (after, other), float(reward)) for other, share in enumerate(shares)]
        return result

    first = int(rng.integers(room // 2 + 1))
    model, states = explored({(first, kind): float(p) for kind, p in enumerate(shares)}, 2, H, outcomes)
    if rng.random() < 0.4:
        space = spaces.MultiDiscrete([room + 1, kinds + 1])
        ends = bool(rng.random() < 0.5)
        return TableInstance(model, space=space, shown=lambda s: np.array(states[s]), ends=ends)
    return Device(model, states, lambda s: s, rng, hours=1 / 12)


FAMILY = Family(name="admission", half="kept", make=make, H=100, episodes=runs(100))
