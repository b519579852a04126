"""What every feature map owes."""

from __future__ import annotations

from typing import Any

import numpy as np

from linmdp.errors import InvalidData
from linmdp.features.base import FeatureMap, check_phi


def require(condition: Any, words: str) -> None:
    """Raise AssertionError with these words unless the condition holds."""
    if not condition:
        raise AssertionError(words)


def check_features(features: Any, states: Any = None) -> None:
    """Check a feature map on `states`, an array of several; default: all of them, for a map of finite states."""
    require(
        isinstance(features, FeatureMap),
        f"a feature map must have A, d, bound, nbytes, phi and batch: {features!r:.80}",
    )
    A, d, who = features.A, features.d, type(features).__name__
    require(isinstance(A, int) and isinstance(d, int) and A >= 1 and d >= 1, f"{who}: A and d must be at least 1")
    require(np.isfinite(features.bound) and features.bound > 0, f"{who}: the bound must be a positive number")
    require(isinstance(features.nbytes, int) and features.nbytes >= 0, f"{who}: nbytes must be a number of bytes")
    S: Any = getattr(features, "S", None)
    require(states is not None or S is not None, f"{who}: states to check it on must be given")
    states = np.arange(S) if states is None else np.asarray(states)
    before = states.copy()
    try:
        alone = [check_phi(features.phi(s), A, d, features.bound, where=f"of state {s!r:.80}") for s in states]
        batch = check_phi(features.batch(states), A, d, features.bound, where="of a batch of states")
    except InvalidData as error:
        raise AssertionError(f"{who}: {error}") from error
    require(np.array_equal(states, before), f"{who}: the states must not be changed")
    require(batch.shape == (len(states), A, d), f"{who}: batch(states) must have shape {(len(states), A, d)}")
    require(all(one.shape == (A, d) for one in alone), f"{who}: phi(state) must have shape {(A, d)}")
    agree = np.allclose(batch, np.stack(alone), rtol=1e-12, atol=1e-12)
    require(agree, f"{who}: batch(states) must equal phi of each state")
    again = all(np.array_equal(features.phi(s), one) for s, one in zip(states, alone, strict=True))
    require(again, f"{who}: phi must be the same whenever it is asked for")
    if S is not None:
        require(features.table().shape == (S, A, d), f"{who}: table() must have shape {(S, A, d)}")
