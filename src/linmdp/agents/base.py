"""The interface of every agent, and the bookkeeping that all parts of an agent share."""

from __future__ import annotations

import inspect
import json
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any, ClassVar

import numpy as np

from linmdp.agents.held import Limits, check_range
from linmdp.errors import InvalidData, InvalidParameter, check_reward, one_line
from linmdp.io.files import write_atomic
from linmdp.io.tensorfile import packed
from linmdp.types import Array, BoolArray, IntArray, MorePossible, State, Task, Transition

StateDict = dict[str, np.ndarray]


class Component:
    """A part of an agent that owns arrays: it knows their bytes, and how to save and restore itself.

    A subclass names its arrays, its whole-number counters, arrays that are only scratch space, small ones that follow
    from its parameters, and the components that it is made of. An array that it owns and does not name is an error when
    the agent is saved.
    """

    _arrays: ClassVar[tuple[str, ...]] = ()
    _counters: ClassVar[tuple[str, ...]] = ()
    _saved_within: ClassVar[Limits] = {}
    _scratch: ClassVar[tuple[str, ...]] = ()
    _derived: ClassVar[tuple[str, ...]] = ()
    _members: ClassVar[tuple[str, ...]] = ()
    """A saved state has their arrays under their names, without the underscore of an attribute; one may be None."""
    _passing: ClassVar[tuple[str, ...]] = ()
    """What it remembers between two calls, of no weight."""
    _run_axis: ClassVar[Mapping[str, int]] = {}
    """Which axis of an array counts the runs in lockstep, where it is not the second."""

    def _components(self) -> dict[str, Component]:
        found = {name: getattr(self, name) for name in self._members}
        return {name: part for name, part in found.items() if part is not None}

    @property
    def nbytes(self) -> int:
        """Bytes of all arrays that this part owns now."""
        own = (getattr(self, name) for name in (*self._arrays, *self._scratch, *self._derived))
        return sum(int(held.nbytes) for held in (*own, *self._components().values()) if held is not None)

    def working_bytes(self, samples: int) -> int:
        """Bytes that planning takes beside these, at most, with so many samples in a regression."""
        return sum(part.working_bytes(samples) for part in self._components().values())

    def state_dict(self) -> StateDict:
        """A copy of everything that this part has learned."""
        state = {name.lstrip("_"): getattr(self, name).copy() for name in self._arrays}
        state |= {name.lstrip("_"): np.array(getattr(self, name), dtype=np.int64) for name in self._counters}
        for name, part in self._components().items():
            state |= prefixed(name.lstrip("_"), part.state_dict())
        return state

    def load_state_dict(self, state: Mapping[str, np.ndarray]) -> None:
        """Become what `state_dict` saved."""
        for name, part in self._components().items():  # they may have to make space first
            part.load_state_dict(under(name.lstrip("_"), state))
        for name in self._arrays:
            load_array(getattr(self, name), state, name.lstrip("_"))
        for name in self._counters:
            setattr(self, name, int(saved_array(state, name.lstrip("_"))))
        for name in (*self._arrays, *self._counters):
            if name in self._saved_within:
                check_range(name.lstrip("_"), getattr(self, name), *self._saved_within[name])

    def take_run(self, batched: Any, i: int) -> None:
        """Become what `batched`, which serves several runs in lockstep, is for run i."""
        for name in self._arrays:
            mine, theirs = getattr(self, name), batched.backend.host(getattr(batched, name))
            mine[...] = theirs.take(i, axis=self._run_axis.get(name, 1)).reshape(mine.shape)
        for name in self._counters:
            setattr(self, name, getattr(batched, name))
        for name, part in self._components().items():
            part.take_run(getattr(batched, name), i)


TIE = 1e-9
"""Actions tie when their Q differ by less than this (times the largest possible value, if that is over 1):
well above rounding, so that two ways of computing the same Q agree on what is a tie."""


def tie_tolerance(caps: Array) -> float:
    """How far below the largest Q an action still ties with it."""
    return TIE * max(1.0, float(np.abs(caps).max()))


def check_step(task: Task, expected: int, h: int, action: int, reward: Any) -> int:
    """The step that may be observed after step h, if h is the expected one (H: none is) and what came of it fits."""
    if h != expected:
        words = f"step {expected}" if expected < task.H else "begin_episode()"
        raise InvalidData(f"Steps must be observed in order, each once. Got step {h}, expected {words}.")
    if not 0 <= action < task.A:
        raise InvalidData(f"The action must be in [0, {task.A - 1}]. Got {action!r}.")
    check_reward(reward, task.payable, None, h)
    return h + 1


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


def unsaved_arrays(agent: Agent) -> list[str]:
    """Names of arrays that the agent, or a component of it, owns and does not declare.

    Views of declared arrays, and whatever belongs to the task, are somebody else's.
    """
    declared: set[int] = set()
    found: list[tuple[str, np.ndarray]] = []
    seen: set[int] = {id(agent.task), id(agent.task.features), id(agent.rng)}

    def visit(name: str, value: Any) -> None:
        if isinstance(value, np.ndarray):
            found.append((name, value))
        elif isinstance(value, list | tuple | dict):
            for item in value.values() if isinstance(value, dict) else value:
                visit(name, item)
        elif isinstance(value, Component) and id(value) not in seen:
            seen.add(id(value))
            mine = [getattr(value, n) for n in (*value._arrays, *value._scratch, *value._derived)]
            mine += [value.caps] if isinstance(value, Agent) else []
            declared.update(id(_owner(array)) for array in mine if isinstance(array, np.ndarray))
            for n in vars(value).keys() - set(value._passing):
                visit(n, getattr(value, n))

    visit("", agent)
    table = getattr(agent.task.features, "columns", None)
    shared = {id(_owner(table))} if isinstance(table, np.ndarray) else set()
    return [name for name, array in found if array.size and id(_owner(array)) not in declared | shared]


def _owner(array: np.ndarray) -> np.ndarray:
    """The array whose memory it is."""
    while isinstance(array.base, np.ndarray):
        array = array.base
    return array


class Agent(Component, ABC):
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
    """Parameters with which `linmdp.testing.check_agent` tries the class."""
    needs_features: ClassVar[bool] = True
    """Whether it learns on the features of its task; the random play that they are fitted to is then its own."""
    may_stop_learning: ClassVar[bool] = False
    """Whether it stops storing samples when it has seen enough, so that a run may hear of it."""
    whole_episodes: ClassVar[bool] = False
    """Whether it plays each episode to its end before the next, and hears of every step at once: no streams."""
    made_from: Mapping[str, str] = MappingProxyType({})
    """The specs of the agent and of its environment ("agent", "env"), where it was made from them."""
    at_best: bool = False
    """Whether the last episode was known to be as good as any can be."""
    mask: BoolArray | None = None
    """Which actions may be taken, (A,), where the environment says so: during `act` in the state that it is given,
    during `observe` in the next one; None: all, or nobody says. Between steps it is None."""
    _derived: ClassVar[tuple[str, ...]] = ("caps",)
    in_lockstep: ClassVar[bool] = False
    """Whether `lockstep` has something to hand over; said anew in each class, since another one may act otherwise."""
    supplied: ClassVar[tuple[str, ...]] = ()
    """Parameters that nobody gives: whoever makes the agent knows them."""
    _parameters: ClassVar[Mapping[str, inspect.Parameter]] = {}

    def __init_subclass__(cls) -> None:
        init = vars(cls).get("__init__")
        own = inspect.signature(init).parameters.values() if init else ()
        cls._parameters = {**cls._parameters, **{p.name: p for p in own if p.kind is p.KEYWORD_ONLY}}

    def __init__(self, task: Task) -> None:
        self.task = task
        self.rng = np.random.default_rng()
        self.caps: Array | None = None
        self.policy_version = 0
        self.updates = 0
        self.resets = 0

    def begin_episode(self) -> None:
        """Called before the first step of an episode: planning happens here."""

    @abstractmethod
    def act(self, h: int, state: State) -> int:
        """The action for `state` at step h."""

    def act_within(self, h: int, state: State, mask: BoolArray | None) -> int:
        """The action of `act` or, where that is masked, one of the best that are not."""
        self.mask = mask
        action = self.act(h, state)
        self.mask = None
        if mask is None or mask[action]:
            return action
        allowed = np.flatnonzero(mask)
        q = self.q_values(h, state)[allowed]
        return int(self.rng.choice(allowed[q >= q.max() - TIE * max(1.0, abs(float(q.max())))]))

    def observe_within(self, step: Transition, mask: BoolArray | None) -> None:
        """`observe`, while `mask` says what may be done next."""
        self.mask = mask
        self.observe(*step)
        self.mask = None

    def observe(self, h: int, state: State, action: int, reward: float, next_state: State, terminated: bool) -> None:
        """Learn from the result of the action."""

    def end_episode(self) -> None:
        """Called after the last step of an episode, also of one that ended early."""

    @abstractmethod
    def q_values(self, h: int, state: State) -> Array:
        """What the agent believes each action is worth, (A,)."""

    @abstractmethod
    def policy(self, h: int) -> Array | IntArray:
        """The policy on finite states: (S,) actions or, where they are drawn, (S, A) probabilities."""

    @property
    def planning_bytes(self) -> int | None:
        """The most bytes that planning has taken so far on top of `nbytes`; None where there is no figure."""
        return None

    def bytes_after(self, episodes: int) -> int:
        """Bytes that the agent will own after that many episodes, at most."""
        return self.nbytes

    def plannings(self, episodes: int) -> int:
        """How often it plans within that many episodes, at most: for forecasts of time."""
        return episodes

    def samples_held(self, episodes: int) -> int:
        """The most samples per step that a planning goes through within that many episodes; 0: none are kept."""
        return 0

    def lockstep(self) -> Any:
        """What running many seeds in lockstep needs, where the agent supports it; else None: they run one by one."""
        return None

    def drift(self) -> float | None:
        """max |Lambda Lambda^-1 - I|, for agents that keep an inverse."""
        return None

    def certificate(self) -> float | None:
        """The sum, over all steps played, of what a bounded storage can have done to their values; else None."""
        return None

    def more_possible(self) -> MorePossible | None:
        """How much more the last episodes could have earned, by a wider plan on the same data; None: no plan."""
        return None

    def diagnostics(self) -> dict[str, float]:
        """What the agent itself has to tell of its run so far, by name."""
        return {}

    def summed(self) -> list[Array]:
        """The sums over all that it has seen, from which the rest follows; empty: there is more to it than sums."""
        return []

    def sum_up(self, others: Sequence[Any], base: Any) -> None:
        """Become an agent that has seen what all of the others have; what they began with counts once."""
        parts = zip(*(other.summed() for other in others), strict=True)
        for mine, theirs, first in zip(self.summed(), parts, base.summed(), strict=True):
            mine[...] = sum(theirs) - (len(theirs) - 1) * first

    def log_determinants(self) -> Array:
        """log det Lambda of each regression, of an agent with sums, (G,); a table has Lambda = I + its visits."""
        raise NotImplementedError

    @classmethod
    def parameters(cls) -> dict[str, inspect.Parameter]:
        """The keyword parameters of the constructor: those of its bases, then its own."""
        return dict(cls._parameters)

    def get_params(self) -> dict[str, Any]:
        """The constructor's keyword arguments, as they were given."""
        return {name: getattr(self, name, None) for name in self.parameters() if name not in self.supplied}

    def _identity(self) -> dict[str, Any]:
        """What a saved state must agree with: the kind of agent, its parameters, and the size of its task."""
        task = self.task
        d = task.d if self.needs_features else None  # which may take random play to find
        return {"agent": self.name, "S": task.S, "A": task.A, "d": d, "H": task.H} | self.get_params()

    def state_dict(self) -> StateDict:
        """A copy of everything that the agent has learned, of its random generator, and of whose state it is."""
        counters = np.array([self.policy_version, self.updates, self.resets], dtype=np.int64)
        rng = _packed(self.rng.bit_generator.state)
        return {"identity": _packed(self._identity()), "rng": rng, "counters": counters} | super().state_dict()

    def load_state_dict(self, state: Mapping[str, np.ndarray]) -> None:
        """Restore what `state_dict` saved of an agent with the same parameters; if that fails, nothing has changed."""
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
            reason = one_line(f"{type(error).__name__}: {error}", 200)
            raise InvalidData(f"The saved agent is damaged: {reason}.") from error

    def save(self, path: str | Path, **words: Any) -> None:
        """Write the agent to a file, whole or not at all; `linmdp.load_agent(path, env)` reads it.

        `words` are further metadata, such as `run`, the run that it comes from; by default the specs that it was made
        from, so that whoever reads the file need not name the environment.
        """
        state = self.state_dict()
        self._check_complete(state)
        words = {"run": dict(self.made_from), **words} if self.made_from else words
        write_atomic(Path(path), packed("agent", {"agent": self._identity(), **words}, state))

    def _check_complete(self, state: StateDict) -> None:
        """Refuse to save an agent of which an array would be lost."""
        named = {part for key in state for part in key.split(".")}
        lost = [name for name in unsaved_arrays(self) if name.lstrip("_") not in named]
        if lost:
            raise InvalidParameter(
                f"{self.name} cannot be saved: it owns the array '{lost[0]}', which state_dict() leaves out. Return it "
                f"there and read it in _load(), or name it in '_derived' if it follows from the parameters."
            )

    def _load(self, state: Mapping[str, np.ndarray]) -> None:
        self.rng.bit_generator.state = _unpacked(state, "rng")
        counters = saved_array(state, "counters")
        self.policy_version, self.updates, self.resets = (int(x) for x in counters)
        super().load_state_dict(state)
