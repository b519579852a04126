"""Kernel-UCBVI with representative states (Domingues, Menard, Pirotta, Kaufmann, Valko, 2021)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from linmdp.agents.base import Component
from linmdp.agents.greedy import Falling, GreedyAgent
from linmdp.agents.horizon import Horizon
from linmdp.agents.neighbours.base import Growth
from linmdp.agents.neighbours.inputs import Inputs
from linmdp.agents.neighbours.representatives import Representatives
from linmdp.errors import check_number
from linmdp.types import Array, State, Task


class Visits(Component):
    """What was counted at M representative states, and the optimistic Q that follows.

    Attributes
    ----------
    N, R : (A, M) visits and sums of rewards
    C : (A, M, M) how often z_j followed z_i; an end is nowhere in it
    Q : (H, M, A)
    """

    _arrays = ("N", "R", "C", "Q")

    def __init__(self, H: int, M: int, A: int) -> None:
        self.N, self.R, self.C = np.zeros((A, M)), np.zeros((A, M)), np.zeros((A, M, M))
        self.Q = np.zeros((H, M, A))

    def plan(self, psi: Array, beta: float, c: float, span: float, caps: Array) -> None:
        """The backup, from the last step: Q_h = min(cap_h, r + P V_(h+1) + bonus_h), with psi (m, m) between states.

        n = beta + psi N, r = psi R / n, P = psi C / n, bonus_h = c span (H - h) (sqrt(1 / n) + beta / n).
        """
        m, H = len(psi), len(caps)
        n = beta + self.N[:, :m] @ psi
        r, P = self.R[:, :m] @ psi / n, psi @ self.C[:, :m, :m] / n[..., None]
        bonus, V = c * span * (np.sqrt(1 / n) + beta / n), np.zeros(m)
        for h in reversed(range(H)):
            self.Q[h, :m] = np.minimum(r + P @ V + (H - h) * bonus, caps[h]).T
            V = self.Q[h, :m].max(axis=1)


class KernelUCBVI(GreedyAgent):
    """Kernel-UCBVI on representative states: kernel estimates of rewards and transitions, and a bonus on visits nearby.

    A transition counts at the representatives that are closest to its two states; their kernel, exp(-d^2 / 2 sigma^2),
    spreads it. Differences: distances are in units of each coordinate's deviation so far; rewards are not scaled to
    [0, 1], so the bonus is, by the width of their range; the term of the bonus for the kernel's bias, and the
    interpolation of Q with Lipschitz constants, are left out as in the authors' program, where Q of a state is that of
    the closest representative; the bonus is multiplied by c, far below the 1 of theory; it plans when the steps have
    grown by a fraction; one model serves all steps.

    Parameters
    ----------
    M : representative states; default: all of at most 1,000 finite states, else 300
    sigma : width of the kernel
    spacing : the distance from all others at which a state becomes a representative
    c : what the bonus is multiplied by
    beta : visits to nowhere that each estimate begins with
    replan : plan when the number of steps has grown by this fraction
    """

    name = "kernel-ucbvi"
    needs_features = False
    test_parameters = ({}, {"M": 8, "c": 1.0, "replan": 0.0})
    _members = ("_places", "_visits", "_growth")

    def __init__(
        self,
        task: Task,
        *,
        M: int | None = None,
        sigma: float = 0.2,
        spacing: float = 0.3,
        c: float = 0.02,
        beta: float = 0.01,
        replan: float = 0.1,
    ) -> None:
        super().__init__(task, Falling(0.0))
        self.M, self.sigma, self.spacing, self.c, self.beta, self.replan = M, sigma, spacing, c, beta, replan
        self.inputs, (low, high) = Inputs(self.name, task), task.reward_range
        self._sigma = check_number(self.name, "sigma", sigma, low=0.0, open_low=True)
        self._c, self._span = check_number(self.name, "c", c, low=0.0), high - low
        self._beta = check_number(self.name, "beta", beta, low=0.0, open_low=True)
        self._places = Representatives(self.name, task, self.inputs, M, spacing)
        self._visits, self._growth = Visits(task.H, len(self._places.Z), task.A), Growth(self.name, replan)
        self.caps: Array = Horizon(task.H).caps("remaining", high)

    def begin_episode(self) -> None:
        super().begin_episode()
        if self._growth.due():
            places = self._places
            psi = np.exp(-places.squared(places.Z[: places.m]) / (2 * self._sigma**2))
            self._visits.plan(psi, self._beta, self._c, self._span, self.caps)
            self._planned()

    def _q(self, h: int, states: Sequence[State]) -> Array:
        if not self._places.m:
            return np.zeros((len(states), self.task.A))
        q: Array = self._visits.Q[h, self._places.nearest(self.inputs(h, states))]
        return q

    def observe(self, h: int, state: State, action: int, reward: float, next_state: State, terminated: bool) -> None:
        super().observe(h, state, action, reward, next_state, terminated)
        self._growth.steps += 1
        if self._places.note(h, state, action, reward, next_state, terminated):
            self._learn()

    def end_episode(self) -> None:
        super().end_episode()
        self._learn()

    def _learn(self) -> None:
        """Take up new representatives, count the new transitions at them, and forget these."""
        X, Y, action, reward, ended = self._places.taken()
        here, there = self._places.nearest(X), self._places.nearest(Y)
        np.add.at(self._visits.N, (action, here), 1.0)
        np.add.at(self._visits.R, (action, here), reward)
        np.add.at(self._visits.C, (action[~ended], here[~ended], there[~ended]), 1.0)
