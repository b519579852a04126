"""Representative states, and distances to them in units of what is seen."""

from __future__ import annotations

import numpy as np

from linmdp.agents.base import Component
from linmdp.agents.neighbours.inputs import Inputs, RecentTransitions, RunningMoments
from linmdp.errors import check_int, check_number
from linmdp.types import Array, BoolArray, IntArray, State, Task

USUAL_M = 300
MOST_STATES = 1000
"""Finite states up to which each of them is a representative."""
FAR = 1e6
"""The squared distance of two different finite states: beyond every kernel."""
FEW = 64
"""Transitions that are gathered before they are learned from, or an episode: one product serves them all."""


ROUNDING = 1e-12
"""A deviation below this part of the mean is that of a coordinate that does not move."""


class Representatives(Component):
    """At most M states, no two of them closer than `spacing`, and the transitions of which they have yet to learn.

    The distance of two arrays is the root of the mean of their squared differences, each coordinate in units of its
    standard deviation so far. Two finite states are the same or far apart.

    Parameters
    ----------
    inputs : states as vectors of `size` numbers
    M : default: all of at most 1,000 finite states, else 300

    Attributes
    ----------
    Z : (M, size) the states; the first m are there
    seen : of all states so far, mean and variance
    new : transitions that nobody has learned from
    """

    _arrays = ("Z",)
    _counters = ("m",)
    _members = ("seen", "new")

    def __init__(self, owner: str, task: Task, inputs: Inputs, M: int | None, spacing: float) -> None:
        usual = task.S if task.S is not None and task.stationary and task.S <= MOST_STATES else USUAL_M
        most = check_int(owner, "M", usual if M is None else M, low=1)
        self._spacing = check_number(owner, "spacing", spacing, low=0.0)
        self.inputs, self.Z, self.m = inputs, np.zeros((most, inputs.size), dtype=np.float32), 0
        self.seen, self.new = RunningMoments(inputs.size), RecentTransitions(inputs.size, FEW)

    def note(self, h: int, state: State, action: int, reward: float, next_state: State, terminated: bool) -> bool:
        """One more transition; whether there are so many now that somebody should learn from them."""
        x, y = self.inputs(h, [state])[0], self.inputs(h + 1, [next_state])[0]
        self.seen.add(x)
        self.new.add(x, action, reward, y, terminated)
        return len(self.new) == FEW

    def taken(self) -> tuple[Array, Array, IntArray, Array, BoolArray]:
        """X, Y, actions, rewards and ends of the new transitions, which are forgotten; their states are taken up."""
        n, new = len(self.new), self.new
        new.total = 0
        self.admit(np.concatenate([new.X[:n], new.Y[:n][~new.ended[:n]]]))
        return new.X[:n], new.Y[:n], new.action[:n], new.reward[:n], new.ended[:n]

    def squared(self, X: Array) -> Array:
        """Squared distances of n vectors (n, size) to the representatives, (n, m)."""
        Z = self.Z[: self.m]
        if self.inputs.finite:
            same: BoolArray = (X.astype(np.float32)[:, None] == Z).all(axis=2)
            return np.where(same, 0.0, FAR)
        scale = np.sqrt(self.seen.variance * X.shape[1])
        moves = scale > ROUNDING * np.maximum(np.abs(self.seen.mean), 1.0)
        weight = np.divide(1.0, scale, out=np.zeros_like(scale), where=moves)
        X, Z = (X - self.seen.mean) * weight, (Z - self.seen.mean) * weight
        products = np.einsum("nk,nk->n", X, X)[:, None] - 2 * X @ Z.T + np.einsum("mk,mk->m", Z, Z)
        return np.asarray(np.maximum(products, 0.0))

    def nearest(self, X: Array) -> IntArray:
        """The closest representative of each vector, (n,)."""
        found: IntArray = self.squared(X).argmin(axis=1)
        return found

    def admit(self, X: Array) -> None:
        """Take up those of the vectors, in their order, that are far from all representatives, while there is space."""
        if self.m == 0 and len(X):
            self.Z[0], self.m = X[0], 1
        for i in (self.squared(X).min(axis=1) > self._spacing**2).nonzero()[0]:
            if self.m == len(self.Z):
                break
            if self.squared(X[i : i + 1]).min() > self._spacing**2:
                self.Z[self.m] = X[i]
                self.m += 1
