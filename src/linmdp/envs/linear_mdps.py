"""The built-in linear MDPs, by name: a function of keyword parameters makes the model, and V* is known by planning."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from typing import Any

import numpy as np

from linmdp.envs.base import LinearModel, stationary_model
from linmdp.envs.linear_devices import inventory, sensor
from linmdp.errors import check_int, check_number, invalid
from linmdp.features.bilinear import BilinearFeatures
from linmdp.features.tabular import TableFeatures, one_hot
from linmdp.types import Array


def synthetic(
    *,
    S: int = 500,
    A: int = 15,
    d: int = 30,
    H: int = 50,
    seed: int = 0,
    noise: float = 0.02,
    concentration: float = 1.0,
    certain: float = 0.0,
    start: str = "fixed",
    stationary: bool = False,
) -> LinearModel:
    """The paper's synthetic linear MDP: features, rewards and measures, each uniform on its simplex.

    phi(s, a) and theta_h are drawn from the simplex of R^d, the measures mu_{h,1} ... mu_{h,d} from the simplex
    over the S states, all independently.

    Parameters
    ----------
    d : dimension of the features
    concentration : c of Dirichlet(c, ..., c): 1 is the paper's uniform law; below 1 the task has more contrast
    certain : share of the measures that are a single state each, so that noise is uneven
    stationary : one theta and one set of measures for all steps, so that dynamics do not depend on h
    """
    S, A, d, H = (
        check_int("synthetic", name, value, low=1) for name, value in (("S", S), ("A", A), ("d", d), ("H", H))
    )
    seed = check_int("synthetic", "seed", seed, low=0)
    c = check_number("synthetic", "concentration", concentration, low=0.0, open_low=True)
    if not isinstance(stationary, bool):
        invalid("synthetic", "stationary", "true or false", stationary)
    rng = np.random.default_rng(seed)
    features = TableFeatures(rng.dirichlet(np.full(d, c), size=(S, A)))
    steps = 1 if stationary else H
    theta: Array = rng.dirichlet(np.full(d, c), size=steps)
    mu: Array = rng.dirichlet(np.full(S, c), size=(steps, d))
    sure = round(d * check_number("synthetic", "certain", certain, low=0.0, high=1.0))
    mu[:, :sure] = np.eye(S)[mu[:, :sure].argmax(axis=-1)]
    others: dict[str, Any] = {"name": "synthetic", "features": features, "noise": noise, "start": start}
    if stationary:
        return stationary_model(H, theta[0], mu[0], **others)
    return LinearModel(theta=theta, mu=mu, **others)


def hypercube(
    *, d: int = 5, H: int = 10, gap: float = 1.0, seed: int = 0, noise: float = 0.0, start: str = "fixed"
) -> LinearModel:
    """The lower-bound instance: at each step one sign vector out of 2^(d-1) is best, and only slightly.

    States are a chain x_1, ..., x_{H+1} and an absorbing goal that pays 1 per step. In x_h the action
    a in {-1, 1}^(d-1) reaches the goal with probability delta + <m_h, a>, delta = 1/H, and x_{h+1} otherwise.
    The hidden m_h in {-D, D}^(d-1) has (d-1) D = `gap` * delta: the best action of each step reaches the goal
    with probability (1 + gap) delta, the worst with (1 - gap) delta, and the best path is one in 2^((d-1) H).

    phi(x_h, a) = (alpha, beta a, 0) and phi(goal, a) = (0, 0, 1), all of norm 1: features live in R^(d+1).

    Parameters
    ----------
    d : actions are the 2^(d-1) sign vectors of length d - 1
    gap : how much better the best action is than the mean one, in units of 1/H: in (0, 1]
    """
    d = check_int("hypercube", "d", d, low=2, high=12)
    H = check_int("hypercube", "H", H, low=2)
    gap = check_number("hypercube", "gap", gap, low=0.0, high=1.0, open_low=True)
    rng = np.random.default_rng(check_int("hypercube", "seed", seed, low=0))

    delta = 1 / H
    D = gap * delta / (d - 1)
    alpha = math.sqrt(1 / (1 + (d - 1) * D))
    beta = math.sqrt(D) * alpha
    actions = np.array(list(itertools.product((-1.0, 1.0), repeat=d - 1)))
    m = D * rng.choice((-1.0, 1.0), size=(H, d - 1))

    S, goal = H + 2, H + 1
    table = np.zeros((S, len(actions), d + 1))
    table[:goal, :, 0] = alpha
    table[:goal, :, 1:d] = beta * actions
    table[goal, :, d] = 1.0
    mu = np.zeros((H, d + 1, S))
    steps = np.arange(H)
    mu[steps, 0, steps + 1] = (1 - delta) / alpha
    mu[steps, 1:d, steps + 1] = -m / beta
    mu[:, 0, goal] = delta / alpha
    mu[:, 1:d, goal] = m / beta
    mu[:, d, goal] = 1.0
    theta = np.zeros((H, d + 1))
    theta[:, d] = 1.0
    return LinearModel(name="hypercube", features=TableFeatures(table), theta=theta, mu=mu, noise=noise, start=start)


def lock(
    *,
    H: int = 10,
    A: int = 5,
    distractor: float = 0.01,
    seed: int = 0,
    noise: float = 0.0,
    start: str = "fixed",
) -> LinearModel:
    """A combination lock of depth H: one code of H actions pays 1 at the end, each wrong action pays a little.

    State 0 is "on the code", state 1 "off it". At step h only the action code[h] keeps the agent on; any other
    pays `distractor` at once and leads off for good, where nothing is paid. A greedy learner takes the
    distractor for ever. phi(0, a) = e_a and phi(1, a) = e_A, so d = A + 1 whatever the depth.

    Parameters
    ----------
    H : depth of the lock, and steps of an episode
    A : actions, one of which is right at each step
    distractor : what a wrong action pays at once
    seed : of the code
    """
    H = check_int("lock", "H", H, low=1)
    A = check_int("lock", "A", A, low=2)
    distractor = check_number("lock", "distractor", distractor, low=0.0, high=1.0)
    rng = np.random.default_rng(check_int("lock", "seed", seed, low=0))
    code = rng.integers(A, size=H)

    d, steps = A + 1, np.arange(H)
    table = np.zeros((2, A, d))
    table[0, np.arange(A), np.arange(A)] = 1.0
    table[1, :, A] = 1.0
    mu = np.zeros((H, d, 2))
    mu[:, :, 1] = 1.0
    mu[steps, code] = (1.0, 0.0)
    theta = np.zeros((H, d))
    theta[:, :A] = distractor
    theta[steps, code] = 0.0
    theta[H - 1, code[H - 1]] = 1.0
    return LinearModel(
        name="lock",
        features=TableFeatures(table),
        theta=theta,
        mu=mu,
        noise=noise,
        start=start,
        state_fields=(("off_the_code", 2),),
    )


def riverswim(*, S: int = 6, H: int = 20, seed: int = 0, noise: float = 0.0, start: str = "fixed") -> LinearModel:
    """RiverSwim: a chain of S states; left is safe and pays 0.005 at the bank, right is hard and pays 1 at the end.

    Action 0 swims left and always succeeds. Action 1 swims right against the current: it gains a state with
    probability 0.35, stays with 0.6 and loses one with 0.05 (0.6 and 0.4 at the bank; 0.6 to stay and 0.4 to
    slip at the far end). One-hot features, d = 2 S. Nothing in it is random: `seed` has no effect.

    Parameters
    ----------
    S : length of the river
    seed : no effect: nothing in it is random
    """
    S = check_int("riverswim", "S", S, low=2)
    H = check_int("riverswim", "H", H, low=1)
    check_int("riverswim", "seed", seed, low=0)
    P = np.zeros((S, 2, S))
    P[np.arange(S), 0, np.maximum(np.arange(S) - 1, 0)] = 1.0
    inner = np.arange(1, S - 1)
    P[inner, 1, inner + 1], P[inner, 1, inner], P[inner, 1, inner - 1] = 0.35, 0.6, 0.05
    P[0, 1, :2] = 0.4, 0.6
    P[S - 1, 1, S - 2 :] = 0.4, 0.6
    r = np.zeros((S, 2))
    r[0, 0], r[S - 1, 1] = 0.005, 1.0
    return stationary_model(
        H,
        r.reshape(-1),
        P.reshape(2 * S, S),
        name="riverswim",
        features=one_hot(S, 2),
        noise=noise,
        start=start,
        state_fields=(("place", S),),
        action_names=("left", "right"),
    )


def catalogue(
    *,
    A: int = 1000,
    S: int = 8,
    factors: int = 4,
    segments: int = 3,
    H: int = 5,
    concentration: float = 0.3,
    seed: int = 0,
    noise: float = 0.02,
    start: str = "fixed",
) -> LinearModel:
    """A shop that shows a visitor one of A items per step, H times; each item is a mixture of a few factors.

    A state is a mood of the visitor, a mixture x_s of `segments`; item a is a mixture psi_a of `factors`. Segment i
    that is shown factor j pays theta_ij, and its next mood is drawn from mu_ij: so phi(s, a) = x_s (x) psi_a,
    d = segments * factors, and dynamics do not depend on the step. Mixtures are drawn from Dirichlet laws of that
    `concentration`: below 1 most items are close to one factor.

    Parameters
    ----------
    A : items
    S : moods of the visitor
    factors, segments : of which items and moods are mixtures; d is their product
    concentration : c of the Dirichlet(c, ..., c) that mixtures are drawn from; below 1 they have more contrast
    """
    A, S, factors, segments, H = (
        check_int("catalogue", name, value, low=1, high=most)
        for name, value, most in (
            ("A", A, 10**7),
            ("S", S, 10**4),
            ("factors", factors, 64),
            ("segments", segments, 64),
            ("H", H, 10**6),
        )
    )
    c = check_number("catalogue", "concentration", concentration, low=0.0, open_low=True)
    rng = np.random.default_rng(check_int("catalogue", "seed", seed, low=0))
    psi, x = rng.dirichlet(np.full(factors, c), size=A), rng.dirichlet(np.full(segments, c), size=S)
    F = np.einsum("si,jk->sijk", x, np.eye(factors)).reshape(S, segments * factors, factors)
    theta = rng.uniform(0.1, 0.9, size=segments * factors)  # so that noise is not clipped
    mu = rng.dirichlet(np.full(S, c), size=segments * factors)
    features = BilinearFeatures(F, psi)
    return stationary_model(H, theta, mu, name="catalogue", features=features, noise=noise, start=start)


LINEAR_MDPS: dict[str, Callable[..., LinearModel]] = {
    make.__name__: make for make in (synthetic, hypercube, lock, riverswim, sensor, inventory, catalogue)
}
