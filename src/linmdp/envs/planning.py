"""Exact planning in a known linear MDP, by its low rank: O(H S A d), never an S x S matrix. Or in any other `Model`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, Protocol

import numpy as np

from linmdp.envs.base import LinearModel
from linmdp.errors import InvalidData
from linmdp.features.bilinear import BilinearFeatures
from linmdp.features.tabular import TableFeatures
from linmdp.types import Array, IntArray

PolicyOfStep = Callable[[int], Array | IntArray]
"""h -> (S,) actions, or (S, A) probabilities of the actions."""


class Model(Protocol):
    """A model that is known and not linear in its features: it does its own backups."""

    S: int
    A: int
    H: int

    def q(self, h: int, V: Array) -> Array:
        """r_h + P_h V for all state-action pairs, (A, S)."""


class Optimum(NamedTuple):
    """Q* (H, S, A) and V* (H+1, S), with V*_H = 0 after the last step."""

    Q: Array
    V: Array


def optimum(model: LinearModel | Model) -> Optimum:
    """Q* and V* by backward induction."""
    H, S, A = model.H, model.S, model.A
    Q, V = np.empty((H, A, S)), np.zeros((H + 1, S))
    for h in reversed(range(H)):
        Q[h] = backed_up(model, h, V[h + 1])
        V[h] = Q[h].max(axis=0)
    return Optimum(Q.transpose(0, 2, 1), V)


def policy_value(model: LinearModel | Model, policy: PolicyOfStep) -> Array:
    """V^pi (H+1, S) of a policy: `policy(h)` is (S,) actions or (S, A) probabilities."""
    H, S, A = model.H, model.S, model.A
    V = np.zeros((H + 1, S))
    states = np.arange(S)
    for h in reversed(range(H)):
        pi = policy(h)
        if pi.shape == (S,) and isinstance(model, LinearModel):
            V[h] = backup(model.theta[h], model.mu[h], _chosen(model.features, states, pi), V[h + 1])
        elif pi.shape == (S,):
            V[h] = backed_up(model, h, V[h + 1])[pi, states]
        elif pi.shape == (S, A):
            V[h] = np.einsum("as,sa->s", backed_up(model, h, V[h + 1]), pi)
        else:
            raise InvalidData(f"A policy must have shape ({S},) or ({S}, {A}) at each step. Got {pi.shape}.")
    return V


def _chosen(features: TableFeatures | BilinearFeatures, states: IntArray, actions: Any) -> Array:
    """phi of one action in each state, (d, S)."""
    if isinstance(features, BilinearFeatures):
        return features.rows(states, actions).T
    return features.columns[:, actions * len(states) + states]


def uniform_policy(model: LinearModel | Model) -> PolicyOfStep:
    """The policy that plays every action with the same probability."""
    pi = np.full((model.S, model.A), 1 / model.A)
    return lambda h: pi


def backup(theta: Any, mu: Any, columns: Any, V: Any) -> Any:
    """r + P V = <phi, theta + mu V> for the feature columns (d, n); V (..., S) -> (..., n). NumPy or torch."""
    return (theta + V @ mu.T) @ columns


def backed_up(model: LinearModel | Model, h: int, V: Array) -> Array:
    """r_h + P_h V for all state-action pairs, (A, S)."""
    if not isinstance(model, LinearModel):
        return model.q(h, V)
    if isinstance(model.features, BilinearFeatures):
        return model.features.products(model.theta[h] + V @ model.mu[h].T)
    q: Array = backup(model.theta[h], model.mu[h], model.features.columns, V)
    return q.reshape(model.A, model.S)
