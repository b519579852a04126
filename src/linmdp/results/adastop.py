"""How many seeds a comparison needs: groups of them, until it is decided (AdaStop: Mathieu et al. 2023)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import combinations

import numpy as np

from linmdp.types import Array

GROUP, GROUPS, LEVEL = 5, 5, 0.05
"""Seeds of a group, and how many groups at most; how often any decision may be wrong."""
PERMUTATIONS = 10_000

Pair = tuple[str, str]


class AdaStop:
    """Which agents differ in the mean of their scores, tested by permutations after each group of runs.

    If two agents were the same, the scores of a group could as well be dealt out the other way. A pair is decided when
    its sums are further apart than those of every open pair in all but a few of `permutations`; up to group k those few
    are at most k / GROUPS of `level` in all. Once decided, it no longer counts, and the others are looked at again.

    Attributes
    ----------
    open : the pairs that are not decided
    decided : those that are, who scores more first, with the seeds that it took
    seeds : so many were seen of an agent that is still wanted
    """

    def __init__(self, agents: Sequence[str], *, level: float = LEVEL, permutations: int = PERMUTATIONS) -> None:
        self.open, self.decided, self.seeds = list(combinations(agents, 2)), dict[Pair, int](), 0
        self._level, self._n, self._spent, self._rng = level, permutations, 0, np.random.default_rng(0)
        self._apart = {pair: np.zeros(permutations) for pair in self.open}
        """Sum of the first less that of the second, of each permutation that has not decided; row 0 is as it was."""

    @property
    def wanted(self) -> list[str]:
        """The agents that need another group."""
        return [] if self.seeds >= GROUP * GROUPS else list(dict.fromkeys(a for pair in self.open for a in pair))

    def add(self, scores: Mapping[str, Array]) -> None:
        """One more group: `GROUP` scores of each agent that is wanted."""
        self.seeds += GROUP
        rows, signs = len(self._apart[self.open[0]]), np.repeat([1.0, -1.0], GROUP)
        dealt = self._rng.permuted(np.tile(signs, (rows, 1)), axis=1)
        dealt[0] = signs
        for first, second in self.open:
            both = np.concatenate([scores[first], scores[second]])
            self._apart[first, second] += dealt @ both
        few = int(self._level * self._n * self.seeds / (GROUP * GROUPS) + 1e-9) - self._spent
        while self.open:
            widest = np.max([np.abs(self._apart[pair]) for pair in self.open], axis=0)
            beyond = widest > np.sort(widest)[::-1][few] * (1 + 1e-12)  # the same values may add up to another last bit
            if not beyond[0]:
                break
            pair = max(self.open, key=lambda each: abs(float(self._apart[each][0])))
            self.open.remove(pair)
            self.decided[pair if self._apart[pair][0] > 0 else pair[::-1]] = self.seeds
        if self.open:
            self._spent += int(beyond.sum())
            self._apart = {pair: self._apart[pair][~beyond] for pair in self.open}
