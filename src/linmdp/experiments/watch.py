"""`linmdp watch`: an episode of a trained agent, as a picture that moves."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np

from linmdp.agents.base import Agent
from linmdp.agents.exploration.bonus import Bonus
from linmdp.agents.lsvi import LSVIAgent
from linmdp.envs.guard import Guard
from linmdp.errors import FAULTS, InvalidData, InvalidParameter, LinMDPError, check_int, described
from linmdp.experiments.stored_runs import Say
from linmdp.report.film import Film, Moment, episode_film, write_film
from linmdp.results.curves import spaced
from linmdp.results.verdict import number as written
from linmdp.runner.policy import Policy
from linmdp.runner.registry import make_env
from linmdp.runner.saved import trained
from linmdp.types import Array, State

MOST_FRAMES = 200
RENDER = "render_mode=rgb_array"


def watch(run: Path, out: Path | None, say: Say, *, number: int | None = None, seed: int = 0) -> Path:
    """Write the page (or the GIF) of a run in a folder, or of a saved agent; returns where it is."""
    check_int("watch", "seed", seed, low=0)
    path = out or (run if run.is_dir() else run.parent) / "watch.html"
    found = trained(run, number, progress=True)
    write_film(path, found.words, _episode(found.agent, found.spec, found.env, seed, say))
    return path


def _episode(agent: Agent, spec: str | None, env: Any, seed: int, say: Say) -> Film:
    """The greedy policy of the agent, until the episode ends."""
    shown, draws = _drawn_env(spec, env, say)
    guard, policy = Guard(shown), Policy(agent)
    state, moments, earned = guard.reset(0, seed), list[Moment](), 0.0
    for h in range(guard.task.H):
        q, extra = agent.q_values(h, state), bonus(agent, h, state)
        action = policy(h, state)
        where = f", state {state}" if guard.task.S is not None else ""
        words = f"step {h + 1}{where}, return {written(earned)}"
        picture = _picture(shown, h) if draws else None
        moments.append(Moment(picture, words, q - extra, extra, action))
        state, reward, terminated, truncated = guard.step(0, h, action)
        earned += reward
        if terminated or truncated:
            break
    length, kept = len(moments), spaced(len(moments), MOST_FRAMES)
    words = f"{length} steps, return {written(guard.original(earned))}, of the greedy policy at the end; seed {seed}."
    return episode_film("An episode", words, [moments[i] for i in kept])


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


def _picture(env: Any, h: int) -> Array:
    """What it looks like at step h."""
    try:
        return np.asarray(env.render())
    except FAULTS as error:
        raise InvalidData(f"The picture of step {h} must not fail. Got {described(error)}.") from error


def _drawn_env(spec: str | None, env: Any, say: Say) -> tuple[Any, bool]:
    """The environment again, such that it draws itself, where it can."""
    if spec is None or not spec.startswith("gym:") or "rgb_array" not in env.metadata.get("render_modes", ()):
        return env, False
    os.environ.setdefault("SDL_VIDEODRIVER", "dummy")  # pygame draws into arrays, and needs no screen
    try:
        drawn: Any = make_env(f"{spec},{RENDER}")
        Guard(drawn).reset(0, 0)
        _picture(drawn, 0)
    except LinMDPError as error:  # what draws is an extra of Gymnasium
        say(f"{spec} is not drawn, only its values: {described(error)}. For pictures: pip install 'linmdp[watch]'.")
        return env, False
    return drawn, True


def check_watchable(path: Path) -> None:
    """Raise if there is nothing there."""
    if not path.exists():
        raise InvalidParameter(f"RUN must be a folder of 'run --out', or a saved agent. There is no '{path}'.")
