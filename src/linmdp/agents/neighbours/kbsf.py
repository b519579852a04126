"""Kernel-based stochastic factorisation, incremental (Barreto, Precup, Pineau, 2016)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from linmdp.agents.base import Component
from linmdp.agents.neighbours.base import EpsilonGreedy, Growth
from linmdp.agents.neighbours.inputs import Inputs
from linmdp.agents.neighbours.representatives import Representatives
from linmdp.errors import check_number
from linmdp.types import Array, State, Task

SWEEPS = 1000
"""Of value iteration, at most."""
TOLERANCE = 1e-6
"""It ends when no value moves by more than this share of the largest."""
LEAST = 1e-200
"""Of a sum of kernels: with less, nothing near was seen, and one over it is not finite."""


class FactoredModel(Component):
    """The model of M representative states: row i of action a is W_i^a-weighted over all transitions of a so far.

    Attributes
    ----------
    W : (A, M) sum over transitions l of k(z_i, s_l)
    R : (A, M) sum of k(z_i, s_l) r_l
    P : (A, M, M) sum of k(z_i, s_l) kappa(s'_l, z_j): the product of the two stochastic factors, times W
    Q : (M, A) of the model
    """

    _arrays = ("W", "R", "P", "Q")

    def __init__(self, M: int, A: int) -> None:
        self.W, self.R, self.P, self.Q = np.zeros((A, M)), np.zeros((A, M)), np.zeros((A, M, M)), np.zeros((M, A))

    def add(self, action: int, K: Array, D: Array, reward: Array) -> None:
        """Transitions of one action: K (m, n) has k(z_i, s_l), D (n, m) has kappa(s'_l, z_j), 0 after an end."""
        m = len(K)
        self.W[action, :m] += K.sum(axis=1)
        self.R[action, :m] += K @ reward
        self.P[action, :m, :m] += K @ D

    def solve(self, m: int, discount: float) -> None:
        """Q of the first m states, by value iteration from the last one; 0 for pairs near which nothing was seen."""
        W = self.W[:, :m]
        seen = np.divide(1.0, W, out=np.zeros_like(W), where=W > LEAST)
        r, P = self.R[:, :m] * seen, self.P[:, :m, :m] * seen[..., None]
        V = self.Q[:m].max(axis=1)
        for _ in range(SWEEPS):
            Q = r + discount * (P @ V)
            before, V = V, Q.max(axis=0)
            if np.abs(V - before).max() <= TOLERANCE * np.abs(V).max():
                break
        self.Q[:m] = Q.T


class KBSF(EpsilonGreedy):
    """Incremental KBSF: a model of at most M representative states, in memory that does not grow.

    A transition counts in row z_i with k(z_i, s) = exp(-|z_i - s|^2 / tau^2), and leads to z_j with the normalised
    kernel of width tau_bar at s'. Q of a state is the mean of that of the representatives, with the same kernel.
    Differences: distances are in units of each coordinate's deviation so far, so old transitions keep the weights of
    their time; a state becomes a representative when it is farther than `spacing` from all; all kernels are Gaussian,
    and none is cut off; play is epsilon-greedy; a finite state is a representative of its own, with a kernel of 0
    to all others.

    Parameters
    ----------
    M : representative states; default: all of at most 1,000 finite states, else 300
    tau, tau_bar : widths of the kernels
    spacing : the distance from all others at which a state becomes a representative
    replan : solve the model when the number of steps has grown by this fraction
    """

    name = "kbsf"
    test_parameters = ({}, {"M": 8, "replan": 0.0})
    _members = ("_places", "_model", "_growth")

    def __init__(
        self,
        task: Task,
        *,
        M: int | None = None,
        tau: float = 0.2,
        tau_bar: float = 0.2,
        spacing: float = 0.2,
        replan: float = 0.1,
        **common: Any,
    ) -> None:
        super().__init__(task, **common)
        self.M, self.tau, self.tau_bar, self.spacing, self.replan = M, tau, tau_bar, spacing, replan
        self.inputs = Inputs(self.name, task)
        self._tau = check_number(self.name, "tau", tau, low=0.0, open_low=True)
        self._tau_bar = check_number(self.name, "tau_bar", tau_bar, low=0.0, open_low=True)
        self._places = Representatives(self.name, task, self.inputs, M, spacing)
        self._model, self._growth = FactoredModel(len(self._places.Z), task.A), Growth(self.name, replan)

    def begin_episode(self) -> None:
        super().begin_episode()
        if self._growth.due():
            self._model.solve(self._places.m, self._discount)
            self._planned()

    def _near(self, X: Array) -> Array:
        """kappa(x, z_j) of n vectors, (n, m): each row sums to 1."""
        far = self._places.squared(X)
        weights = np.exp(-(far - far.min(axis=1, keepdims=True)) / self._tau_bar**2)
        found: Array = weights / weights.sum(axis=1, keepdims=True)
        return found

    def _q(self, h: int, states: Sequence[State]) -> Array:
        m = self._places.m
        return self._near(self.inputs(h, states)) @ self._model.Q[:m] if m else np.zeros((len(states), self.task.A))

    def observe(self, h: int, state: State, action: int, reward: float, next_state: State, terminated: bool) -> None:
        super().observe(h, state, action, reward, next_state, terminated)
        self._growth.steps += 1
        if self._places.note(h, state, action, reward, next_state, terminated):
            self._learn()

    def end_episode(self) -> None:
        super().end_episode()
        self._learn()

    def _learn(self) -> None:
        """Take up new representatives, add the new transitions to the model, and forget them."""
        X, Y, action, reward, ended = self._places.taken()
        K = np.exp(-self._places.squared(X).T / self._tau**2)
        D = self._near(Y) * ~ended[:, None]
        for a in range(self.task.A):
            of = action == a
            self._model.add(a, K[:, of], D[of], reward[of])
