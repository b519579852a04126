"""Does an environment behave? And will this agent ever learn in it?"""

from __future__ import annotations

import re
from collections.abc import Callable
from contextlib import suppress
from typing import Any, NamedTuple

import numpy as np

from linmdp.agents.lsvi import LSVIAgent
from linmdp.envs.base import Finding, LinearModel
from linmdp.envs.guard import Guard
from linmdp.envs.planning import optimum
from linmdp.errors import InvalidData, LinMDPError, check_int
from linmdp.runner.registry import make_env
from linmdp.types import Array

EPISODES = 20


class Played(NamedTuple):
    """One episode of random play: its states (first and last included), its rewards, and whether it ended itself."""

    states: list[Any]
    rewards: list[float]
    ended: bool


def check_env(env: Any, episodes: int = EPISODES) -> list[Finding]:
    """Play some random episodes in an environment (whatever `make_env` takes), and report what they show.

    Each finding has an `ok` and a `text`. What the environment does wrong is named with its episode and its step.
    """
    return check_behaviour(make_env(env), check_int("check_env", "episodes", episodes, low=1))


def check_behaviour(env: Any, episodes: int = EPISODES) -> list[Finding]:
    """The findings; a fault ends the play, and is named with its episode and step."""
    guard = Guard(env)
    try:
        played = [_played(guard, k) for k in range(episodes)]
        again = _played(guard, 0)
    except InvalidData as error:
        return [Finding(False, _widest(str(error), env))]
    (low, high), H = guard.task.reward_range, guard.task.H
    rewards, lengths = [r for p in played for r in p.rewards], [len(p.rewards) for p in played]
    steps = f"{min(lengths)} to {max(lengths)} steps" if min(lengths) < max(lengths) else f"{lengths[0]} steps each"
    found = [
        Finding(
            True,
            f"{episodes} episodes of random play: {steps}, rewards {min(rewards):.4g} to {max(rewards):.4g} "
            f"({_known(env)}: {low:g} to {high:g}), valid states",
        ),
        Finding(
            _same(played[0], again),
            "the same seed and actions give the same episode: runs can be repeated",
        ),
    ]
    if max(lengths) == 1 < H:
        found.append(Finding(False, f"every episode ends with its first step: H={H} and planning have no effect"))
    elif not any(p.ended for p in played):
        found.append(Finding(True, f"no episode ended by itself: each was cut after H={H} steps"))
    return found


def _played(guard: Guard, k: int) -> Played:
    """Episode k; it is always the same one, if the environment keeps to its seed."""
    H = guard.task.H
    steps = list(guard.random_episode(k, np.random.default_rng(k), H=H, seed=k))
    states = [steps[0].state, *(step.next_state for step in steps)]
    return Played(states, [step.reward for step in steps], steps[-1].terminated or len(steps) < H)


def _same(one: Played, two: Played) -> bool:
    return one.rewards == two.rewards and all(map(np.array_equal, one.states, two.states))


def _known(env: Any) -> str:
    """Where the range of rewards is from."""
    chosen = getattr(env.unwrapped, "chosen", {})
    return "guessed from random play" if {"reward_low", "reward_high"} & set(chosen) else "declared"


def _widest(words: str, env: Any) -> str:
    """A fault with advice on the range of rewards: not the first reward outside it, but the farthest that is seen."""
    found = re.search(r"Give reward_(low|high)=(\S+?),", words)
    trial = getattr(env.unwrapped, "random_rewards", None)
    if found is None or trial is None:
        return words
    seen = [float(found[2])]
    with suppress(LinMDPError):
        seen += trial(EPISODES)
    return words.replace(found[0], f"Give reward_{found[1]}={min(seen) if found[1] == 'low' else max(seen):g},")


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
    margin = model.reward_range[1] - float((model.theta @ model.features.columns).mean())
    contrast = float(optimum(model).Q.std(axis=-1).mean())

    def saturates(samples: int) -> bool:
        return float(bonuses(agent, model, samples).mean()) >= margin

    def distracts(samples: int) -> bool:
        return float(bonuses(agent, model, samples).std(axis=0).mean()) >= contrast

    if model.A == 1 or contrast == 0 or margin <= 0:
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
            f"{facts}, more than the {margin:.3g} that saturates Q: every action will look perfect and it will NOT "
            f"learn. It would need {need}; or a beta well below {agent.beta_value * margin / bonus.mean():.2g}."
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
