"""What random play earns, once for each environment: learners are judged beside it."""

from __future__ import annotations

from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

import numpy as np

from linmdp.agents.base import Agent
from linmdp.envs.base import LinearModel
from linmdp.envs.guard import Guard, as_it_is
from linmdp.envs.planning import policy_value, uniform_policy
from linmdp.errors import LinMDPError
from linmdp.results.verdict import verdict
from linmdp.runner.measured import one_blas_thread
from linmdp.runner.spec import rerun_words
from linmdp.types import RunResult

EPISODES = 20
STEPS = 10_000
"""Episodes that are played, at most; fewer where they have more steps than that."""

SEED = 20_250_101
"""Of the environment and of the actions."""


MANY = 100
"""Actions of which each is asked for what it earns alone, at most."""


class RandomPlay(NamedTuple):
    """The returns of random play: of some episodes or, with the `optimum` beside it, the one exact value.

    Where they are known: what the best `constant` action earns, and the `most` that any episode can earn.
    """

    returns: list[float]
    optimum: float | None = None
    constant: float | None = None
    most: float | None = None
    steps: int = 0
    """That were played for it."""


def random_play(env: Any) -> RandomPlay:
    """By planning where the model is known and every episode starts in the same state, else by play.

    An environment that fails in it has no returns. It is reset with a seed of its own, as any run resets it.
    """
    inner = env.unwrapped
    model = getattr(inner, "model", None)
    try:
        with one_blas_thread(), as_it_is(env):  # the last bits must not depend on the machine
            if model is not None and model.start == "fixed":
                state = 0 if isinstance(model, LinearModel) else Guard(env).reset(0, SEED)
                V = policy_value(model, uniform_policy(model))[0]
                optimum, constant = float(inner.optimum.V[0][state]), _best_constant(model, int(state))
                return RandomPlay([float(V[state])], optimum, constant)
            return _played(Guard(env))._replace(most=getattr(inner, "most_return", None))
    except LinMDPError:  # the run itself has met the same fault, or will
        return RandomPlay([])


def random_returns(env: Any) -> list[float]:
    """What some episodes of random play earn, also where their value is known; none where the environment fails."""
    try:
        return _played(Guard(env)).returns
    except LinMDPError:
        return []


def _best_constant(model: Any, state: int) -> float | None:
    """The largest value of a policy that always takes the same action; None where there are too many to ask."""
    if model.A > MANY:
        return None

    def alone(action: int) -> float:
        actions = np.full(model.S, action)
        return float(policy_value(model, lambda h: actions)[0][state])

    return max(map(alone, range(model.A)))


def _played(guard: Guard) -> RandomPlay:
    rng, returns = np.random.default_rng(SEED), list[float]()
    while len(returns) < EPISODES and guard.steps < STEPS:
        k = len(returns)
        steps = guard.random_episode(k, rng, H=guard.task.H, seed=None if k else SEED)
        returns.append(guard.original(sum(step.reward for step in steps)))
    return RandomPlay(returns, steps=guard.steps)


_known: WeakKeyDictionary[Any, RandomPlay] = WeakKeyDictionary()


def judged(result: RunResult, env: Any, agent: Agent) -> RunResult:
    """The result of a run in that environment, with its verdict; random play is played once, after the run."""
    result.rerun = rerun_words(getattr(env, "made_from", None), agent.made_from.get("agent"))
    try:
        play = _known.get(env.unwrapped) or _known.setdefault(env.unwrapped, random_play(env))
    except TypeError:  # an environment that nothing can be remembered of
        play = random_play(env)
    return with_verdict(result, play)


def with_verdict(result: RunResult, play: RandomPlay) -> RunResult:
    """The result beside random play."""
    result.random_returns, result.optimal_return = play.returns, play.optimum
    result.constant_return, result.most_return = play.constant, play.most
    if result.interactions is not None:
        result.interactions += play.steps
    result.verdict = verdict([result])
    return result
