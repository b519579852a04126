"""Does an environment behave? A few episodes of random play, with every state and reward checked."""

from __future__ import annotations

import re
from contextlib import suppress
from typing import Any, NamedTuple

import numpy as np

from linmdp.envs.base import Finding
from linmdp.envs.guard import Guard
from linmdp.errors import InvalidData, LinMDPError, check_int
from linmdp.runner.registry import make_env

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
