"""What every feature map and every environment owes."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from linmdp.envs.base import LinearModel, check_linear
from linmdp.envs.guard import Guard, task_of
from linmdp.envs.planning import policy_value, uniform_policy
from linmdp.errors import InvalidData, LinMDPError, described
from linmdp.features.base import FeatureMap, check_phi
from linmdp.features.unit import LARGEST_DENSE, UnitFeatures
from linmdp.runner.env_check import check_behaviour
from linmdp.runner.registry import make_env

FEW = 20
"""Unit vectors are written out for so many states: for all, they would not fit."""


def require(condition: Any, words: str) -> None:
    """Raise AssertionError with these words unless the condition holds."""
    if not condition:
        raise AssertionError(words)


def check_features(features: Any, states: Any = None) -> None:
    """Check a feature map on `states`, an array of several; default: all of them, for a map of finite states."""
    require(
        isinstance(features, FeatureMap),
        f"a feature map must have A, d, bound, nbytes, phi and batch: {features!r:.80}",
    )
    A, d, who = features.A, features.d, type(features).__name__
    require(isinstance(A, int) and isinstance(d, int) and A >= 1 and d >= 1, f"{who}: A and d must be at least 1")
    require(np.isfinite(features.bound) and features.bound > 0, f"{who}: the bound must be a positive number")
    require(isinstance(features.nbytes, int) and features.nbytes >= 0, f"{who}: nbytes must be a number of bytes")
    S: Any = getattr(features, "S", None)
    require(states is not None or S is not None, f"{who}: states to check it on must be given")
    states = np.arange(S) if states is None else np.asarray(states)
    unit = isinstance(features, UnitFeatures)
    if unit:
        _check_places(features, states)
        states = states[:FEW] if d <= LARGEST_DENSE else states[:0]
        if not len(states):
            return
    before = states.copy()
    try:
        alone = [check_phi(features.phi(s), A, d, features.bound, where=f"of state {s!r:.80}") for s in states]
        batch = check_phi(features.batch(states), A, d, features.bound, where="of a batch of states")
    except InvalidData as error:
        raise AssertionError(f"{who}: {error}") from error
    require(np.array_equal(states, before), f"{who}: the states must not be changed")
    require(batch.shape == (len(states), A, d), f"{who}: batch(states) must have shape {(len(states), A, d)}")
    require(all(one.shape == (A, d) for one in alone), f"{who}: phi(state) must have shape {(A, d)}")
    agree = np.allclose(batch, np.stack(alone), rtol=1e-12, atol=1e-12)
    require(agree, f"{who}: batch(states) must equal phi of each state")
    again = all(np.array_equal(features.phi(s), one) for s, one in zip(states, alone, strict=True))
    require(again, f"{who}: phi must be the same whenever it is asked for")
    if S is not None and not unit:
        require(features.table().shape == (S, A, d), f"{who}: table() must have shape {(S, A, d)}")


def _check_places(features: UnitFeatures, states: Any) -> None:
    """Of unit vectors: each place of a 1 belongs to one state and one action."""
    who, places = type(features).__name__, np.array([features.index(s) for s in states])
    require(places.shape == (len(states), features.A), f"{who}: index(state) must have shape {(features.A,)}")
    require(((places >= 0) & (places < features.d)).all(), f"{who}: index(state) must be in [0, {features.d - 1}]")
    different = np.unique(places[:, 0], return_index=True)[1]
    distinct = len(np.unique(places[different])) == places[different].size
    require(distinct, f"{who}: no two states or actions may share an index")
    if features.d <= LARGEST_DENSE:
        some = states[:FEW]
        require(
            np.array_equal(features.batch(some).argmax(axis=2), places[: len(some)]),
            f"{who}: phi must be the unit vector of index",
        )


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
