"""What every environment owes."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from linmdp.envs.base import LinearModel, check_linear
from linmdp.envs.guard import Guard, task_of
from linmdp.envs.planning import policy_value, uniform_policy
from linmdp.errors import LinMDPError, described
from linmdp.runner.env_check import check_behaviour
from linmdp.runner.registry import make_env
from linmdp.testing.features import check_features, require

EPISODES = 300
"""Of random play, whose mean return is compared with its value in the model."""


def check_env(env: Any) -> None:
    """Check an environment, or the one of a spec: Gymnasium's own checks, the task, the features, and the model."""
    env = make_env(env) if isinstance(env, str) else env
    try:
        task = task_of(env)
    except LinMDPError as error:
        raise AssertionError(str(error)) from error
    _check_gymnasium(env)
    for finding in check_behaviour(env):
        require(finding.ok, finding.text)
    model = getattr(env.unwrapped, "model", None)
    states = _check_play(env, model)
    check_features(task.features, np.arange(task.S) if task.S is not None else np.array(states))
    if isinstance(model, LinearModel):
        sizes = (model.S, model.A, model.d, model.H) == (task.S, task.A, task.d, task.H)
        require(sizes and model.reward_range == task.reward_range, "the model must be of the size of the task")
        for finding in check_linear(model):
            require(finding.ok, f"it must be a linear MDP, in which {finding.text}")


def _check_gymnasium(env: Any) -> None:
    import gymnasium
    from gymnasium.utils.env_checker import check_env as check_gymnasium_env

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # advice on metadata and wrappers
        try:
            adapted = isinstance(env.unwrapped, gymnasium.Wrapper)  # a GymTask cannot be made again from its id alone
            check_gymnasium_env(env.unwrapped, skip_render_check=True, skip_close_check=adapted)
        except Exception as error:
            raise AssertionError(f"it must pass Gymnasium's env_checker. Got {described(error, 300)}") from error


def _check_play(env: Any, model: Any) -> list[Any]:
    """Random play must be worth what the model says, up to five standard errors; the states of its beginning."""
    rng, guard, states, gaps = np.random.default_rng(0), Guard(env), list[Any](), list[float]()
    values = None if model is None else policy_value(model, uniform_policy(model))[0]
    for k in range(EPISODES if model is not None else 5):
        for step in guard.random_episode(k, rng, H=guard.task.H, seed=None if k else 0):
            if step.h == 0:
                gaps.append(0.0 if values is None else -float(values[step.state]))
            states += [step.state] if len(states) < 100 else []
            gaps[-1] += step.reward
    if values is not None:
        # rewards are clipped after noise is added, which moves their mean by less than the noise
        slack = 5 * np.std(gaps) / np.sqrt(len(gaps)) + guard.task.H * getattr(model, "noise", 0.0) + 1e-9
        off = float(np.mean(gaps))
        require(abs(off) <= slack, f"random play must earn what the model says: it is off by {off:.4g} per episode")
    return states
