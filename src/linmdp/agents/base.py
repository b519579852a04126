"""The interface of every agent, and the bookkeeping that all parts of an agent share."""

from __future__ import annotations

import inspect
import json
from abc import ABC, abstractmethod
from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from linmdp.errors import InvalidData, one_number
from linmdp.types import Array, IntArray, State, Task

StateDict = dict[str, np.ndarray]


class Component:
    """A part of an agent that owns arrays: it knows their bytes, and how to save and restore itself.

    A subclass names its arrays, its whole-number counters, and arrays that are only scratch space.
    """

    _arrays: ClassVar[tuple[str, ...]] = ()
    _counters: ClassVar[tuple[str, ...]] = ()
    _scratch: ClassVar[tuple[str, ...]] = ()

    @property
    def nbytes(self) -> int:
        """Bytes of all arrays that this part owns now."""
        return sum(getattr(self, name).nbytes for name in (*self._arrays, *self._scratch))

    def state_dict(self) -> StateDict:
        """A copy of everything that this part has learned."""
        state = {name: getattr(self, name).copy() for name in self._arrays}
        state.update({name: np.array(getattr(self, name), dtype=np.int64) for name in self._counters})
        return state

    def load_state_dict(self, state: Mapping[str, np.ndarray]) -> None:
        """Become what `state_dict` saved."""
        for name in self._arrays:
            load_array(getattr(self, name), state, name)
        for name in self._counters:
            setattr(self, name, int(saved_array(state, name)))


REWARD_SLACK = 1e-9
"""Rounding allowed on a reward before it counts as outside its range."""


def check_reward(reward: Any, reward_range: tuple[float, float], k: int | None, h: int) -> float:
    """`reward` of episode k (None: not known) and step h as a float, if it is one number within the range."""
    low, high = reward_range
    try:
        value = reward if type(reward) is float else one_number(reward)
        rule = "" if low - REWARD_SLACK <= value <= high + REWARD_SLACK else f"in [{low:g}, {high:g}]"  # NaN fails it
    except (TypeError, ValueError):
        rule = "one number"
    if rule:
        which = f"step {h}" if k is None else f"episode {k}, step {h}"
        raise InvalidData(f"The reward of {which} must be {rule}. Got {reward!r}.")
    return value


def saved_array(state: Mapping[str, np.ndarray], name: str) -> np.ndarray:
    """One entry of a saved state, or an error that names what is missing."""
    if name not in state:
        raise InvalidData(f"The saved agent has no '{name}': it is damaged, or no saved agent.")
    return state[name]


def load_array(mine: np.ndarray, state: Mapping[str, np.ndarray], name: str) -> None:
    """Fill `mine` from a saved state, if what was saved fits."""
    saved = saved_array(state, name)
    if mine.shape != saved.shape or mine.dtype != saved.dtype:
        raise InvalidData(
            f"'{name}' of a saved agent must be {mine.dtype} of shape {mine.shape}. "
            f"Got {saved.dtype} of shape {saved.shape}."
        )
    mine[...] = saved


def _packed(value: Any) -> np.ndarray:
    """A JSON value as an array of bytes, so that a saved state is arrays and nothing else."""
    return np.frombuffer(json.dumps(value).encode(), dtype=np.uint8).copy()


def _unpacked(state: Mapping[str, np.ndarray], name: str) -> dict[str, Any]:
    """The JSON object that `_packed` made an array of."""
    try:
        value = json.loads(saved_array(state, name).tobytes())
    except (ValueError, RecursionError) as error:
        raise InvalidData(f"'{name}' of the saved agent is damaged.") from error
    if not isinstance(value, dict):
        raise InvalidData(f"'{name}' of the saved agent must be a JSON object. Got {value!r:.80}.")
    return value


def prefixed(prefix: str, state: Mapping[str, np.ndarray]) -> StateDict:
    """`state` with every name under `prefix`."""
    return {f"{prefix}.{name}": value for name, value in state.items()}


def under(prefix: str, state: Mapping[str, np.ndarray]) -> StateDict:
    """The part of `state` under `prefix`, with the prefix taken off."""
    start = prefix + "."
    return {name[len(start) :]: value for name, value in state.items() if name.startswith(start)}


class Agent(ABC):
    """What the run loop asks of an agent. Steps h count from 0 to H-1.

    Constructor arguments are keyword-only after the task and stored verbatim under their own names.

    Attributes
    ----------
    test_parameters : of the class; those with which `linmdp.testing.check_agent` tries it
    task : what the agent may know
    rng : the only source of randomness; the run loop seeds it
    caps : (H,) largest value that Q can have at each step, or None for an agent that estimates no Q
    policy_version : grows whenever the policy may have changed
    updates, resets : regressions solved; times that the working space was deleted
    """

    name: ClassVar[str]
    test_parameters: ClassVar[tuple[dict[str, Any], ...]] = ({},)

    def __init__(self, task: Task) -> None:
        self.task = task
        self.rng = np.random.default_rng()
        self.caps: Array | None = None
        self.policy_version = 0
        self.updates = 0
        self.resets = 0

    def begin_episode(self) -> None:  # noqa: B027 (an agent that does not learn has nothing to do)
        """Called before the first step of an episode: planning happens here."""

    @abstractmethod
    def act(self, h: int, state: State) -> int:
        """The action for `state` at step h."""

    def observe(  # noqa: B027
        self, h: int, state: State, action: int, reward: float, next_state: State, terminated: bool
    ) -> None:
        """What came of the action."""

    def end_episode(self) -> None:  # noqa: B027
        """Called after the last step of an episode, also of one that ended early."""

    @abstractmethod
    def q_values(self, h: int, state: State) -> Array:
        """What the agent believes each action is worth, (A,)."""

    @abstractmethod
    def policy(self, h: int) -> Array | IntArray:
        """The policy on finite states: (S,) actions or, where they are drawn, (S, A) probabilities."""

    @property
    def nbytes(self) -> int:
        """Bytes of all arrays that the agent owns now."""
        return 0

    def bytes_after(self, episodes: int) -> int:
        """Bytes that the agent will own after that many episodes, at most."""
        return self.nbytes

    def drift(self) -> float | None:
        """max |Lambda Lambda^-1 - I|, for agents that keep an inverse."""
        return None

    @classmethod
    def parameters(cls) -> dict[str, inspect.Parameter]:
        """The keyword parameters of the constructor: those of its bases, then its own."""
        found: dict[str, inspect.Parameter] = {}
        for base in reversed(cls.__mro__):
            if "__init__" in vars(base):
                own = inspect.signature(vars(base)["__init__"]).parameters.values()
                found |= {p.name: p for p in own if p.kind is p.KEYWORD_ONLY}
        return found

    def get_params(self) -> dict[str, Any]:
        """The constructor's keyword arguments, as they were given."""
        return {name: getattr(self, name) for name in self.parameters() if hasattr(self, name)}

    def _identity(self) -> dict[str, Any]:
        """What a saved state must agree with: the kind of agent, its parameters, and the size of its task."""
        task = self.task
        return {"agent": self.name, "S": task.S, "A": task.A, "d": task.d, "H": task.H} | self.get_params()

    def state_dict(self) -> StateDict:
        """A copy of everything that the agent has learned, of its random generator, and of whose state it is."""
        counters = np.array([self.policy_version, self.updates, self.resets], dtype=np.int64)
        rng = _packed(self.rng.bit_generator.state)
        return {"identity": _packed(self._identity()), "rng": rng, "counters": counters}

    def load_state_dict(self, state: Mapping[str, np.ndarray]) -> None:
        """Become what `state_dict` saved, of an agent with the same parameters; if that fails nothing has changed."""
        saved, mine = _unpacked(state, "identity"), self._identity()
        for name in (*mine, *saved):
            if saved.get(name) != mine.get(name):
                raise InvalidData(
                    f"The saved agent must have {name}={mine.get(name)!r}, as this one. Got {saved.get(name)!r}."
                )
        before = self.state_dict()
        try:
            self._load(state)
        except Exception as error:
            self._load(before)
            if isinstance(error, InvalidData):
                raise
            words = f"{type(error).__name__}: {error}".partition("\n")[0][:200]
            raise InvalidData(f"The saved agent is damaged: {words}.") from error

    def save(self, path: str | Path) -> None:
        """Write the agent to a file, whole or not at all; `linmdp.load_agent(path, env)` reads it."""
        from linmdp.io.files import write_atomic
        from linmdp.io.tensorfile import packed

        write_atomic(Path(path), packed("agent", {"agent": self._identity()}, self.state_dict()))

    def _load(self, state: Mapping[str, np.ndarray]) -> None:
        self.rng.bit_generator.state = _unpacked(state, "rng")
        counters = saved_array(state, "counters")
        self.policy_version, self.updates, self.resets = (int(x) for x in counters)
