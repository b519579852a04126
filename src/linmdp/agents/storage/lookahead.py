"""Rewards of many values: all sequences of a few held actions are tried in a learned model, and valued where they end.

Over one step actions hardly differ, and a regression of Q for each action, whose targets are values of the same
regression, errs by more than that. Here each action is held for `hold` steps, V is regressed on returns as they were
earned, which adds up no errors, and actions differ by where the model says that they lead. See docs/auto.md.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np

from linmdp.agents.base import StateDict, prefixed, under
from linmdp.agents.dynamics import Dynamics
from linmdp.agents.storage.base import Parts, Sample, Storage
from linmdp.errors import InvalidData
from linmdp.features.blocks import BlockFeatures
from linmdp.features.quadratic import Quadratic
from linmdp.types import Array, BoolArray, IntArray, State, all_finite

LOOKING, RANDOM_EPISODES = 3, 7
"""Episodes of random actions: those that tell how long to hold one, and all before the first lookahead."""

MOVED, LONGEST_HOLD, SHARE = 0.15, 8, 0.1
"""An action is held until the state has moved by this share of its range, about, but for so many steps at most, and for
this share of an episode of random actions."""

RATE = 0.2
"""How much of the mean return of lookahead comes from its last episode."""

MOST_ENDS = 100
"""Sequences of actions, at most."""

MEMORY = 0.98
"""What the returns of an episode count after the next one: plans become better."""

RIDGE = 1e-5
"""The ridge parameter for each sample, of V and of rewards."""

SMALL = 1 / 3
"""What polynomials are multiplied by among the features of V: the ridge leaves more to the random ones."""

LONGEST, NUMBERS = 1000, 1 << 13
"""Steps that are kept until an episode is over, and coordinates of all their states. A longer one is cut in parts."""

MOST_COORDINATES = 100
"""States with more have other plans."""


class Lookahead(Storage):
    """Sums for three regressions, and the steps of the episode that is played: nothing that grows.

    With m = `hold`, x the quadratic form of a state s, and s' the state m steps of action a later:
        s' - s   ~ x, for each action (`Dynamics`);
        rewards  ~ c_a + eta'x + theta'(v(s') - v(s)), v the features of V: the last part is what pays for where one is;
        returns  ~ v(s), by the planner; those of older episodes count less.
    The state in which an episode ended is worth what its last reward was more than predicted.

    Attributes
    ----------
    states : (T + 1, k) of this episode; actions, rewards : (T,)
    reward_gram, reward_sums, reward_w : (q, q), (q,) and (q,)
    gram_v, sums_v, samples_v : (P, P), (P,) and () of V
    pace : (2,) sums over the first episodes: the median share of its range that a state moves by in a step, and steps
    earned : (2, 2) episodes, and mean return, of random actions and of lookahead
    hold : steps for which an action is held; 0 while nobody knows
    at_random : whether actions of this episode are random
    steps, episodes : of this episode so far; parts of episodes that were learned from
    action, left : that which is held, and for how many more steps
    """

    keeps_samples = incremental = False
    compact = own_ends = True
    _arrays: ClassVar = (
        *("states", "actions", "rewards", "reward_gram", "reward_sums", "reward_w"),
        *("gram_v", "sums_v", "samples_v", "pace", "earned"),
    )
    _counters: ClassVar = ("hold", "steps", "episodes", "action", "left", "at_random")

    def __init__(self, parts: Parts, features: BlockFeatures) -> None:
        super().__init__(parts)
        self.features, self.A = features, features.A
        self.scaling, self.quadratic = features.scaling, Quadratic(features.scaling)  # type: ignore[attr-defined]
        k, P = self.quadratic.k, value_features(features)
        self.width: Array = np.where(self.scaling.high > self.scaling.low, self.scaling.high - self.scaling.low, 1.0)
        self.depth = max(1, int(math.log(MOST_ENDS) / math.log(max(2, self.A))))
        T, q = int(np.clip(NUMBERS // k, 64, LONGEST)), self.A + self.quadratic.p - 1 + P
        self.states, self.actions, self.rewards = np.zeros((T + 1, k)), np.zeros(T, dtype=np.int32), np.zeros(T)
        self.reward_gram, self.reward_sums, self.reward_w = np.zeros((q, q)), np.zeros(q), np.zeros(q)
        self.gram_v, self.sums_v, self.samples_v = np.zeros((P, P)), np.zeros(P), np.zeros(())
        self.dynamics = Dynamics(self.A, self.quadratic)
        self.pace, self.earned = np.zeros(2), np.zeros((2, 2))
        self.hold = self.steps = self.episodes = self.action = self.left = 0
        self.at_random = 1

    _derived: ClassVar = ("width",)

    # samples

    def add(self, h: int, sample: Sample) -> None:
        i, after = self.steps, np.ravel(sample.next_state)
        if not all_finite(after):
            raise InvalidData(f"A state must be finite. Got {sample.next_state!r}.")
        if not i:
            self.states[0] = np.ravel(sample.state)
        self.states[i + 1], self.actions[i], self.rewards[i] = after, sample.action, sample.reward
        self.steps = i + 1
        if sample.terminated or self.steps == len(self.actions):
            self._learn(sample.terminated)

    def played(self, h: int, state: State, action: int) -> None:
        if self.left and action == self.action:
            self.left -= 1
        else:
            self.action, self.left = action, max(1, self.hold) - 1

    def episode_over(self, earned: float) -> None:
        """Where lookahead earns less than random actions, these play every other episode: there is more to be seen."""
        self.left = 0
        if self.steps:
            self._learn(terminated=False)
        who = self.earned[1 - self.at_random]
        who[0] += 1
        who[1] += (earned - who[1]) * max(1 / who[0], 0.0 if self.at_random else RATE)
        worse = self.earned[1, 0] > 0 and self.earned[1, 1] < self.earned[0, 1]
        self.at_random = int(self.episodes < RANDOM_EPISODES or (worse and not self.at_random))

    def _learn(self, terminated: bool) -> None:
        """An episode, or a part of it, is over."""
        n = self.steps
        self.steps, self.episodes = 0, self.episodes + 1
        if self.hold:
            self._learn_from(self.states[: n + 1], self.actions[:n], self.rewards[:n], terminated)
            return
        moves = (np.abs(np.diff(self.states[: n + 1], axis=0)) / self.width).max(axis=1)
        self.pace += float(np.median(moves)), n
        if self.episodes == LOOKING:
            move, steps = self.pace / LOOKING
            self.hold = max(1, min(LONGEST_HOLD, int(SHARE * steps), round(MOVED / max(move, 1e-9))))

    def _learn_from(self, states: Array, actions: IntArray, rewards: Array, terminated: bool) -> None:
        """states (n + 1, k), actions and rewards (n,)."""
        n, X, V = len(actions), self.quadratic(states), self.value_rows(states)
        changed = np.append(False, actions[1:] != actions[:-1])
        held = np.arange(n) - np.maximum.accumulate(changed * np.arange(n))  # steps of the same action before each
        last = n - 1 if terminated else n  # the step that ends an episode is no step like others
        self._learn_model(np.flatnonzero(held[:last] % self.hold == self.hold - 1) + 1, states, actions, rewards, X, V)
        at, returns = np.arange(0, n, self.hold), np.zeros(n + 1)
        if not terminated:
            returns[n] = V[n] @ self.w[0]
        for i in reversed(range(n)):
            returns[i] = rewards[i] + self.horizon.discount * returns[i + 1]
        samples = len(at)
        if terminated:
            i = n - 1 - int(held[-1]) % self.hold  # where the last action began
            F = self.reward_rows(actions[-1:], X[i : i + 1], V[n:] - V[i : i + 1])
            returns[n], at = returns[i] - float(F[0] @ self.reward_w), np.append(at, n)
        self._learn_values(V[at], returns[at], samples)

    def _learn_model(
        self, ends: IntArray, states: Array, actions: IntArray, rewards: Array, X: Array, V: Array
    ) -> None:
        """Of actions that were held until `ends`: where they led to, and what they paid."""
        if not len(ends):
            return
        starts, each = ends - self.hold, actions[ends - 1]
        self.dynamics.learn(X[starts], each, (states[ends] - states[starts]) / self.width, states[:-1])
        within = np.lib.stride_tricks.sliding_window_view(rewards, self.hold)[starts]
        F = self.reward_rows(each, X[starts], V[ends] - V[starts])
        self.reward_gram += F.T @ F
        self.reward_sums += within @ self.horizon.discount ** np.arange(self.hold) @ F
        ridge = RIDGE * float(self.dynamics.samples) * np.eye(len(F.T))
        self.reward_w[:] = np.linalg.solve(self.reward_gram + ridge, self.reward_sums)

    def _learn_values(self, V: Array, returns: Array, samples: int) -> None:
        for sums in (self.gram_v, self.sums_v, self.samples_v):
            sums *= MEMORY
        self.gram_v += V.T @ V
        self.sums_v += returns @ V
        self.samples_v += samples
        self.ridge.change_lam(RIDGE * float(self.samples_v))

    def clear(self, runs: Any = ...) -> None:
        for sums in (self.reward_gram, self.reward_sums, self.gram_v, self.sums_v, self.samples_v):
            sums[...] = 0.0
        self.dynamics, self.earned = Dynamics(self.A, self.quadratic), np.zeros((2, 2))
        self.steps, self.left, self.episodes, self.at_random = 0, 0, LOOKING if self.hold else 0, 1

    def fade(self, factor: float) -> None:
        for sums in (self.reward_gram, self.reward_sums, self.gram_v, self.sums_v, self.samples_v):
            sums *= factor
        self.dynamics.fade(factor)

    # features

    def value_rows(self, states: Array) -> Array:
        """The features of V, (n, P): random ones, a quadratic form, and the sizes of coordinates."""
        x = self.quadratic(states)[:, 1:] * SMALL
        return np.hstack((self.features.psi(states), x, np.abs(x[:, : self.quadratic.k])))

    def reward_rows(self, actions: IntArray, X: Array, change: Array) -> Array:
        """The features of the rewards of held actions, (n, q)."""
        return np.hstack((np.eye(self.A)[actions], X[:, 1:], change))

    # planning

    def gram(self, g: int) -> Array:
        return self.gram_v[None]

    def refresh(self, mask: BoolArray) -> None:
        self.ridge.u[0] = self.sums_v

    def target(self, h: int) -> Array:
        """Nothing is added: returns were earned to the end."""
        return np.zeros(len(self.sums_v))

    def greedy_target(self, h: int, w: Array) -> Array:
        return self.target(h)

    # acting

    def tied(self, h: int, state: State) -> IntArray:
        if self.left:
            return np.array([self.action])
        if self.at_random:
            return np.arange(self.A)
        return super().tied(h, state)

    def q_values(self, h: int, state: State) -> Array:
        """What the best sequence that begins with each action earns, by the model, and is worth at its end."""
        states: Array = np.ravel(state).astype(np.float64)[None]
        total, factor = np.zeros(1), 1.0
        step, p = self.horizon.discount ** max(1, self.hold), self.quadratic.p
        each, eta, theta = np.split(self.reward_w, (self.A, self.A + p - 1))
        begin = float(self.value_rows(states)[0] @ theta)
        for _ in range(self.depth):
            X = self.quadratic(states)
            total = (total[:, None] + factor * ((X[:, 1:] @ eta)[:, None] + each)).ravel()
            states = self.dynamics.predict(X, states, self.width).reshape(len(total), -1)
            factor *= step
        total += self.value_rows(states) @ (theta + factor * self.w[0])
        q: Array = total.reshape(self.A, -1).max(axis=1) - begin
        return q

    def best_table(self, h: int) -> BoolArray:
        raise InvalidData("A policy for all states needs finite states.")

    # memory and files

    @property
    def chosen(self) -> dict[str, Any]:
        """How it plans, how many actions ahead, and, as soon as it is known, for how many steps each is held."""
        found: dict[str, Any] = {"planning": "lookahead", "depth": self.depth}
        return found | ({"hold": self.hold} if self.hold else {})

    @property
    def nbytes(self) -> int:
        return super().nbytes + self.dynamics.nbytes

    def bytes_after(self, samples: int) -> int:
        return self.nbytes

    def state_dict(self) -> StateDict:
        return super().state_dict() | prefixed("dynamics", self.dynamics.state_dict())

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        super().load_state_dict(state)
        self.dynamics.load_state_dict(under("dynamics", state))
        if not all(np.isfinite(x).all() for x in self.state_dict().values()):
            raise InvalidData("The sums of a saved agent must be finite.")
        fits = 0 <= self.hold <= LONGEST_HOLD and 0 <= self.steps < len(self.actions)
        fits = fits and 0 <= self.left <= LONGEST_HOLD and self.at_random in (0, 1)
        if not fits or not 0 <= self.action < self.A or not ((self.actions >= 0) & (self.actions < self.A)).all():
            raise InvalidData("'hold', 'steps', 'left' and the actions of a saved agent must be those of its task.")


def value_features(features: BlockFeatures) -> int:
    """How many features V has."""
    quadratic = Quadratic(features.scaling)  # type: ignore[attr-defined]
    return features.p + quadratic.p - 1 + quadratic.k
