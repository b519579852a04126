"""Will this agent ever learn here? An estimate from beta, lambda and the model, before anything runs."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from linmdp.agents.lsvi import LSVIAgent
from linmdp.envs.base import LinearModel
from linmdp.envs.planning import optimum
from linmdp.types import Array

HORIZON = 10**12
"""Beyond this many samples the answer is "never"."""


def bonuses(agent: LSVIAgent, model: LinearModel, samples: int) -> Array:
    """beta sqrt(phi' Lambda^-1 phi), (A, S), after that many samples spread evenly over states and actions."""
    F = model.features.columns
    Lambda = agent.lam_value * np.eye(model.d) + samples * (F @ F.T) / F.shape[1]
    squares = np.einsum("di,di->i", F, np.linalg.solve(Lambda, F))
    return np.asarray(agent.beta_value * np.sqrt(squares)).reshape(model.A, model.S)


def forecast(agent: LSVIAgent, model: LinearModel, episodes: int) -> str:
    """In words: is the bonus small enough, with the samples that the agent will hold, to leave the task visible?

    Two widths matter. Q leaves its cap only when a step's bonus is less than what a step's mean reward falls short of
    the largest one. And good actions are preferred only when the bonus differs less between actions than their values
    do.
    """
    if agent.auto:
        return "beta and lam follow from the data: it can learn (docs, evidence)."
    held = max(1, agent.schedule.most_samples(episodes))
    room = model.reward_range[1] - float((model.theta @ model.features.columns).mean())
    contrast = float(optimum(model).Q.std(axis=-1).mean())

    def saturates(samples: int) -> bool:
        return float(bonuses(agent, model, samples).mean()) >= room

    def distracts(samples: int) -> bool:
        return float(bonuses(agent, model, samples).std(axis=0).mean()) >= contrast

    if model.A == 1 or contrast == 0 or room <= 0:
        return (
            "All actions are worth the same here, or every reward is the largest possible: there is nothing to learn."
        )
    if agent.beta_value == 0:
        return "beta is 0: it is greedy. It learns from what it happens to meet, and does not search for anything."
    bonus = bonuses(agent, model, held)
    facts = f"beta is {agent.beta_value:.4g}; with {held:,} samples a step the bonus is about {bonus.mean():.3g} a step"
    if saturates(held):
        need = _samples_until(saturates, held)
        return (
            f"{facts}, more than the {room:.3g} that saturates Q: every action will look perfect and it will NOT "
            f"learn. It would need {need}; or a beta well below {agent.beta_value * room / bonus.mean():.2g}."
        )
    differs = float(bonus.std(axis=0).mean())
    compared = f"it differs between actions by {differs:.2g}, their values by {contrast:.2g}"
    if distracts(held):
        need = _samples_until(distracts, held)
        return (
            f"{facts}; {compared}: it will explore, hardly better than at random. To prefer good actions it would need "
            f"{need}; or a beta below {agent.beta_value * contrast / differs:.2g}."
        )
    return f"{facts}; {compared}: it can learn."


def _samples_until(still: Callable[[int], bool], held: int) -> str:
    """The order of magnitude from which on `still` no longer holds."""
    needed = held
    while still(needed) and needed < HORIZON:
        needed *= 2
    if needed >= HORIZON:
        return "more samples than anyone will ever have"
    return f"about {float(f'{needed:.0e}'):,.0f} samples a step (it will hold {held:,})"
