"""Online LSPI (Lagoudakis, Parr, 2003; Busoniu et al., 2010): least squares for Q of the greedy policy."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from linmdp.agents.base import Component
from linmdp.agents.neighbours.base import EpsilonGreedy, Growth
from linmdp.errors import InvalidParameter, check_number
from linmdp.types import Array, State, Task

LARGEST_D = 4096
"""The largest d of which a d x d matrix is solved again and again."""


class LSTDQ(Component):
    """The equations G w = z of LSTD-Q, with G = lam I + sum phi (phi - gamma phi')' and z = sum phi r.

    Parameters
    ----------
    d : length of phi
    lam : what G begins with
    """

    _arrays = ("G", "z", "w")

    def __init__(self, d: int, lam: float) -> None:
        self.G, self.z, self.w = lam * np.eye(d), np.zeros(d), np.zeros(d)

    def add(self, phi: Array, reward: float, following: Array) -> None:
        """One transition; `following` is gamma phi(s', a'), zero after a terminal state."""
        at = phi.nonzero()[0]  # of unit vectors and blocks these are few
        self.G[at] += np.multiply.outer(phi[at], phi - following)
        self.z[at] += phi[at] * reward

    def solve(self) -> None:
        """The weights of the equations so far."""
        try:
            self.w[:] = np.linalg.solve(self.G, self.z)
        except np.linalg.LinAlgError:  # G is not symmetric: nothing keeps it from being singular
            self.w[:] = np.linalg.lstsq(self.G, self.z, rcond=None)[0]


class LSPI(EpsilonGreedy):
    """Online LSPI with the features of the task: each step is added for the greedy policy of its time, then forgotten.

    LSPI improves its policy on all samples again and again; the online variant adds each once, so that memory is d^2.
    Differences: the policy is improved before episodes, when the steps have grown by a fraction, not after a fixed
    number of steps, and so it stands during an episode; epsilon falls with the episodes, in a line.

    Parameters
    ----------
    lam : what is on the diagonal at first
    replan : improve the policy when the number of steps has grown by this fraction; 0: before every episode
    """

    name = "lspi"
    test_parameters = ({}, {"replan": 0.0, "lam": 1.0})
    _members = ("_equations", "_growth")

    def __init__(self, task: Task, *, lam: float = 0.01, replan: float = 0.05, **common: Any) -> None:
        super().__init__(task, **common)
        self.lam, self.replan = lam, replan
        start = check_number(self.name, "lam", lam, low=0.0, open_low=True)
        if task.d > LARGEST_D:
            raise InvalidParameter(f"The features of a task for lspi must have d at most {LARGEST_D}. Got {task.d}.")
        self._equations = LSTDQ(task.d, start)
        self._growth = Growth(self.name, replan)

    def begin_episode(self) -> None:
        super().begin_episode()
        if self._growth.due():
            self._equations.solve()
            self._planned()

    def _q(self, h: int, states: Sequence[State]) -> Array:
        q: Array = self.task.features.batch(np.asarray(states)) @ self._equations.w
        return q

    def observe(self, h: int, state: State, action: int, reward: float, next_state: State, terminated: bool) -> None:
        super().observe(h, state, action, reward, next_state, terminated)
        phi, following = self.task.features.batch(np.asarray([state, next_state]))
        later = following[int((following @ self._equations.w).argmax())]
        self._equations.add(phi[action], reward, self._discount * (not terminated) * later)
        self._growth.steps += 1
