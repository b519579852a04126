"""What an environment delivers, checked before an agent sees it; a fault is named with its episode and step."""

from __future__ import annotations

from typing import Any

import numpy as np

from linmdp.agents.base import check_reward
from linmdp.errors import InvalidData, InvalidParameter, LinMDPError, described, one_line
from linmdp.types import WHOLE, RunResult, State, Task, all_finite


class RunStopped(InvalidData):
    """A run that its environment (or a Q that is NaN) has stopped; `result` holds the episodes before that."""

    def __init__(self, words: str, result: RunResult | None = None) -> None:
        super().__init__(words)
        self.result = result


def task_of(env: Any) -> Task:
    """The task of an environment that has one."""
    task = getattr(getattr(env, "unwrapped", env), "task", None)
    if not isinstance(task, Task):
        raise InvalidParameter(f"The environment must have a 'task': use linmdp.make_env or GymTask. Got {env!r}.")
    return task


class Guard:
    """An environment whose every state and reward is checked.

    States are whole numbers below S or, where they are not finite, arrays of finite numbers that keep the shape and
    the type of the first one.
    """

    def __init__(self, env: Any) -> None:
        self.env, self.task = env, task_of(env)
        self._form: tuple[Any, Any] | None = None

    def reset(self, k: int, seed: int | None = None, options: dict[str, Any] | None = None) -> State:
        """The first state of episode k."""
        try:
            state, _ = self.env.reset(seed=seed, options=options)
        except LinMDPError:
            raise
        except Exception as error:
            raise InvalidData(f"The reset before episode {k} must not fail. Got {described(error)}.") from error
        self._check_state(state, k, None)
        return state

    def step(self, k: int, h: int, action: int) -> tuple[State, float, bool, bool]:
        """Step h of episode k: next state, reward, terminated, truncated."""
        try:
            state, reward, terminated, truncated, _ = self.env.step(action)
        except LinMDPError:
            raise
        except Exception as error:
            raise InvalidData(f"Episode {k}, step {h} must not fail. Got {described(error)}.") from error
        value = check_reward(reward, self.task.reward_range, k, h)
        self._check_state(state, k, h)
        return state, value, terminated, truncated

    def original(self, total: float) -> float:
        """The return of the episode in the environment's own units, where an agent is paid in others."""
        earned = getattr(self.env.unwrapped, "earned", None)
        return total if earned is None else float(earned)

    def _check_state(self, state: State, k: int, h: int | None) -> None:
        S = self.task.S
        if S is None:
            rule = self._broken_rule(state)
        else:
            rule = "" if isinstance(state, WHOLE) and 0 <= state < S else f"a whole number in [0, {S - 1}]"
        if rule:
            which = f"first state of episode {k}" if h is None else f"state after episode {k}, step {h}"
            form = f"{state.dtype} of shape {state.shape}: " if isinstance(state, np.ndarray) else ""
            raise InvalidData(f"The {which} must be {rule}. Got {form}{one_line(repr(state), 120)}.")

    def _broken_rule(self, state: State) -> str:
        array = np.asarray(state)
        if array.dtype.kind not in "biuf":
            return "made of numbers"
        if self._form is None:
            self._form = (array.shape, array.dtype)
        if (array.shape, array.dtype) != self._form:
            shape, dtype = self._form
            return f"{dtype} of shape {shape}, as the first one"
        return "" if all_finite(array) else "finite"
