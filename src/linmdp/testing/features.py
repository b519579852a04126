"""What every feature map owes."""

from __future__ import annotations

from typing import Any

import numpy as np

from linmdp.errors import InvalidData
from linmdp.features.base import FeatureMap, check_phi
from linmdp.features.unit import LARGEST_DENSE, UnitFeatures

FEW = 20
"""Unit vectors are written out for so many states: for all, they would not fit."""


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
    unit = isinstance(features, UnitFeatures)
    if unit:
        _check_places(features, states)
        states = states[:FEW] if d <= LARGEST_DENSE else states[:0]
        if not len(states):
            return
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
    if S is not None and not unit:
        require(features.table().shape == (S, A, d), f"{who}: table() must have shape {(S, A, d)}")


def _check_places(features: UnitFeatures, states: Any) -> None:
    """Of unit vectors: each place of a 1 belongs to one state and one action."""
    who, places = type(features).__name__, np.array([features.index(s) for s in states])
    require(places.shape == (len(states), features.A), f"{who}: index(state) must have shape {(features.A,)}")
    require(((places >= 0) & (places < features.d)).all(), f"{who}: index(state) must be in [0, {features.d - 1}]")
    different = np.unique(places[:, 0], return_index=True)[1]
    apart = len(np.unique(places[different])) == places[different].size
    require(apart, f"{who}: no two states or actions may share an index")
    if features.d <= LARGEST_DENSE:
        some = states[:FEW]
        require(
            np.array_equal(features.batch(some).argmax(axis=2), places[: len(some)]),
            f"{who}: phi must be the unit vector of index",
        )
