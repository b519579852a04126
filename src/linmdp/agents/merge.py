"""What several learners of one task have seen, in one agent: sums add."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from linmdp.agents.base import Agent
from linmdp.errors import InvalidParameter, invalid


def merge(agents: Sequence[Any], since: Agent | None = None) -> Agent:
    """A new agent that has seen what all of them have: its sums are theirs, it plans anew, and its Q is its own.

    Parameters
    ----------
    agents : of one kind, with the same parameters, or learners that have them
    since : what all of them had begun with, if that was not nothing (the last merge): it counts once
    """
    given: list[Agent] = [getattr(each, "agent", each) for each in agents]
    if not given:
        invalid("merge", "agents", "one agent or more", given)
    first, identity = given[0], given[0]._identity()
    make: Any = type(first)
    merged: Agent = make(first.task, **first.get_params())
    if not merged.summed():
        kinds = "ucbvi, psrl, or lsvi-ucb with storage=counts and numbers for beta and lam"
        raise InvalidParameter(f"The agents of merge must keep sums that add: {kinds}. Got {first.name}.")
    copies = list[Agent]()
    for agent in [*given] if since is None else [*given, since]:
        if agent._identity() != identity:
            rule = "of one kind, with the same parameters and a task of the same size"
            raise InvalidParameter(f"The agents of merge must be {rule}. Got {first.name} and {agent.name}.")
        copies.append(make(first.task, **first.get_params()))
        copies[-1].load_state_dict(agent.state_dict())  # what waits is brought in there, and not in theirs
    base = make(first.task, **first.get_params()) if since is None else copies.pop()
    merged.sum_up(copies, base)
    return merged
