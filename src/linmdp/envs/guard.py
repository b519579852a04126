"""How an environment is played: resets, steps and rewards are checked, and a fault is named with its place."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np

from linmdp.envs.base import LinearModel
from linmdp.errors import (
    FAULTS,
    Fault,
    InvalidData,
    InvalidParameter,
    LinMDPError,
    check_flag,
    check_reward,
    described,
)
from linmdp.types import WHOLE, BoolArray, State, Task, all_finite


def task_of(env: Any) -> Task:
    """The task of an environment that has one."""
    task = getattr(getattr(env, "unwrapped", env), "task", None)
    if not isinstance(task, Task):
        raise InvalidParameter(f"The environment must have a 'task': use linmdp.make_env or GymTask. Got {env!r}.")
    return task


def name_of(env: Any) -> str:
    """What an environment, or a model, is called: by its model's name, by its id, or by its class."""
    inner = getattr(env, "unwrapped", env)
    model = inner if isinstance(inner, LinearModel) else getattr(inner, "model", None)
    return str(getattr(model, "name", None) or getattr(inner, "id", None) or type(inner).__name__)


@contextmanager
def as_it_is(env: Any) -> Iterator[None]:
    """Within it nothing is played before an episode of `env` for what no agent has asked for so far."""
    inner = env.unwrapped
    if not hasattr(inner, "as_it_is"):  # an environment that is known from the start
        yield
        return
    before, inner.as_it_is = inner.as_it_is, True
    try:
        yield
    finally:
        inner.as_it_is = before


class Bare(NamedTuple):
    """What is known of an environment before it has a task."""

    A: int
    S: int | None = None
    payable: tuple[float, float] = (-math.inf, math.inf)


class PlayedStep(NamedTuple):
    """One step of an episode as it came through the guard."""

    h: int
    state: State
    action: int
    reward: float
    next_state: State
    terminated: bool
    truncated: bool


class Guard:
    """An environment whose every state, reward and end is checked; whoever plays one plays it through a guard.

    States are whole numbers below S or, where they are not finite, arrays of finite numbers that keep the shape and
    the type of the first one. Arrays are copies: an environment may go on writing into its own.

    Parameters
    ----------
    env : an environment with a task, or any other where `task` is given
    task : S, A and the range of rewards; default: those of the environment
    read : from what the environment shows to a state
    actions : from an action in [0, A) to one of the environment
    during : what is being played, for the words of a fault: " of random play"

    Attributes
    ----------
    steps : how many steps were played through this guard
    mask : which actions may be taken now, (A,); None where the environment does not say
    """

    def __init__(
        self,
        env: Any,
        task: Task | Bare | None = None,
        *,
        read: Callable[[Any], State] | None = None,
        actions: Callable[[int], Any] | None = None,
        during: str = "",
    ) -> None:
        self.env, self.during, self.steps = env, during, 0
        self.task: Any = task_of(env) if task is None else task
        self._read, self._actions = read, actions
        self._form: tuple[Any, Any] | None = None
        self._ask = getattr(actions, "mask", None)
        self.mask: BoolArray | None = None

    def reset(self, k: int, seed: int | None = None, options: dict[str, Any] | None = None) -> State:
        """The first state of episode k."""
        try:
            state, info = self.env.reset(seed=seed, options=options)
            self.mask = self._mask_in(info)
            return self._checked(state if self._read is None else self._read(state))
        except Fault as fault:
            raise InvalidData(fault.at(f"first {fault.what} of episode {k}{self.during}")) from fault
        except LinMDPError:
            raise
        except FAULTS as error:
            words = f"The reset before episode {k}{self.during} must not fail. Got {described(error)}."
            raise InvalidData(words) from error

    def step(self, k: int, h: int, action: int) -> tuple[State, float, bool, bool]:
        """Step h of episode k: next state, reward, terminated, truncated."""
        self.steps += 1
        try:
            chosen = action if self._actions is None else self._actions(action)
            state, reward, terminated, truncated, info = self.env.step(chosen)
            value = check_reward(reward, self.task.payable, k, h)
            ended, cut = check_flag("terminated", terminated), check_flag("truncated", truncated)
            self.mask = None if ended or cut else self._mask_in(info)
            return self._checked(state if self._read is None else self._read(state)), value, ended, cut
        except Fault as fault:
            preposition = "of" if fault.what in ("terminated", "truncated") else "after"
            raise InvalidData(fault.at(f"{fault.what} {preposition} episode {k}, step {h}{self.during}")) from fault
        except LinMDPError:
            raise
        except FAULTS as error:
            raise InvalidData(f"Episode {k}, step {h}{self.during} must not fail. Got {described(error)}.") from error

    def _mask_in(self, info: Any) -> BoolArray | None:
        """What the environment says of the actions that may be taken now."""
        if self._ask is not None:
            found = self._ask(self.env, info)
        elif not isinstance(self.task, Task):
            return None
        else:
            inner = self.env.unwrapped
            said = info.get("action_mask") if isinstance(info, dict) else None
            found = inner.action_mask if hasattr(inner, "action_mask") else said
        if found is None:
            return None
        mask = np.asarray(found).astype(np.bool_)
        if mask.shape != (self.task.A,) or not mask.any():
            raise Fault("action mask", f"{self.task.A} flags, one of them at least true", found)
        return mask

    def random_episode(
        self, k: int, rng: np.random.Generator, *, H: int | None = None, seed: int | None = None
    ) -> Iterator[PlayedStep]:
        """Episode k of random play, of at most H steps: the only loop there is of it."""
        state, h = self.reset(k, seed), 0
        while H is None or h < H:
            mask = self.mask
            action = int(rng.integers(self.task.A) if mask is None else rng.choice(np.flatnonzero(mask)))
            following, reward, terminated, truncated = self.step(k, h, action)
            yield PlayedStep(h, state, action, reward, following, terminated, truncated)
            if terminated or truncated:
                return
            state, h = following, h + 1

    def original(self, total: float) -> float:
        """The return of the episode in the environment's own units, where an agent is paid in others."""
        earned = getattr(self.env.unwrapped, "earned", None)
        return total if earned is None else float(earned)

    def _checked(self, state: Any) -> State:
        """The state, and where it is an array, a copy of it."""
        S = self.task.S
        if S is not None:
            if isinstance(state, WHOLE) and 0 <= state < S:
                return state
            rule = f"a whole number in [0, {S - 1}]"
        else:
            if isinstance(state, WHOLE):
                return state
            array = plain_array("state", state)
            if self._form is None:
                self._form = (array.shape, array.dtype)
            alike = (array.shape, array.dtype) == self._form
            if alike and all_finite(array):
                return array.copy() if array.ndim else state
            shape, dtype = self._form
            rule = "finite" if alike else f"{dtype} of shape {shape}, as the first one"
        raise Fault("state", rule, state)


def plain_array(what: str, value: Any) -> np.ndarray:
    """`value` as an array of numbers, if it is one."""
    if isinstance(value, np.ma.MaskedArray):
        raise Fault(what, "an array without a mask", value)
    try:
        array = np.asarray(value)
    except FAULTS:
        array = np.empty(0, dtype=object)
    if array.dtype.kind not in "biuf":
        raise Fault(what, "made of numbers", value)
    return array
