"""Learned features with weights for each action, and with the step of the episode."""

from __future__ import annotations

import math
from typing import ClassVar

import numpy as np

from linmdp.features.base import FeatureMap
from linmdp.features.blocks import BlockFeatures
from linmdp.features.learned import LearnedModel
from linmdp.types import Array, State

WEIGHTS = ("shared", "added", "blocks")
"""What actions share: all weights of phi(s, a); those, with a weight of each action added; or none."""


def features_of(model: LearnedModel, H: int, actions: str, clock: int) -> FeatureMap:
    """The model's features with that of `WEIGHTS`, and with so many functions of the step beside them."""
    if actions == "blocks":
        return LearnedBlocks(model, H, clock)
    return LearnedBeside(model, H, clock, added=actions == "added") if clock or actions == "added" else model


def clock_functions(steps: np.ndarray, H: int, count: int) -> Array:
    """cos(pi j h / H) / sqrt(count) for j = 0, ..., count - 1 of n steps, (n, count): norm at most 1."""
    angles = np.pi / H * np.asarray(steps, dtype=np.float64)[:, None] * np.arange(count)
    return np.cos(angles) / math.sqrt(count)


class Clock:
    """Functions of the step, which is the last number of a state, if there are any; else the constant 1.

    Parameters
    ----------
    H : steps of an episode
    count : number of functions; 0 for none
    """

    def __init__(self, H: int, count: int) -> None:
        self.H, self.count = H, count

    def apart(self, states: np.ndarray) -> tuple[np.ndarray, Array]:
        """What the model sees of n states, and the functions, (n, max(count, 1))."""
        if not self.count:
            return states, np.ones((len(states), 1))
        return states[:, :-1], clock_functions(states[:, -1], self.H, self.count)


class LearnedBlocks(BlockFeatures):
    """psi(s) in the block of action a: psi of the model, which does not look at the action, and functions of the step.

    Parameters
    ----------
    model : the learned features
    H : steps of an episode
    clock : number of functions of the step, which is then the last number of a state; 0 for none
    """

    name: ClassVar = "linearized"

    def __init__(self, model: LearnedModel, H: int, clock: int) -> None:
        super().__init__(model.A, model.d + clock)
        self.model, self.clock, self._clock = model, clock > 0, Clock(H, clock)

    def psi(self, states: np.ndarray) -> Array:
        """(n, p)"""
        seen, functions = self._clock.apart(states)
        psi = self.model.psi(seen)
        return beside(psi, functions) if self.clock else psi


class LearnedBeside:
    """phi(s, a) of the model beside functions of the step: in the block of action a if `added`, else for all actions.

    Parameters
    ----------
    model, H, clock : as for `LearnedBlocks`; without a clock the function is 1, so that each action has a weight
    """

    bound = 1.0

    def __init__(self, model: LearnedModel, H: int, clock: int, *, added: bool) -> None:
        self.model, self.clock, self.added, self._clock = model, clock > 0, added, Clock(H, clock)
        self.A, self.d = model.A, model.d + (model.A * max(clock, 1) if added else clock)

    @property
    def nbytes(self) -> int:
        """Bytes of the model."""
        return self.model.nbytes

    def phi(self, state: State) -> Array:
        """Features of `state`, (A, d)."""
        phi: Array = self.batch(np.asarray(state)[None])[0]
        return phi

    def batch(self, states: np.ndarray) -> Array:
        """Features of n states, (n, A, d)."""
        seen, functions = self._clock.apart(states)
        own = np.eye(self.A) if self.added else np.ones((self.A, 1))
        others = np.einsum("ab,nk->nabk", own, functions).reshape(len(states), self.A, -1)
        return beside(self.model.batch(seen), others)


def beside(one: Array, other: Array) -> Array:
    """Two vectors of norm at most 1 as one of norm at most 1."""
    return np.concatenate((one, other), axis=-1) / math.sqrt(2)
