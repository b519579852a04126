"""A catalogue of many items: up to a million actions, exactly linear, with V* by planning."""

from __future__ import annotations

import numpy as np

from linmdp.envs.base import LinearModel, stationary
from linmdp.errors import check_int, check_number
from linmdp.features.bilinear import BilinearFeatures


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
    steps = stationary(theta, mu, H)
    features = BilinearFeatures(F, psi)
    return LinearModel(name="catalogue", features=features, theta=steps[0], mu=steps[1], noise=noise, start=start)
