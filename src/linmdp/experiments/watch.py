"""`linmdp watch`: an episode of a trained agent, and how it came to know what it knows, as pictures that move."""

from __future__ import annotations

import os
import warnings
from pathlib import Path
from typing import Any

import numpy as np

from linmdp.agents.base import Agent
from linmdp.agents.beliefs import bonus
from linmdp.envs.guard import Guard, task_of
from linmdp.errors import FAULTS, InvalidData, InvalidParameter, LinMDPError, LinMDPWarning, check_int, described
from linmdp.experiments.stored_runs import Say
from linmdp.report.film import Film, Maps, Moment, episode_film, maps_film, write_film
from linmdp.results.curves import spaced
from linmdp.results.run_folder import read_folder
from linmdp.results.verdict import number as written
from linmdp.runner.loading import Policy, trained
from linmdp.runner.loop import RunState
from linmdp.runner.progress import progress_bar
from linmdp.runner.registry import make_agent, make_env
from linmdp.types import Array, RunResult

MOST_FRAMES = 200
MOST_MAPS = 24
MOST_CELLS = 20_000
"""Steps times states whose values are computed for a map."""
RENDER = "render_mode=rgb_array"


def watch(run: Path, out: Path | None, say: Say, *, number: int | None = None, seed: int = 0) -> Path:
    """Write the page (or the GIF) of a run in a folder, or of a saved agent; returns where it is."""
    check_int("watch", "seed", seed, low=0)
    path = out or (run if run.is_dir() else run.parent) / "watch.html"
    found = trained(run, number, progress=True)
    stored = _stored(run, number) if run.is_dir() else None
    films = [_episode(found.agent, stored.env if stored else None, found.env, seed, say)]
    if stored and task_of(found.env).S is not None:
        films += _learning(stored, say)
    write_film(path, found.words, films)
    return path


def _stored(folder: Path, number: int | None) -> RunResult:
    return read_folder(folder).results[(number or 1) - 1]


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


def _learning(stored: RunResult, say: Say) -> list[Film]:
    """Train it once more, and look at values and visits on the way; it gives the same agent."""
    env = make_env(stored.env)
    agent = make_agent(stored.agent, env, stored.episodes)
    task = agent.task
    assert task.S is not None
    steps = list(range(task.H)) if task.H * task.S <= MOST_CELLS // 10 else [0]
    if len(steps) * task.S > MOST_CELLS:
        say(f"{stored.env} has too many states for maps of them")
        return []
    visits, maps = np.zeros((task.H, task.S)), list[Maps]()
    observe: Any = agent.observe

    def counted(h: int, state: int, *rest: Any) -> None:
        visits[h, state] += 1
        observe(h, state, *rest)

    setattr(agent, "observe", counted)  # noqa: B010 (a method of this one agent)
    at = set(spaced(stored.episodes, MOST_MAPS).tolist())
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", LinMDPWarning)
        sizes = {"episodes": stored.episodes, "seed": stored.seed, "eval_every": stored.episodes}
        state = RunState(env, agent, name=None, **sizes)
        shape = _grid(env, task.S) if task.stationary or len(steps) == 1 else None
        with progress_bar("episodes", stored.episodes, True) as advance, state.clock:
            for k in range(stored.episodes):
                state.episode()
                if k in at:
                    maps.append(_maps(k, agent, visits, steps, shape))
                advance(1, state.recent)
    rows = (
        "cells of the grid" if shape else "rows are steps, columns states" if len(steps) > 1 else "columns are states"
    )
    words = f"What each state is believed to be worth, and how often it was visited; {rows}."
    return [maps_film("How it learned", words, maps, to_scale=shape is not None)]


def _maps(k: int, agent: Agent, visits: Array, steps: list[int], shape: tuple[int, int] | None) -> Maps:
    S = visits.shape[1]
    first = steps[:1] if shape else steps
    values = np.array([[agent.q_values(h, s).max() for s in range(S)] for h in first])
    seen = visits.sum(axis=0, keepdims=True) if len(first) == 1 else visits.copy()
    if shape:
        values, seen = values.reshape(shape), seen.reshape(shape)
    return Maps(f"after {k + 1:,} episodes", values, seen)


def _grid(env: Any, S: int) -> tuple[int, int] | None:
    """Rows and columns, where the states of a Gymnasium environment are cells of a grid."""
    inner = getattr(getattr(env, "env", None), "unwrapped", None)
    for found in (getattr(inner, "shape", None), (getattr(inner, "nrow", 0), getattr(inner, "ncol", 0))):
        if isinstance(found, tuple) and len(found) == 2 and found[0] * found[1] == S:
            return int(found[0]), int(found[1])
    return None


def check_watchable(path: Path) -> None:
    """Raise if there is nothing there."""
    if not path.exists():
        raise InvalidParameter(f"RUN must be a folder of 'run --out', or a saved agent. There is no '{path}'.")
