"""Tables of tasks whose states are described and not numbered: every state that can be reached gets a number."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping
from typing import TypeVar

import numpy as np

from linmdp.envs.general.base import Table, tabulated

S = TypeVar("S", bound=Hashable)


def explored(
    start: Mapping[S, float],
    A: int,
    H: int,
    outcomes: Callable[[S, int], Iterable[tuple[float, S | None, float]]],
) -> tuple[Table, list[S]]:
    """The table of all states that can be reached from `start`, and what its states are.

    Parameters
    ----------
    start : the chance of each first state
    outcomes : of (state, action): chance, next state (None where the episode is over) and reward of each outcome;
        those of chance 0 are left out, and equal ones are put together
    """
    number = {s: i for i, s in enumerate(start)}
    states = list(start)
    rows: list[list[list[tuple[float, int | None, float]]]] = []
    for s in states:  # grows while it is read
        rows.append([])
        for a in range(A):
            chances: dict[tuple[int | None, float], float] = {}
            for p, to, reward in outcomes(s, a):
                if p <= 0:
                    continue
                if to is not None and to not in number:
                    number[to] = len(states)
                    states.append(to)
                key = None if to is None else number[to], reward
                chances[key] = chances.get(key, 0.0) + p
            rows[-1].append([(p, to, reward) for (to, reward), p in chances.items()])
    first = np.zeros(len(states))
    first[: len(start)] = list(start.values())
    return tabulated(len(states), A, H, first, lambda s, a: rows[s][a]), states
