"""The paper's synthetic linear MDP."""

from __future__ import annotations

import numpy as np

from linmdp.envs.base import LinearModel
from linmdp.errors import check_int, check_number, invalid
from linmdp.features.tabular import TableFeatures


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
    """Random features, rewards and measures, each uniform on its simplex.

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
    theta, mu = rng.dirichlet(np.full(d, c), size=steps), rng.dirichlet(np.full(S, c), size=(steps, d))
    sure = round(d * check_number("synthetic", "certain", certain, low=0.0, high=1.0))
    mu[:, :sure] = np.eye(S)[mu[:, :sure].argmax(axis=-1)]
    return LinearModel(
        name="synthetic",
        features=features,
        theta=np.broadcast_to(theta, (H, d)) if stationary else theta,
        mu=np.broadcast_to(mu, (H, d, S)) if stationary else mu,
        noise=noise,
        start=start,
    )
