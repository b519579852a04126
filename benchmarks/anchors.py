"""What scores of `linmdp benchmark` lie between: the value of the random policy, and of the best one known.

    python benchmarks/anchors.py [VERSION]      writes benchmark-VERSION.json; about 6 minutes

Where the model is known both are exact: V of the random policy and V*, averaged over the episodes. So they are where
Gymnasium has a table of the task. Elsewhere random play is played, and the best known is a bound that no policy can
pass, or what a search in a copy of the simulator finds from each of many first states.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from typing import Any

import numpy as np

from linmdp.envs.drift import DriftingEnv
from linmdp.envs.guard import Bare, Guard
from linmdp.envs.planning import optimum, policy_value, uniform_policy
from linmdp.experiments import study
from linmdp.experiments.suite import LATEST, SCALES, anchors_file
from linmdp.io.files import write_atomic
from linmdp.runner.registry import make_env
from linmdp.types import Array

BOUNDS = {"gym:CartPole-v1": 500.0}
"""The most that any policy can earn: a step pays 1, and there are 500."""

STARTS, PLAYED = 50, 1000
"""First states of the search, and episodes of random play."""


SIDES = {"gym:MountainCar-v0": (0.004, 0.001)}
"""Of the cells of a search, of which each is entered once."""


def anchors(task: Mapping[str, Any]) -> dict[str, Any]:
    """[random, best] at each scale, and how they are known."""
    env: Any = make_env(task["env"])
    if getattr(env, "model", None) is not None:
        return {scale: exact(env, task["episodes"][scale]) for scale in SCALES} | {"known": "exact, by the model"}
    inner: Any = env.env.unwrapped
    if hasattr(inner, "P"):
        return dict.fromkeys(SCALES, tabled(inner, env.task.H)) | {"known": "exact, by Gymnasium's table of the task"}
    rng = np.random.default_rng(0)
    random = float(np.mean([_random_return(inner, env.task.H, seed, rng) for seed in range(PLAYED)]))
    if task["env"] in BOUNDS:
        pair, known = [random, BOUNDS[task["env"]]], "no policy can earn more"
    else:
        found = [shortest(inner, seed, SIDES[task["env"]], env.task.H) for seed in range(STARTS)]
        pair, known = [random, float(np.mean(found))], f"search from {STARTS} first states"
    return dict.fromkeys(SCALES, pair) | {"known": f"{known}; random: {PLAYED} episodes"}


def exact(env: Any, episodes: int) -> list[float]:
    """V of the random policy and V* of the first state, on average over the models of the episodes."""
    drifting, total, known = isinstance(env, DriftingEnv), np.zeros(2), dict[Any, Array]()
    for k in range(episodes if drifting else 1):
        place = env.path.place(k) if drifting else 0
        if place not in known:
            model = env.model_of(k) if drifting else env.model
            known[place] = np.array([policy_value(model, uniform_policy(model))[0, 0], optimum(model).V[0, 0]])
        total += known[place]
    random, best = total / (episodes if drifting else 1)
    return [float(random), float(best)]


def tabled(env: Any, H: int) -> list[float]:
    """The same from Gymnasium's lists of (probability, next state, reward, ended) for each state and action."""
    S, A = len(env.P), len(env.P[0])
    values = []
    for play in (np.mean, np.max):
        V = np.zeros(S)
        for _ in range(H):
            Q = [[sum(p * (r + (not end) * V[s]) for p, s, r, end in env.P[x][a]) for a in range(A)] for x in range(S)]
            V = play(Q, axis=1)
        values.append(float(env.initial_state_distrib @ V))
    return values


def _random_return(env: Any, H: int, seed: int, rng: np.random.Generator) -> float:
    guard = Guard(env, Bare(int(env.action_space.n)))
    return sum(step.reward for step in guard.random_episode(seed, rng, H=H, seed=seed))


def shortest(env: Any, seed: int, sides: tuple[float, ...], H: int) -> float:
    """The return of the shortest way to the end that is found from one first state, by breadth first.

    A step pays -1, but the last one may pay something else.
    """
    env.reset(seed=seed)
    start = np.array(env.state)
    front, seen = [start], {_cell(start, sides)}
    for h in range(H):
        found: dict[tuple[int, ...], Array] = {}
        for state in front:
            for action in range(env.action_space.n):
                env.state = state.copy()
                _, reward, ended, *_ = env.step(action)
                if ended:
                    return float(reward) - h
                reached = np.array(env.state)
                if (cell := _cell(reached, sides)) not in seen:
                    found.setdefault(cell, reached)
        seen |= set(found)
        front = list(found.values())
    return -float(H)


def _cell(state: Array, sides: tuple[float, ...]) -> tuple[int, ...]:
    return tuple(np.round(state / sides).astype(int).tolist())


def main() -> None:
    """Write the anchors of a suite, task by task."""
    version, found = sys.argv[1] if len(sys.argv) > 1 else LATEST, {}
    for task in study(f"benchmark-{version}")["tasks"]:
        found[task["name"]] = anchors(task)
        print(task["name"], found[task["name"]], flush=True)
    write_atomic(anchors_file(version), (json.dumps(found, indent=1) + "\n").encode())


if __name__ == "__main__":
    main()
