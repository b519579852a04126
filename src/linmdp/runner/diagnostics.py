"""Has it learned anything? Looked at where the agent goes, in the last tenth of a run."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from linmdp.agents.base import Agent, tie_tolerance

MOST_EPISODES = 10**9
"""More than anyone runs."""

MANY = 10_000
"""With more actions than this only the first step of an episode is looked at: it takes the Q of all of them."""

SATURATED = 0.5
"""Above this fraction of Q values at the cap the run is called saturated."""


def probe_from(episodes: int) -> int:
    """The first episode that the probe looks at."""
    return episodes - max(1, episodes // 10)


class Probe:
    """Counts Q values at their cap, tied argmaxes and the actions played, for an agent that estimates Q."""

    def __init__(self, agent: Agent) -> None:
        self._agent = agent
        self._slack = 0.0 if agent.caps is None else tie_tolerance(agent.caps)
        self._acts = self._values = self._capped = self._ties = 0
        self._before = (0, 0)
        self._played = np.zeros(agent.task.A, dtype=np.int64)

    def begin(self) -> None:
        """The last tenth of the run begins."""
        self._before = (self._agent.updates, self._agent.resets)

    def look(self, h: int, state: Any, action: int) -> None:
        """One state on the way."""
        A = self._agent.task.A
        if self._agent.caps is None or A == 1 or (A > MANY and h):  # nothing believed, nothing to choose, too much
            return
        q, slack = self._agent.q_values(h, state), self._slack
        self._acts += 1
        self._values += len(q)
        self._capped += int((q >= self._agent.caps[h] - slack).sum())
        self._ties += int((q >= q.max() - slack).sum() > 1)
        self._played[action] += 1

    def state(self) -> dict[str, list[int]]:
        """What was counted so far, as plain data."""
        counts = [self._acts, self._values, self._capped, self._ties]
        return {"counts": counts, "before": list(self._before), "played": self._played.tolist()}

    def restore(self, state: dict[str, list[int]]) -> None:
        """Go on counting from there."""
        self._acts, self._values, self._capped, self._ties = map(int, state["counts"])
        updates, resets = map(int, state["before"])
        self._before = (updates, resets)
        self._played[:] = state["played"]

    @property
    def saturated(self) -> float:
        """Fraction of Q values at their cap."""
        return self._capped / self._values if self._values else 0.0

    @property
    def tied(self) -> float:
        """Fraction of states where several actions share the largest Q."""
        return self._ties / self._acts if self._acts else 0.0

    def findings(self, episodes: int) -> list[str]:
        """What a user should hear of it, in words."""
        played = np.flatnonzero(self._played)
        constant = int(played[0]) if len(played) == 1 and len(self._played) > 1 else None
        beta = getattr(self._agent, "beta_value", math.nan)
        updates, resets = self._agent.updates - self._before[0], self._agent.resets - self._before[1]
        idle = self._agent.may_stop_learning and updates == 0 and resets < episodes - probe_from(episodes)
        saturated = 0.0 if self._agent.at_best else self.saturated  # the best possible play is worth the cap
        return verdicts(self._agent.name, beta, episodes, saturated, self.tied, constant, self._acts, idle)


def verdicts(
    name: str, beta: float, episodes: int, saturated: float, tied: float, constant: int | None, acts: int, idle: bool
) -> list[str]:
    """What was seen in the last tenth, in words; `constant` is the only action played, or None.

    `idle`: it could have learned (not every episode was a reset) and never did.
    """
    found = []
    remedy = "" if math.isnan(beta) else f": use a smaller beta (it is {beta:.4g}; 'linmdp check' says what works)"
    if idle and acts:
        last = episodes - probe_from(episodes)
        found.append(
            f"{name}: it has stopped learning: not one regression was solved in the last {last} episodes. If it plays "
            f"badly, that will not change; a smaller tau makes it learn for longer."
        )
    if saturated > SATURATED:
        found.append(
            f"{name}: after {episodes} episodes {saturated:.0%} of its Q values still sit at the largest possible "
            f"value: there it cannot tell good actions from bad ones. The exploration bonus is wide{remedy}."
        )
    if tied > SATURATED and constant is not None:
        found.append(
            f"{name}: the policy is constant: most actions tie, and it played action {constant} in all of its last "
            f"{acts} steps. That is no preference, only the first of equals."
        )
    return found
