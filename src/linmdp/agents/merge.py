"""What several learners of one task have seen, in one agent: sums add. And when they are worth sending."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from linmdp.agents.base import Agent
from linmdp.errors import InvalidParameter, check_number, invalid


def merge(agents: Sequence[Any], since: Agent | None = None) -> Agent:
    """A new agent that has seen what all of them have: its sums are theirs, it plans anew, and its Q is its own.

    Parameters
    ----------
    agents : of one kind, with the same parameters, or learners that have them
    since : what all of them had begun with, if that was not nothing (the last merge): it counts once
    """
    given = [agent_of("merge", each) for each in agents]
    if not given:
        invalid("merge", "agents", "one agent or more", given)
    merged, base = _new(given[0], "agents of merge"), _new(given[0], "agents of merge")
    copies = [_copied(agent, given[0], "agents of merge") for agent in given]
    merged.sum_up(copies, base if since is None else _copied(since, given[0], "agents of merge"))
    return merged


def worth_sending(agent: Any, since: Agent | None = None, *, eta: float = 2.0) -> bool:
    """Whether a device should send its agent to be merged: it has seen much that `since`, its last merge, had not.

    That is so when the determinant of one of its Lambda has grown by the factor `eta` (Abbasi-Yadkori et al., 2011;
    between machines Wang et al., 2020, and Min et al., 2023; a table has Lambda = I + its visits). What it knows is
    then never out of date by more than that factor, and if each of G regressions of d features has n samples in the
    end, it was sent at most G d log_eta(1 + n / (lam d)) times.

    Parameters
    ----------
    agent : one that `merge` takes, or a learner that has it
    since : what it began with; default: nothing
    eta : above 1
    """
    check_number("worth_sending", "eta", eta, low=1.0, open_low=True)
    mine = agent_of("worth_sending", agent)
    base = _new(mine, "agent of worth_sending") if since is None else _copied(since, mine, "agent of worth_sending")
    grown = _copied(mine, mine, "agent of worth_sending").log_determinants() - base.log_determinants()
    return bool(grown.max() > math.log(eta))


def agent_of(owner: str, given: Any) -> Agent:
    """An agent as it is, or that of a learner."""
    found = getattr(given, "agent", given)
    if not isinstance(found, Agent):
        invalid(owner, "agent", "an agent, or a learner", given)
    return found


def _new(like: Agent, what: str) -> Agent:
    """An agent of its kind that has seen nothing, if its kind can be merged."""
    make: Any = type(like)
    made: Agent = make(like.task, **like.get_params())
    if not made.summed():
        kinds = "ucbvi, psrl, or lsvi-ucb with storage=counts and numbers for beta and lam"
        raise InvalidParameter(f"The {what} must keep sums that add: {kinds}. Got {like.name}.")
    return made


def _copied(agent: Agent, like: Agent, what: str) -> Agent:
    """A copy, so that what waits is brought in there, and not in the original."""
    if agent._identity() != like._identity():
        rule = "of one kind, with the same parameters and a task of the same size"
        raise InvalidParameter(f"The {what} must be {rule}. Got {like.name} and {agent.name}.")
    copy = _new(like, what)
    copy.load_state_dict(agent.state_dict())
    return copy
