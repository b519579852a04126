"""Rewards outside the declared range: an error, clipped to it, or rescaled into it by a fixed map."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from linmdp.errors import InvalidData, check_choice, described, one_number

RULES = ("error", "clip", "rescale")
EPISODES = 100
"""Episodes of random play in which "rescale" looks for the least and the largest reward."""


def reward_rule(env: Any, id: str, rule: str, low: float, high: float, H: int) -> Callable[[Any], Any] | None:
    """A function that brings a reward into [low, high]; None for "error": the run loop then refuses the reward.

    "rescale" plays 100 episodes at random (always the same ones) before anything is learned, maps the least reward
    seen there to `low` and the largest to `high`, and clips what lies outside later on. NaN and infinite rewards are
    left as they are, for the run loop to refuse.
    """
    check_choice(id, "reward", rule, RULES)
    if rule == "error":
        return None
    scale, shift = (1.0, 0.0) if rule == "clip" else _observed(env, id, low, high, H)

    def paid(reward: Any) -> Any:
        try:
            value = one_number(reward)
        except (TypeError, ValueError):
            return reward
        return min(max(scale * value + shift, low), high) if math.isfinite(value) else reward

    return paid


def _observed(env: Any, id: str, low: float, high: float, H: int) -> tuple[float, float]:
    """Scale and shift of the map."""
    rng, seen = np.random.default_rng(0), list[float]()
    first, A = int(env.action_space.start), int(env.action_space.n)
    for k in range(EPISODES):
        env.reset(seed=k)
        for h in range(H):
            try:
                _, reward, terminated, truncated, _ = env.step(first + int(rng.integers(A)))
                value = one_number(reward)
            except Exception as error:
                raise InvalidData(
                    f"Episode {k}, step {h} of random play must not fail. Got {described(error)}."
                ) from error
            if not math.isfinite(value):
                raise InvalidData(f"The reward of episode {k}, step {h} must be one finite number. Got {reward!r}.")
            seen.append(value)
            if terminated or truncated:
                break
    least, largest = min(seen), max(seen)
    if least == largest:
        raise InvalidData(
            f"reward=rescale needs two different rewards in {EPISODES} episodes of random play of '{id}'. Got "
            f"{least:g} alone: give reward_low and reward_high."
        )
    scale = (high - low) / (largest - least)
    return scale, low - scale * least
