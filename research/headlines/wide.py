"""An environment of one's own: a small MDP seen through many features, nearly all of which mean nothing.

linmdp sweep sketch.toml --import wide --out DIR      from this folder
"""

from __future__ import annotations

import numpy as np

import linmdp
from linmdp.runner.registry import make_model


@linmdp.register_env("wide")
def wide(d: int = 160) -> linmdp.LinearModel:
    """`synthetic:S=100,A=5,d=10,H=20` through d features: its 10, and others that decay, mixed by a rotation."""
    model, rng = make_model("synthetic:S=100,A=5,d=10,H=20"), np.random.default_rng(1)
    more = rng.normal(size=(model.S, model.A, d - model.d)) * 0.03 * 0.95 ** np.arange(d - model.d)
    rotation = np.linalg.qr(rng.normal(size=(d, d)))[0]
    table = np.concatenate([model.features.table(), more], axis=-1) @ rotation
    return linmdp.LinearModel(
        name="wide",
        features=linmdp.TableFeatures(table, bound=2.0),
        theta=model.theta @ rotation[: model.d],
        mu=rotation[: model.d].T @ model.mu,
        noise=model.noise,
    )
