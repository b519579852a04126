"""Stream Q(lambda) (Elsayed, Vasan, Mahmood, 2024): a network that learns from each step once, and keeps none."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from linmdp.agents.base import Component
from linmdp.agents.neighbours.base import EpsilonGreedy
from linmdp.agents.neighbours.inputs import TINY, Inputs, RunningMoments
from linmdp.agents.neighbours.network import Network
from linmdp.errors import check_int, check_number
from linmdp.types import Array, State, Task


class StreamQ(EpsilonGreedy):
    """Stream Q(lambda): sparse initialisation, layer normalisation, observations and rewards normalised, ObGD.

    As in the authors' program the step is an observation, and an episode of H steps ends there. Differences: epsilon
    falls with the episodes, as nobody knows the steps beforehand, and for half of them, not a twentieth; a unit keeps
    at least one of its incoming weights, which rounding takes from short observations there; finite states are
    one-hot; the exact regret of an episode is that of the policy with which it began.

    Parameters
    ----------
    hidden : units of each of the two hidden layers
    lr, kappa : the largest step size, and how far below overshooting it is held
    trace_decay : lambda of the traces
    """

    name = "stream-q"
    test_parameters = ({}, {"hidden": 8, "explore": 0.0, "epsilon": 0.2})
    _members = ("_net", "_seen", "_paid", "_now")

    def __init__(
        self,
        task: Task,
        *,
        hidden: int = 32,
        lr: float = 1.0,
        kappa: float = 2.0,
        trace_decay: float = 0.8,
        discount: float = 0.99,
        epsilon: float = 0.01,
        explore: float = 0.5,
        episodes: int | None = None,
    ) -> None:
        super().__init__(task, discount=discount, epsilon=epsilon, explore=explore, episodes=episodes)
        self.hidden, self.lr, self.kappa, self.trace_decay = hidden, lr, kappa, trace_decay
        units = check_int(self.name, "hidden", hidden, low=1)
        self._lr = check_number(self.name, "lr", lr, low=0.0, open_low=True)
        self._kappa = check_number(self.name, "kappa", kappa, low=0.0)
        self._decay = self._discount * check_number(self.name, "trace_decay", trace_decay, low=0.0, high=1.0)
        self.inputs = Inputs(self.name, task, one_hot=True, clock=True)
        self._net = Network(self.inputs.size, units, task.A)
        self._seen, self._paid, self._now = RunningMoments(self.inputs.size), RunningMoments(1), Now(self.inputs.size)

    def begin_episode(self) -> None:
        super().begin_episode()
        if self._k == 1:  # not before: the run loop brings the generator
            self._net.initialise(self.rng)

    def _q(self, h: int, states: Sequence[State]) -> Array:
        return self._net.forward(self._seen.normalised(self.inputs(h, states)))[0]

    def observe(self, h: int, state: State, action: int, reward: float, next_state: State, terminated: bool) -> None:
        super().observe(h, state, action, reward, next_state, terminated)
        ended, now, net = terminated or h == self.task.H - 1, self._now, self._net
        if h == 0:
            now.x[:] = self._observed(0, state)
        following = self._observed(h + 1, next_state)
        now.total[:] = self._discount * now.total * (not ended) + reward
        self._paid.add(now.total)
        (q, later), passed = net.forward(np.concatenate([now.x, following]))
        target = reward / math.sqrt(float(self._paid.variance[0]) + TINY)
        if not ended:
            target += self._discount * float(later.max())
        net.accumulate(self._decay, passed, action)
        net.step(target - float(q[action]), self._lr, self._kappa)
        if ended or action != int(q.argmax()):
            net.trace[:] = 0.0
        now.x[:] = following
        self.updates += 1

    def _observed(self, h: int, state: State) -> Array:
        """A state as an input, (1, size), normalised with what was seen up to it."""
        x = self.inputs(h, [state])
        self._seen.add(x[0])
        return self._seen.normalised(x)

    def end_episode(self) -> None:
        super().end_episode()
        self._net.trace[:] = 0.0
        self.policy_version += 1


class Now(Component):
    """The input of the current step, and the discounted sum of the rewards that scales them."""

    _arrays = ("x", "total")

    def __init__(self, size: int) -> None:
        self.x, self.total = np.zeros((1, size)), np.zeros(1)
