"""Will this agent ever learn here? An estimate from beta, lambda and the features, before anything runs."""

from __future__ import annotations

import numpy as np

from linmdp.agents.lsvi import LSVIUCB
from linmdp.envs.base import LinearModel

HORIZON = 10**12
"""Beyond this many episodes the answer is "never"."""


def mean_bonus(agent: LSVIUCB, model: LinearModel, episodes: int) -> float:
    """The mean of beta sqrt(phi' Lambda^-1 phi) after that many episodes spread evenly over states and actions."""
    F = model.features.columns
    Lambda = agent.lam * np.eye(model.d) + episodes * (F @ F.T) / F.shape[1]
    return float(agent.beta_value * np.sqrt(np.einsum("di,di->i", F, np.linalg.solve(Lambda, F))).mean())


def forecast(agent: LSVIUCB, model: LinearModel, episodes: int) -> str:
    """In words: how wide the bonus will be against the reward that it must not drown.

    An optimistic value leaves its cap only when one step's bonus is less than what one step's reward falls short of
    the largest possible one; from then on the agent can tell actions apart.
    """
    room = model.reward_range[1] - float((model.theta @ model.features.columns).mean())
    episodes_held = min(episodes, max(1, agent.samples_after(episodes)))
    bonus = mean_bonus(agent, model, episodes_held)
    facts = (
        f"beta is {agent.beta_value:.4g}; after {episodes_held:,} samples a step the bonus is about {bonus:.3g} a step"
    )
    if bonus < room:
        return f"{facts}, less than the {room:.3g} that would saturate Q: it can learn."
    needed = episodes
    while mean_bonus(agent, model, needed) >= room and needed < HORIZON:
        needed *= 2
    fitting = agent.beta_value * room / bonus
    when = f"about {needed:,.0f} samples a step" if needed < HORIZON else "more samples than anyone will ever have"
    return (
        f"{facts}, more than the {room:.3g} that saturates Q: every action will look perfect and it will NOT learn. "
        f"That takes {when}; or a beta well below {fitting:.3g}."
    )
