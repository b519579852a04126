"""Has a unit vector changed? A test of the latest episodes against those before them, for tasks with finite states.

What follows a unit vector, a next state and a reward, does not depend on the policy, but on the model alone. With old
and new counts of next states a and b, and rewards scaled to [0, 1] counted as wins of a coin, the logarithm of the
likelihood ratio for "another law since" is

    L(a) + L(b) - L(a + b),   L(c) = sum_j c_j log(c_j / sum c),

for the states and for the coin; a coin is the least certain of all laws on [0, 1] with its mean. Less
1/2 J log(1 + |a||b| / (|a| + |b|)), J the number of free parameters, it is about the logarithm of a Bayes factor
(Schwarz). A unit vector is thought to have changed with the chance SHARE, whatever the others did.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, ClassVar

import numpy as np

from linmdp.agents.schedules.base import Alert, Schedule, Step
from linmdp.features.unit import UnitFeatures, unit_index
from linmdp.types import Array, IntArray, Task

LATEST = (1, 2, 4, 8, 16, 32)
"""Numbers n of latest episodes that are compared with all before them, every n/4 episodes."""

CLOSE = math.log(10)
"""Fewer episodes are kept where their odds are this close to the best: one of the old model does more harm."""

SLOW = 16
"""A change that takes so many episodes to see is slow: what was not met in them stays known."""

SHARE = 0.1
"""Of the unit vectors, those that a change is thought to reach."""

LARGEST = 1 << 15
"""Counts of next states, at most; where there would be more, nobody tests them."""

ROUNDING = 1e-9
"""Odds above the limit by less than this are equal to it: where nothing is known both may be 0."""


class Changes(Alert):
    """Restart when what follows some unit vectors has changed; keep the episodes since.

    Attributes
    ----------
    index : (S, A) the unit vector of each pair
    counts : (rows, S + 1) how often a unit vector (of a regression) led to each state, or to the end
    wins : (rows,) the sum of its scaled rewards
    latest : (N, H, 4) steps of the latest N episodes: row, state, action and what followed
    rewards : (N, H) of these
    lengths : (N,) steps of these; the last episode is at the end of all three
    n : episodes since the last restart; kept : of these, at its time
    """

    batched = False
    _arrays: ClassVar[tuple[str, ...]] = ("counts", "wins", "latest", "rewards", "lengths")
    _counters: ClassVar = (*Alert._counters, "n", "kept")
    _derived: ClassVar = (*Schedule._derived, "index")

    def __init__(
        self,
        G: int,
        index: IntArray,
        d: int,
        H: int,
        reward_range: tuple[float, float],
        false_alarms: float,
        fraction: float = 0.0,
        *,
        by_steps: bool = False,
    ) -> None:
        super().__init__(G, fraction, by_steps=by_steps)
        S, N = len(index), LATEST[-1]
        self.index, self._low, self._range = index, reward_range[0], max(reward_range[1] - reward_range[0], 1e-12)
        self.false_alarms, self.n, self.kept = false_alarms, 0, 0
        self.counts, self.wins = np.zeros((G * d, S + 1)), np.zeros(G * d)
        self.latest, self.rewards = np.zeros((N, H, 4), dtype=np.int32), np.zeros((N, H))
        self.lengths = np.zeros(N, dtype=np.int64)
        self._older: list[Step] = []  # between the decision and what is stored again

    def kept_steps(self) -> int | None:
        changed = self._changed()
        if changed:
            self._keep(changed)
        for part in (self.latest, self.rewards, self.lengths):
            part[:-1] = part[1:]
        self.lengths[-1] = 0
        self.n += 1
        return int(self.counts.sum()) if changed else None

    def forget(self) -> None:
        self.counts[:], self.wins[:], self.kept, self.n, self._older = 0.0, 0.0, 0, 1, []

    def saw(self, g: int, step: Step) -> None:
        i, row = int(self.lengths[-1]), int(self.index[step.state, step.action]) * len(self._all) + g
        to = self.counts.shape[1] - 1 if step.terminated else step.next_state
        self.latest[-1, i], self.rewards[-1, i] = (row, step.state, step.action, to), step.reward
        self.lengths[-1] += 1
        self._count(row, to, step.reward)

    def _count(self, rows: Any, to: Any, rewards: Any) -> None:
        np.add.at(self.counts, (rows, to), 1.0)
        np.add.at(self.wins, rows, self._scaled(rewards))

    def _scaled(self, rewards: Any) -> Any:
        return (rewards - self._low) / self._range

    def _latest(self, n: int) -> tuple[IntArray, Array]:
        """Steps (m, 4) and rewards (m,) of the latest n episodes."""
        there = np.arange(self.latest.shape[1]) < self.lengths[-n:, None]
        return self.latest[-n:][there], self.rewards[-n:][there]

    def _changed(self) -> int:
        """How many of the latest episodes are of another model; 0 where nothing speaks for one."""
        limit = math.log(max(self.n, 1) ** 2 / self.false_alarms) + ROUNDING
        tested = (n for n in LATEST if n < self.n and self.n % max(1, n // 4) == 0)
        if not any(self.odds(n) > limit for n in tested):
            return 0
        odds = [self.odds(n) for n in range(1, min(LATEST[-1], self.n - 1) + 1)]
        return next(n for n, found in enumerate(odds, 1) if found >= max(odds) - CLOSE)

    def odds(self, n: int) -> float:
        """The logarithm of the Bayes factor for a change n episodes ago."""
        steps, rewards = self._latest(n)
        rows, where = np.unique(steps[:, 0], return_inverse=True)
        new, wins = np.zeros((len(rows), self.counts.shape[1])), np.zeros(len(rows))
        np.add.at(new, (where, steps[:, 3]), 1.0)
        np.add.at(wins, where, self._scaled(rewards))
        old = np.maximum(self.counts[rows] - new, 0.0)  # none, where fewer than n episodes are counted
        old_wins = np.clip(self.wins[rows] - wins, 0.0, old.sum(axis=1))
        factors = log_factors(old, old_wins, new, wins)
        return float(np.logaddexp(math.log(1 - SHARE), math.log(SHARE) + factors).sum())

    def _keep(self, latest: int) -> None:
        """Count these episodes alone or, if the change is slow, in place of what was counted for what they met."""
        steps, rewards = self._latest(latest)
        forgotten = np.unique(steps[:, 0]) if latest >= SLOW else slice(None)
        self.counts[forgotten], self.wins[forgotten], self.kept = 0.0, 0.0, latest
        self._older = self._summed() if latest >= SLOW else []
        self.n = self.n if latest >= SLOW else latest
        self._count(steps[:, 0], steps[:, 3], rewards)

    def _summed(self) -> list[Step]:
        """What is counted, as one step for each transition, with the mean reward of its unit vector."""
        found, G, end = [], len(self._all), self.counts.shape[1] - 1
        for row, to in np.argwhere(self.counts > 0).tolist():
            state, action = np.argwhere(self.index == row // G)[0].tolist()
            reward = self._low + self._range * float(self.wins[row] / self.counts[row].sum())
            times = float(self.counts[row, to])
            found.append(Step(row % G, state, action, reward, state if to == end else to, to == end, times))
        return found

    def recalled(self) -> Iterator[Step]:
        older, self._older = self._older, []
        yield from older
        end = self.counts.shape[1] - 1
        for e in range(len(self.lengths) - 1 - self.kept, len(self.lengths) - 1):  # the last one is about to begin
            for h in range(int(self.lengths[e])):
                _, state, action, to = self.latest[e, h].tolist()
                yield Step(h, state, action, float(self.rewards[e, h]), state if to == end else to, to == end)


def index_of(task: Task, G: int) -> IntArray | None:
    """The unit vector of each state and action, (S, A), where they can be tested; else None."""
    features, S = task.features, task.S
    if S is None or G * task.d * (S + 1) > LARGEST:
        return None
    if isinstance(features, UnitFeatures):
        return np.stack([features.index(state) for state in range(S)])
    return unit_index(features)


def log_factors(old: Array, old_wins: Array, new: Array, new_wins: Array) -> Array:
    """The logarithm of the Bayes factor for another law, of each row: counts (n, S), and wins of a coin (n,)."""
    a, b = old.sum(axis=1), new.sum(axis=1)
    ratio = gain(old, new) + gain(np.stack((old_wins, a - old_wins), 1), np.stack((new_wins, b - new_wins), 1))
    parameters = np.count_nonzero(old + new, axis=1)  # of the states one less, and one of the coin
    return np.asarray(ratio - 0.5 * parameters * np.log1p(a * b / np.maximum(a + b, 1.0)))


def gain(old: Array, new: Array) -> Array:
    """The logarithm of the likelihood ratio of two laws instead of one, for each row of counts."""
    return likelihood(old) + likelihood(new) - likelihood(old + new)


def likelihood(counts: Array) -> Array:
    """sum_j c_j log(c_j / sum c), the largest log-likelihood of counts (n, m)."""
    counts = np.maximum(counts, 0.0)
    total = counts.sum(axis=1)
    return np.asarray(_xlogx(counts).sum(axis=1) - _xlogx(total))


def _xlogx(x: Array) -> Array:
    return np.asarray(x * np.log(np.where(x > 0, x, 1.0)))
