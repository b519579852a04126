"""The last transitions of each step, as states and actions: what a bounded memory keeps of its samples.

Where states are finite the same transition comes again and again. It is kept once, with the number of times.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

import numpy as np

from linmdp.agents.base import Component, saved_array
from linmdp.agents.storage.base import Sample
from linmdp.errors import InvalidData
from linmdp.features.base import FeatureMap
from linmdp.features.tabular import TableFeatures
from linmdp.types import Array, BoolArray, IntArray

COLUMNS = ("state", "following", "action", "alive", "times", "paid")


class Transitions(Component):
    """Space for M different transitions (s, a, s') of each step.

    Attributes
    ----------
    state, following : (H, M, ...) of whatever a state is; whole numbers where states are finite
    action : (H, M)
    alive : (H, M) False where s' is terminal, so that nothing follows
    times : (H, M) how often it came, or the sum of its weights
    paid : (H, M, 2) mean reward and mean squared reward, where they are wanted; else (H, M, 0)
    count : (H,) how many there are
    """

    _arrays: ClassVar = ("state", "action", "following", "alive", "times", "paid", "count")

    def __init__(self, H: int, M: int, features: FeatureMap, *, rewards: bool = False) -> None:
        self.M, self.features = M, features
        # the shape of a state that is not a number is known when the first one comes
        self.finite = finite = isinstance(features, TableFeatures)
        self.state = np.zeros((H, M) if finite else (H, 0), dtype=np.int32 if finite else np.float64)
        self.following = self.state.copy()
        self.action = np.zeros((H, M), dtype=np.int32)
        self.alive = np.zeros((H, M), dtype=np.bool_)
        self.times, self.paid = np.ones((H, M)), np.zeros((H, M, 2 * rewards))
        self.count = np.zeros(H, dtype=np.int64)

    def add(self, g: int, sample: Sample) -> None:
        """One more transition of regression g."""
        state, action, following, alive = sample.state, sample.action, sample.next_state, not sample.terminated
        if self.state.shape[1] == 0:
            seen = np.asarray(state)
            self.state = np.zeros((len(self.count), self.M, *seen.shape), dtype=seen.dtype)
            self.following = self.state.copy()
        i = int(self.count[g])
        paid = np.array((sample.reward, sample.reward * sample.reward))[: self.paid.shape[2]]
        if self.finite and self._came_again(g, i, (state, action, following, alive), sample.weight, paid):
            return
        self.paid[g, i] = paid
        self.state[g, i], self.following[g, i] = state, following
        self.action[g, i], self.alive[g, i], self.times[g, i] = action, alive, sample.weight
        self.count[g] = i + 1

    def _came_again(self, g: int, n: int, transition: tuple[int, int, int, bool], weight: float, paid: Array) -> bool:
        """Count a transition that is there already."""
        columns = (self.state, self.action, self.following, self.alive)
        same = np.ones(n, dtype=np.bool_)
        for column, value in zip(columns, transition, strict=True):
            same &= column[g, :n] == value
        found = same.nonzero()[0]
        self.times[g, found[:1]] += weight
        self.paid[g, found[:1]] += weight * (paid - self.paid[g, found[:1]]) / self.times[g, found[:1], None]
        return len(found) > 0

    def phi(self, h: int) -> Array:
        """phi(s_i, a_i) of step h, (n, d)."""
        n = int(self.count[h])
        states, actions = self.state[h, :n], self.action[h, :n]
        if isinstance(self.features, TableFeatures):
            return self.features.rows(states, actions)
        return self.features.batch(states)[np.arange(n), actions] if n else np.zeros((0, self.features.d))

    def take(self, h: int, other: Transitions, mine: IntArray, theirs: IntArray) -> None:
        """Keep `mine` of the transitions of step h, and behind them `theirs` of another's."""
        n = len(mine) + len(theirs)
        for name in COLUMNS:
            own, new = getattr(self, name), getattr(other, name)
            if own.shape[1] == 0 < new.shape[1]:
                own = np.zeros_like(new)
                setattr(self, name, own)
            own[h, :n] = np.concatenate((own[h, mine], new[h, theirs]))
        self.count[h] = n

    def frequent(self, h: int, most: int) -> BoolArray:
        """Which rows of step h are the most frequent, at most that many; none that came only once."""
        times = self.times[h, : int(self.count[h])]
        found = np.zeros(len(times), dtype=np.bool_)
        found[np.argsort(-times, kind="stable")[:most]] = True
        return found & (times > 1)

    def keep(self, h: int, rows: BoolArray) -> None:
        """Drop all other rows of step h."""
        n, found = int(np.count_nonzero(rows)), int(self.count[h])
        for name in COLUMNS:
            column = getattr(self, name)
            column[h, :n] = column[h, :found][rows]
        self.count[h] = n

    def bytes_when_full(self, state_bytes: int) -> int:
        """Bytes once states are there, of which each takes that many."""
        missing = 0 if self.state.shape[1] else 2 * len(self.count) * self.M * state_bytes
        return self.nbytes + missing

    def load_state_dict(self, state: Mapping[str, np.ndarray]) -> None:
        H = len(self.count)
        for name in ("state", "following"):
            saved = saved_array(state, name)
            if not self.finite and saved.ndim >= 2 and saved.shape[:2] in ((H, 0), (H, self.M)):
                setattr(self, name, np.zeros_like(saved))  # of a shape that only the first state has shown
        super().load_state_dict(state)
        self._check_states()
        S = self.features.S if isinstance(self.features, TableFeatures) else None
        for name, low, high in (
            ("count", 0, self.M),
            ("action", 0, self.features.A - 1),
            ("times", 0, np.inf),
            *((name, 0, S - 1) for name in ("state", "following") if S is not None),
        ):
            column = getattr(self, name)
            if not ((column >= low) & (column <= high)).all():
                raise InvalidData(f"'{name}' of a saved agent must be in [{low}, {high}] everywhere.")
        if not (self.times > 0)[np.arange(self.M) < self.count[:, None]].all():
            raise InvalidData("'times' of a saved agent must be positive for every transition.")

    def _check_states(self) -> None:
        """Raise unless the features can read the states, where there are any."""
        for name in () if self.finite or not self.count.any() else ("state", "following"):
            try:
                self.features.phi(getattr(self, name)[0, 0])
            except (ValueError, IndexError) as error:
                raise InvalidData(f"'{name}' of a saved agent must have states of its task. {error}") from error
