"""Vector environments: one of their streams as an environment of its own, or all of them as streams of one task."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import gymnasium
import numpy as np
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import iterate

from linmdp.envs.adapter import GymTask
from linmdp.envs.guard import Guard
from linmdp.errors import FAULTS, InvalidData, LinMDPError, described
from linmdp.types import BoolArray, State, Transition


class FirstStream(gymnasium.Env[Any, Any]):
    """The first stream of a vector environment, whose others get the same actions and are not looked at."""

    def __init__(self, vector: VectorEnv[Any, Any, Any]) -> None:
        self.vector, self.spec, self.metadata = vector, vector.spec, dict(vector.metadata)
        self.observation_space, self.action_space = vector.single_observation_space, vector.single_action_space

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> Any:
        """Start an episode in every stream."""
        return _begun(self.vector, seed=seed, options=options)[0]

    def step(self, action: Any) -> Any:
        """One step of every stream."""
        found = _stepped(self.vector, [action] * self.vector.num_envs)
        others = np.array([i > 0 and bool(step[2] or step[3]) for i, step in enumerate(found)])
        if _mode(self.vector) == AutoresetMode.DISABLED and others.any():
            self.vector.reset(options={"reset_mask": others})
        return found[0]


class _View(gymnasium.Env[Any, Any]):
    """One stream, whose news somebody else brings: the vector environment makes the steps of all at once."""

    def __init__(self, vector: VectorEnv[Any, Any, Any]) -> None:
        self.observation_space, self.action_space = vector.single_observation_space, vector.single_action_space
        self.news: Any = None

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        """What the first observation was."""
        return self.news[0], self.news[-1]

    def step(self, action: Any) -> Any:
        """What came of the step."""
        return self.news


Row = tuple[Transition, BoolArray | None]
"""A step, and what may be done after it, (A,), where the environment says so."""


class Lived(NamedTuple):
    """An episode: how many steps, what was paid in the task's own units, and the steps that nobody has observed."""

    length: int
    earned: float
    unseen: list[Row]


class Streams:
    """Every stream of a vector environment as a task like `task`; each plays its own episodes."""

    def __init__(self, vector: VectorEnv[Any, Any, Any], task: GymTask) -> None:
        self.vector, self.env, self.n = vector, task, vector.num_envs
        self.mode = _mode(vector)
        self._views = [_View(vector) for _ in range(self.n)]
        self._guards = [Guard(task.beside(view), during=f" of stream {i}") for i, view in enumerate(self._views)]
        self._ended = [0] * self.n

    def episodes(self, seed: int, act: Callable[[Guard, int, State], int]) -> Iterator[Lived]:
        """Episodes without end, in the order in which they end.

        All streams begin anew; what `act` chooses at step h is asked for one stream after the other.
        """
        with _named("reset"):
            first = _begun(self.vector, seed=seed)
        states = [self._begun(i, first[i]) for i in range(self.n)]
        rows: list[list[Row]] = [[] for _ in range(self.n)]
        over = np.zeros(self.n, dtype=np.bool_)
        """Streams whose next step is a reset, and no step."""
        while True:
            chosen = [0 if over[i] else act(self._guards[i], len(rows[i]), states[i]) for i in range(self.n)]
            with _named("step"):
                news, over_before = _stepped(self.vector, [self.env.action_map(a) for a in chosen]), over.copy()
            ended = np.zeros(self.n, dtype=np.bool_)
            for i in range(self.n):
                if over_before[i]:
                    states[i], over[i] = self._begun(i, (news[i][0], news[i][4])), False
                    continue
                ended[i] = self._step(i, rows, states, chosen[i], news[i])
            for i in np.flatnonzero(ended).tolist():
                earned = self._guards[i].original(sum(step.reward for step, _ in rows[i]))
                yield Lived(len(rows[i]), earned, rows[i])
                rows[i], self._ended[i] = [], self._ended[i] + 1
            self._begin_again(ended, over, news, states)

    def _begun(self, i: int, news: Any) -> State:
        self._views[i].news = news
        return self._guards[i].reset(self._ended[i])

    def _step(self, i: int, rows: list[list[Row]], states: list[State], action: int, news: Any) -> bool:
        """Note one step of stream i; whether its episode is over."""
        final = news[4].get("final_obs")
        self._views[i].news = news if final is None else (final, *news[1:])
        h = len(rows[i])
        following, reward, terminated, truncated = self._guards[i].step(self._ended[i], h, action)
        rows[i].append((Transition(h, states[i], action, reward, following, terminated), self._guards[i].mask))
        if truncated and not (terminated or news[2] or news[3]):
            raise InvalidData(
                f"Episodes of a vector environment must end within H={self.env.task.H} steps by themselves, since none "
                "of its streams can be reset alone: give its environments a gymnasium.wrappers.TimeLimit."
            )
        states[i] = following
        return terminated or truncated

    def _begin_again(self, ended: Any, over: Any, news: list[Any], states: list[State]) -> None:
        """Start the next episode of streams whose last one has ended, in the way that the environment resets them."""
        if self.mode == AutoresetMode.NEXT_STEP:
            over |= ended
        elif self.mode == AutoresetMode.SAME_STEP:
            for i in np.flatnonzero(ended).tolist():
                states[i] = self._begun(i, (news[i][0], {}))
        elif ended.any():
            with _named("reset"):
                first = _begun(self.vector, options={"reset_mask": ended.copy()})
            for i in np.flatnonzero(ended).tolist():
                states[i] = self._begun(i, first[i])


def _mode(vector: VectorEnv[Any, Any, Any]) -> Any:
    """How its streams are reset."""
    return vector.metadata.get("autoreset_mode", AutoresetMode.NEXT_STEP)


def _begun(vector: VectorEnv[Any, Any, Any], **how: Any) -> list[Any]:
    """What each stream shows after a reset."""
    return _by_stream(vector, *vector.reset(**how))


def _stepped(vector: VectorEnv[Any, Any, Any], actions: list[Any]) -> list[Any]:
    """What each stream shows after one step of all, as it is: who plays it through a guard looks at it."""
    return _by_stream(vector, *vector.step(np.array(actions)))


def _by_stream(vector: VectorEnv[Any, Any, Any], observations: Any, *found: Any) -> list[Any]:
    """What was found of all streams, for each: the observation, numbers, the info."""
    shown, (*numbers, infos) = list(iterate(vector.observation_space, observations)), found
    return [(shown[i], *(each[i] for each in numbers), info_of(infos, i)) for i in range(vector.num_envs)]


@contextmanager
def _named(what: str) -> Iterator[None]:
    """A reset or a step of all streams at once that fails is a fault of the environment."""
    try:
        yield
    except LinMDPError:
        raise
    except FAULTS as error:
        raise InvalidData(f"A {what} of the vector environment must not fail. Got {described(error)}.") from error


def info_of(infos: dict[str, Any], i: int) -> dict[str, Any]:
    """What the infos of a vector environment say of stream i: an entry counts where its mask, `_name`, says so."""
    return {
        name: info_of(value, i) if isinstance(value, dict) else value[i]
        for name, value in infos.items()
        if not name.startswith("_") and f"_{name}" in infos and infos[f"_{name}"][i]
    }
