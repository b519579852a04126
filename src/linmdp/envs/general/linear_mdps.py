"""Random linear MDPs: what an action does is a hidden mixture of a few things that may happen."""

from __future__ import annotations

import numpy as np
from gymnasium import spaces

from linmdp.envs.general.base import Table, TableInstance, family, runs


@family("linear_mdps", "kept", H=30, episodes=runs(20))
def linear_mdps(rng: np.random.Generator) -> TableInstance:
    """Random linear MDPs: what an action does is a hidden mixture of a few things that may happen.

    P(s' | s, a) = <phi(s, a), mu(s')> and r(s, a) = <phi(s, a), theta>, with phi(s, a) drawn from the unit simplex;
    each of its d numbers stands for a distribution of the next state and for a reward.

    Drawn: the numbers of states and actions, d, how mixed phi and mu are, theta, scale and offset of the rewards, noise
    on them, the distribution of the first state, H, and whether a state is shown as its number or as the vector of its
    features, phi of all its actions. The best return is exact.
    """
    S, A, d, H = (int(rng.integers(low, high + 1)) for low, high in ((8, 30), (2, 5), (3, 8), (10, 30)))
    phi = rng.dirichlet(np.full(d, rng.uniform(0.1, 0.5)), size=(S, A))
    mu = rng.dirichlet(np.full(S, rng.uniform(0.05, 0.5)), size=d)
    unit = rng.uniform(0.3, 5.0)
    theta = unit * (rng.beta(0.5, 1.0, size=d) + rng.choice([0.0, 0.0, -1.0]))
    start = np.full(S, 1 / S) if rng.random() < 0.5 else np.eye(S)[0]
    model = Table(
        H=H,
        chance=phi @ mu,
        next=np.broadcast_to(np.arange(S), (S, A, S)),
        reward=np.broadcast_to((phi @ theta)[:, :, None], (S, A, S)),
        over=np.zeros((S, A, S), dtype=np.bool_),
        start=start,
    )
    noise, ends = unit * float(rng.choice([0.0, 0.1])), bool(rng.random() < 0.5)
    if rng.random() < 0.5:
        return TableInstance(model, noise=noise, ends=ends)
    seen = phi.reshape(S, A * d).astype(np.float32)
    space = spaces.Box(0.0, 1.0, (A * d,), np.float32)
    return TableInstance(model, space=space, shown=lambda s: seen[s].copy(), noise=noise, ends=ends)
