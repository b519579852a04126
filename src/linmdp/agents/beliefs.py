"""What an agent believes, taken apart: how much of Q is its estimate, and how much the bonus adds."""

from __future__ import annotations

import numpy as np

from linmdp.agents.base import Agent
from linmdp.agents.exploration.bonus import Bonus
from linmdp.agents.lsvi import LSVIAgent
from linmdp.types import Array, State


def bonus(agent: Agent, h: int, state: State) -> Array:
    """By how much the bonus raises Q_h(state, .), (A,), after the cap; 0 for agents that explore in another way."""
    q = agent.q_values(h, state)
    explore = agent._exploration if isinstance(agent, LSVIAgent) else None
    if not isinstance(explore, Bonus):
        return np.zeros_like(q)
    explore.added = False
    try:
        return np.asarray(q - agent.q_values(h, state))
    finally:
        explore.added = True
