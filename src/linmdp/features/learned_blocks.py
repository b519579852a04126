"""Learned features with weights for each action, and with the step of the episode."""

from __future__ import annotations

import math
from typing import ClassVar

import numpy as np

from linmdp.features.base import FeatureMap
from linmdp.features.blocks import BlockFeatures
from linmdp.features.learned import LearnedModel
from linmdp.types import Array, State


def features_of(model: LearnedModel, H: int, blocks: bool, clock: int) -> FeatureMap:
    """The model's features; with `blocks` weights for each action, with `clock` functions of the step beside them."""
    if blocks:
        return LearnedBlocks(model, H, clock)
    return LearnedWithClock(model, H, clock) if clock else model


def clock_functions(steps: np.ndarray, H: int, count: int) -> Array:
    """cos(pi j h / H) / sqrt(count) for j = 0, ..., count - 1 of n steps, (n, count): norm at most 1."""
    angles = np.pi / H * np.asarray(steps, dtype=np.float64)[:, None] * np.arange(count)
    return np.cos(angles) / math.sqrt(count)


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
        self.model, self.H, self.functions, self.clock = model, H, clock, clock > 0

    def psi(self, states: np.ndarray) -> Array:
        """(n, p)"""
        if not self.clock:
            return self.model.psi(states)
        return beside(self.model.psi(states[:, :-1]), clock_functions(states[:, -1], self.H, self.functions))


class LearnedWithClock:
    """phi(s, a) of the model beside functions of the step, the same for all actions."""

    bound = 1.0

    def __init__(self, model: LearnedModel, H: int, clock: int) -> None:
        self.model, self.H, self.functions, self.clock = model, H, clock, True
        self.A, self.d = model.A, model.d + clock

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
        clock = clock_functions(states[:, -1], self.H, self.functions)
        return beside(self.model.batch(states[:, :-1]), np.repeat(clock[:, None], self.A, axis=1))


def beside(one: Array, other: Array) -> Array:
    """Two vectors of norm at most 1 as one of norm at most 1."""
    return np.concatenate((one, other), axis=-1) / math.sqrt(2)
