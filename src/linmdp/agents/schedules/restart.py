"""LSVI-UCB-Restart (Zhou, Chen, Varshney, Jagmohan, 2022): forget everything every W episodes, and plan at once."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, ClassVar

from linmdp.agents.budget import Choice, varied
from linmdp.agents.lsvi import LSVIAgent
from linmdp.agents.schedules.base import Decision, Power, Schedule, episodes_at
from linmdp.errors import check_int, check_number
from linmdp.types import Task


def window(agent: LSVIAgent, W: int | None, B: float) -> int | Power:
    """W episodes or, by default, sqrt(dK/B): what the theory has for a variation budget B."""
    if W is not None:
        return check_int(agent.name, "W", W, low=1)
    B = check_number(agent.name, "B", B, low=0.0, open_low=True)
    return Power(0.5, agent._K, 1, scale=(agent.task.d / B) ** 0.5)


class Epochs(Schedule):
    """Epochs of W episodes, each from nothing: the first episode of one plans without a sample, and stores."""

    reads_features: ClassVar = False
    _counters: ClassVar = ("k", "K_0")

    def __init__(self, G: int, W: int | Power) -> None:
        super().__init__(G)
        self._W, self.k, self.K_0 = W, 0, 0

    @property
    def W(self) -> int:
        """Episodes of the current epoch."""
        return episodes_at(self._W, max(self.k, 1))

    def begin_episode(self) -> Decision:
        self.k += 1
        if self.k <= self.K_0 + self.W:
            return self.learn(self._all)
        self.K_0 = self.k - 1
        return Decision(reset=True, plan=self._all, store=self._all)

    def most_samples(self, episodes: int) -> int:
        return min(episodes_at(self._W, episodes), episodes)


class LSVIUCBRestart(LSVIAgent):
    """LSVI-UCB-Restart: LSVI-UCB that starts anew every W episodes, for tasks that drift.

    Parameters
    ----------
    W : episodes of an epoch; default: sqrt(dK/B)
    B : how much the task is thought to change (its variation budget), where W is not given
    lam, common : the parameters of `LSVIUCB`; where `episodes` (K) is not given, K is doubled whenever it is reached
    """

    name, in_lockstep = "lsvi-ucb-restart", True
    test_parameters = ({"W": 7}, {"W": 5, "beta": 0.1, "lam": 0.1}, {"beta": 0.1, "storage": "features", "B": 4.0})

    def __init__(
        self, task: Task, *, W: int | None = None, B: float = 1.0, lam: float | str = "auto", **common: Any
    ) -> None:
        self.W, self.B = W, B
        super().__init__(task, lam=lam, **common)

    def make_schedule(self) -> Schedule:
        return Epochs(self.horizon.groups, self.chosen_within.get("W") or window(self, self.W, self.B))

    def _choices(self) -> Iterator[Choice]:
        W = episodes_at(window(self, self.W, self.B), self._known_K())
        yield from varied(super()._choices(), "W", W, 1)
