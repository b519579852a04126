"""LSVI-UCB-Detect: forget when something has changed, and only then.

Where features are unit vectors of finite states, what follows each of them is tested (`Changes`); else the returns.
"""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from linmdp.agents.algorithms import LSVIUCB
from linmdp.agents.schedules.base import Alert, Schedule
from linmdp.agents.schedules.changes import Changes, index_of
from linmdp.errors import check_number
from linmdp.types import Array, Task

LATEST = (4, 8, 16, 32, 64)
"""Numbers of latest episodes that are compared with those before them."""

BEFORE = 4
"""How many times as many those before are, at most."""

KEPT = LATEST[-1] * (1 + BEFORE)


class Drops(Alert):
    """Restart when the mean return of the latest n episodes is below that of up to 4n before them, by `errors`.

    Learning raises returns, so that a drop is a sign of change. Only episodes since the last restart count.

    Attributes
    ----------
    returns : (KEPT,) of the latest episodes, the last one at the end
    n : episodes since the last restart
    """

    _arrays: ClassVar[tuple[str, ...]] = ("returns",)
    _counters: ClassVar = (*Alert._counters, "n")

    def __init__(self, G: int, errors: float, fraction: float = 0.0, *, by_steps: bool = False) -> None:
        super().__init__(G, fraction, by_steps=by_steps)
        self.errors, self.returns, self.n = errors, np.zeros(KEPT), 0

    def kept_steps(self) -> int | None:
        if not self._dropped():
            return None
        self.forget()
        return 0

    def forget(self) -> None:
        self.n = 0

    def _dropped(self) -> bool:
        known = self.returns[KEPT - min(self.n, KEPT) :]
        return any(
            dropped(known[-n * (1 + BEFORE) : -n], known[-n:], self.errors) for n in LATEST if 2 * n <= len(known)
        )

    def end_episode(self, earned: float = 0.0) -> None:
        self.returns[:-1] = self.returns[1:]
        self.returns[-1] = earned
        self.n += 1


def dropped(before: Array, latest: Array, errors: float) -> bool:
    """Whether the second mean is below the first by more than so many standard errors of their difference."""
    error = np.sqrt(before.var() / len(before) + latest.var() / len(latest))
    fall = before.mean() - latest.mean()
    return bool(fall > errors * error + 1e-9 * max(1.0, float(np.abs(before).max())))


class LSVIUCBDetect(LSVIUCB):
    """LSVI-UCB-Detect: LSVI-UCB that starts anew when its task has changed, for tasks that change now and then.

    Parameters
    ----------
    false_alarms : odds against a change in episode n are 1 : n^2 / false_alarms before it is believed; unit vectors
    errors : the drop of returns that counts as a change, in standard errors; other features
    common : the parameters of `LSVIUCB`; at a restart it plans at once, whatever `replan` is
    """

    name, schedule_type, in_lockstep = "lsvi-ucb-detect", Drops, True
    test_parameters = (
        {},
        {"errors": 0.5, "false_alarms": 1e6, "beta": 0.1, "lam": 0.1},
        {"errors": 2.0, "storage": "features"},
        {"errors": 1.0, "replan": 0.3, "beta": 0.1},
    )
    merges_for_bytes = False
    tests: ClassVar[tuple[type[Drops], type[Changes]]] = (Drops, Changes)

    def __init__(
        self,
        task: Task,
        *,
        false_alarms: float = 0.1,
        errors: float = 6.0,
        **common: Any,
    ) -> None:
        self.false_alarms, self.errors = false_alarms, errors
        super().__init__(task, **common)

    def make_schedule(self) -> Schedule:
        chance = check_number(self.name, "false_alarms", self.false_alarms, low=0.0, open_low=True)
        errors = check_number(self.name, "errors", self.errors, low=0.0)
        task, G = self.task, self.horizon.groups
        index = index_of(task, G)
        fraction, (of_returns, of_steps) = self.growth(), self.tests
        if index is None:
            return of_returns(G, errors, fraction, by_steps=self.auto)
        return of_steps(G, index, task.d, task.H, task.reward_range, chance, fraction, by_steps=self.auto)
