"""LSVI-UCB-Fixed (Algorithm 2): phases of equal length."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, ClassVar

from linmdp.agents.budget import Choice, varied
from linmdp.agents.lsvi import LSVIAgent
from linmdp.agents.schedules.base import Decision, Power, Schedule, check_exponent, episodes_at
from linmdp.types import Task


class FixedPhases(Schedule):
    """Phases of `length` episodes; the last one of each only resets, and the old Q acts."""

    reads_features: ClassVar = False
    _counters: ClassVar = ("k", "K_0")

    def __init__(self, G: int, length: int | Power) -> None:
        super().__init__(G)
        self._length = length
        self.k = self.K_0 = 0  # line 4

    @property
    def length(self) -> int:
        """Episodes of the current phase."""
        return episodes_at(self._length, max(self.k, 1))

    def begin_episode(self) -> Decision:
        self.k += 1
        if self.k < self.K_0 + self.length:  # line 6
            return self.learn(self._all)
        self.K_0 = self.k  # lines 17 to 19
        return Decision(reset=True, plan=self._none, store=self._none)

    def most_samples(self, episodes: int) -> int:
        return min(episodes_at(self._length, episodes) - 1, episodes)


class LSVIUCBFixed(LSVIAgent):
    """LSVI-UCB-Fixed (Algorithm 2): LSVI-UCB that forgets everything every floor(K^rho) episodes.

    Parameters
    ----------
    rho : in (0, 1]; a phase has max(2, floor(K^rho)) episodes
    common : the parameters of `LSVIUCB`; where `episodes` (K) is not given, K is doubled whenever it is reached
    """

    name, in_lockstep = "lsvi-ucb-fixed", True
    test_parameters = ({"rho": 0.6}, {"rho": 0.6, "storage": "features"})

    def __init__(self, task: Task, *, rho: float = 0.75, **common: Any) -> None:
        self.rho = rho
        super().__init__(task, **common)

    def make_schedule(self) -> Schedule:
        return FixedPhases(self.horizon.groups, self.chosen_within.get("length") or self._length())

    def _length(self) -> Power:
        return Power(check_exponent(self.name, "rho", self.rho), self._K, 2)

    def _choices(self) -> Iterator[Choice]:
        K = self._known_K()
        for choice in varied(super()._choices(), "length", self._length().at(K), 2):
            yield choice | {"rho": round(math.log(choice["length"]) / math.log(max(K, 2)), 4)}
