"""The few records that travel between the parts of linmdp."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import MISSING, dataclass, field, fields
from html import escape
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypeAlias

import numpy as np
import numpy.typing as npt

from linmdp.errors import InvalidParameter, check_int, check_number, needed
from linmdp.io.units import human_bytes

if TYPE_CHECKING:
    from linmdp.features.base import FeatureMap

Array: TypeAlias = npt.NDArray[np.floating[Any]]
IntArray: TypeAlias = npt.NDArray[np.integer[Any]]
BoolArray: TypeAlias = npt.NDArray[np.bool_]
State: TypeAlias = Any
"""A finite state is an int, any other is an array: whatever the feature map takes."""
Fields: TypeAlias = tuple[tuple[str, int], ...]
"""What a state is made of: each part's name and the number of its values, 0 where it is not a whole number."""
WHOLE = (int, np.integer)
"""What counts as a whole number, for `isinstance`."""


def all_finite(x: np.ndarray) -> bool:
    """Whether all of x is finite: one product mostly tells; where it overflows, every entry is checked."""
    return math.isfinite(np.vdot(x, x)) or bool(np.isfinite(x).all())


class Transition(NamedTuple):
    """One step of an episode. After `terminated` the value is 0; a truncated episode just has no more steps."""

    h: int
    state: State
    action: int
    reward: float
    next_state: State
    terminated: bool


class BaseModel(Protocol):
    """One of the known models whose mixture, with weights that nobody knows, an environment is."""

    def q(self, h: int, V: Array) -> Array:
        """r_h + P_h V for all state-action pairs, (A, S)."""

    def value(self, h: int, state: State, action: int, V: Array) -> float:
        """The same for one of them."""


@dataclass(frozen=True, kw_only=True)
class Task:
    """What an agent may know of its environment, and nothing else.

    Attributes
    ----------
    S : number of states, or None if they are not finite
    A : number of actions
    d : dimension of the features
    H : steps of an episode
    reward_range : the least and the largest reward of one step
    features : the feature map, `phi(state) -> (A, d)`
    state_bytes : bytes of one state that is not finite, at most; None where it is not known
    stationary : whether the dynamics are the same at every step
    state_fields : what a state is made of. A finite state numbers their combinations, and the last field varies first.
        Empty if unknown
    action_names : what the actions are called; empty if unknown
    base_models : models of which that of every episode is a mixture, where such are known

    Features and the range of rewards may take random play to find. Then they are found when an agent first asks for
    them, and never for an agent that does not: see `put_off`.
    """

    S: int | None
    A: int
    d: int
    H: int
    reward_range: tuple[float, float]
    features: FeatureMap
    state_bytes: int | None = None
    stationary: bool = False
    state_fields: Fields = ()
    action_names: tuple[str, ...] = ()
    base_models: tuple[BaseModel, ...] = ()

    def __post_init__(self) -> None:
        for name in ("A", "d", "H"):
            check_int("a task", name, getattr(self, name), low=1)
        if self.S is not None:
            check_int("a task", "S", self.S, low=1)
        if (self.features.A, self.features.d) != (self.A, self.d):
            found = f"A={self.features.A}, d={self.features.d}"
            raise InvalidParameter(f"The features of a task must have A={self.A}, d={self.d}. Got {found}.")
        if self.S is not None and self.state_fields and math.prod(n for _, n in self.state_fields) != self.S:
            raise InvalidParameter(f"The 'state_fields' of a task must have S={self.S} values in all.")
        if self.action_names and len(self.action_names) != self.A:
            raise InvalidParameter(f"The 'action_names' of a task must be A={self.A}. Got {len(self.action_names)}.")
        low = check_number("a task", "reward_range", self.reward_range[0])
        check_number("a task", "reward_range", self.reward_range[1], low=low)

    @classmethod
    def put_off(cls, later: Mapping[str, Callable[[], dict[str, Any]]], **known: Any) -> Task:
        """A task with what is known, and for each field that is not a function that finds it, and perhaps others."""
        task = object.__new__(cls)
        defaults = {f.name: f.default for f in fields(cls) if f.default is not MISSING}
        task.__dict__.update(defaults | known, _later=dict(later), _late=frozenset(later))
        return task

    def knows(self, name: str) -> bool:
        """Whether a field is known now, without random play."""
        return name in self.__dict__

    def brings(self, name: str) -> bool:
        """Whether a field was known from the start; unlike `knows`, whoever asks for a field does not change that."""
        return self.knows(name) and name not in self.__dict__.get("_late", ())

    @property
    def payable(self) -> tuple[float, float]:
        """The range of one reward; unlimited until an agent asks for it."""
        return self.reward_range if self.knows("reward_range") else (-math.inf, math.inf)

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            """A field that nobody has asked for so far."""
            later = self.__dict__.get("_later", {})
            if name not in later:
                raise AttributeError(f"A Task has no '{name}'.")
            found = later[name]()
            self.__dict__.update(found)
            for each in found:
                later.pop(each, None)
            if not later:
                self.__post_init__()
            return self.__dict__[name]

    def __getstate__(self) -> dict[str, Any]:
        """All fields, for copies and other processes."""
        return {f.name: getattr(self, f.name) for f in fields(self)} | {"_late": self.__dict__.get("_late", ())}


class MorePossible(NamedTuple):
    """How much more the last episodes could have earned, as optimistic values of a wider plan on the same data say.

    Attributes
    ----------
    gaps : (n,) the value of the start less the return, of each of these episodes
    level : the chance that `gaps`, in the mean, are not too small, if the task is linear; 0: nothing is proved
    nothing : whether these values are all that an episode can pay, so that they say nothing
    """

    gaps: Array
    level: float
    nothing: bool


class EpisodeRecord(NamedTuple):
    """What the run loop reports of one episode, to the progress bar and to callbacks."""

    episode: int
    reward: float
    regret: float | None
    agent_bytes: int
    certificate: float | None = None


COST_POINTS = 25


def cost_points(episodes: int) -> list[int]:
    """After how many episodes a run notes what it has cost so far: evenly spaced, the last one among them."""
    n = min(episodes, COST_POINTS)
    return [i * episodes // n for i in range(1, n + 1)]


class Column(NamedTuple):
    """How a field of `RunResult` is written elsewhere.

    `kind` is its type in the record of a store, None for a curve, which is stored apart. In a store of an older version
    the field may be missing, and has its default. `json` and `table` name the attributes of a result that JSON and
    `linmdp table` show for it, in this order; a table spreads a dict over columns. What is `optional` is not shown
    where it is None. What `compare` prints is in `report/tables.py`.
    """

    kind: Any
    json: tuple[str, ...] = ()
    table: tuple[str, ...] = ()
    optional: bool = False


def column(kind: Any, json: str = "", table: str | None = None, *, optional: bool = False) -> dict[str, Column]:
    """The metadata of a field of `RunResult`; several names stand in one text, and tables have those of JSON."""
    return {"column": Column(kind, tuple(json.split()), tuple((json if table is None else table).split()), optional)}


NUMBER = (int, float)


@dataclass(kw_only=True)
class RunResult:
    """One agent on one environment with one seed.

    This is the only description of a result: JSON, the columns of stores and tables and their order are read off it.

    Attributes
    ----------
    regret : (K,) cumulative exact expected regret, sum of V*(s_1k) - V^pi_k(s_1k); None where V* is unknown
    rewards : (K,) realised reward of each episode. A run of more than 100,000 episodes, or one from a store, has 2,000
        points of both, evenly spaced, and its rewards are sums up to there from the point before
    peak_bytes : the most bytes that the agent's arrays ever held between episodes
    planning_bytes : the most that planning took on top of that for a moment; None where the agent has no figure
    feature_bytes : bytes of the feature map, which environment and agent share
    cpu_seconds, wall_seconds : the whole run (planning, acting, the environment), without the evaluation of regret
    updates : number of regressions solved, over steps and episodes
    resets : number of times the working space was deleted
    saturated : fraction of Q values at their cap, at the states visited in the last tenth of the episodes
    tied : fraction of those states where several actions share the largest Q
    drift : max |Lambda Lambda^-1 - I| at the end; None for agents without a regression
    switches : number of plannings that may have changed the policy
    chosen : values that the environment and the agent chose for parameters that were left open
    diagnostics : numbers that the agent reports, by name
    random_returns : what episodes of random play earned in the same environment; the one exact value where it is known
    optimal_return : V* of the first state, where the values of all policies in it are known and it is always the same
    constant_return : what the best constant action earns, where that is known
    most_return : the most that an episode can earn, where the largest reward is known
    rerun : the environment and the agent as a command line has them, with its --import; empty where none can
    verdict : whether this run does better than random play, in words
    warnings : what the diagnostics found, in words
    certificate : how far the regressions along an episode are from those on all next states, in sum and at most, on
        average over the episodes (docs, guarantees); None where the storage has no bound
    certificates : its sum over the episodes so far, at those of `cost_points`
    certified : how much more than the last episodes one could earn, on average, by a wider plan on the same data;
        None where the agent has none. `certified_interval`: its 95% interval; `certified_kind`: "not a proof",
        "certified (95%, if linear)": at most that, or "nothing certified"
    interactions : steps that the environment makes for this run alone: random play before the first episode, all
        episodes, and the random play that the verdict compares with; None in a store that did not count them
    costs : [episodes, peak bytes, CPU seconds, steps played] so far, at the episodes of `cost_points`; none in lockstep
    """

    env: str = field(metadata=column(str, "env"))
    agent: str = field(metadata=column(str, "agent"))
    params: dict[str, Any] = field(metadata=column(dict, "params"))
    seed: int = field(metadata=column(int, "seed"))
    episodes: int = field(metadata=column(int, "episodes"))
    eval_every: int = field(metadata=column(int, "", "eval_every"))
    regret: Array | None = field(metadata=column(None, "regret final_regret", "final_regret regret_area"))
    rewards: Array = field(metadata=column(None, "reward"))
    peak_bytes: int = field(metadata=column(int, "agent_bytes"))
    planning_bytes: int | None = field(default=None, metadata=column((int, type(None)), "planning_bytes"))
    feature_bytes: int = field(metadata=column(int, "feature_bytes"))
    cpu_seconds: float = field(metadata=column(NUMBER, "cpu_seconds"))
    wall_seconds: float = field(metadata=column(NUMBER, "wall_seconds"))
    updates: int = field(metadata=column(int, "updates"))
    resets: int = field(metadata=column(int, "resets"))
    saturated: float = field(metadata=column(NUMBER, "saturated"))
    tied: float = field(metadata=column(NUMBER, "", "tied"))
    drift: float | None = field(metadata=column((*NUMBER, type(None)), "", "drift"))
    switches: int = field(default=0, metadata=column(int, "switches"))
    chosen: dict[str, Any] = field(default_factory=dict, metadata=column(dict, "chosen"))
    diagnostics: dict[str, Any] = field(default_factory=dict, metadata=column(dict, "", "diagnostics"))
    random_returns: list[float] = field(default_factory=list, metadata=column(list, "random_return"))
    optimal_return: float | None = field(default=None, metadata=column((*NUMBER, type(None)), "", "optimal_return"))
    constant_return: float | None = field(default=None, metadata=column((*NUMBER, type(None))))
    most_return: float | None = field(default=None, metadata=column((*NUMBER, type(None))))
    rerun: str = field(default="", metadata=column(str))
    verdict: str = field(default="", metadata=column(str, "verdict"))
    certificate: float | None = field(
        default=None, metadata=column((*NUMBER, type(None)), "certificate", optional=True)
    )
    certificates: list[float] = field(default_factory=list, metadata=column(list))
    certified: float | None = field(default=None, metadata=column((*NUMBER, type(None)), "certified"))
    certified_interval: list[float] | None = field(
        default=None, metadata=column((list, type(None)), "certified_interval", "", optional=True)
    )
    certified_kind: str | None = field(
        default=None, metadata=column((str, type(None)), "certified_kind", "", optional=True)
    )
    interactions: int | None = field(default=None, metadata=column((int, type(None)), "interactions", optional=True))
    warnings: list[str] = field(default_factory=list, metadata=column(list))
    costs: list[list[float]] = field(default_factory=list, metadata=column(list))

    @classmethod
    def columns(cls) -> dict[str, Column]:
        """Every field with its `Column`, in order."""
        return {f.name: f.metadata["column"] for f in fields(cls)}

    @property
    def final_regret(self) -> float | None:
        """Regret over all episodes."""
        return None if self.regret is None else float(self.regret[-1])

    @property
    def reward(self) -> float:
        """Realised reward over all episodes."""
        return float(self.rewards.sum())

    @property
    def random_return(self) -> float | None:
        """What an episode of random play earns, on average; None where it is not known."""
        return float(np.mean(self.random_returns)) if self.random_returns else None

    @property
    def agent_bytes(self) -> int:
        """`peak_bytes`, by the name that JSON and tables have for it."""
        return self.peak_bytes

    def to_json(self) -> dict[str, Any]:
        """The object that `linmdp run --json` prints.

        `eval_every` is there when regret was thinned, `diagnostics` when the agent has any.
        """
        record = {name: getattr(self, name) for column in self.columns().values() for name in column.json}
        for name in (name for column in self.columns().values() if column.optional for name in column.json):
            if record[name] is None:
                del record[name]
        if self.regret is not None:
            record["regret"] = self.regret.tolist()
        if self.eval_every != 1:
            record["eval_every"] = self.eval_every
        return record | ({"diagnostics": self.diagnostics} if self.diagnostics else {})

    def rows(self) -> list[dict[str, Any]]:
        """One row per point of its curves: the episode (from 1), its return, and the regret up to it."""
        n = len(self.rewards)
        at = np.linspace(1 if n > 1 else self.episodes, self.episodes, n).round().astype(int)
        earned = (self.rewards / np.diff(at, prepend=0)).tolist()  # a stored curve has sums of several episodes
        lost = [None] * n if self.regret is None or len(self.regret) != n else self.regret.tolist()
        return [
            dict(zip(("episode", "return", "regret"), row, strict=True))
            for row in zip(at.tolist(), earned, lost, strict=True)
        ]

    def to_pandas(self) -> Any:
        """The `rows` as a `pandas.DataFrame`."""
        words = "to_pandas() needs pandas: pip install 'linmdp[pandas]'."
        return needed("pandas", words).DataFrame(self.rows())

    def plot(self, ax: Any = None) -> Any:
        """The return of each episode and, where random play is known, its return as a line; returns the axes."""
        plt = needed("matplotlib.pyplot", "Figures need matplotlib: pip install 'linmdp[figures]'.")
        axes = ax or plt.subplots(figsize=(7, 4), layout="constrained")[1]
        rows = self.rows()
        axes.plot([row["episode"] for row in rows], [row["return"] for row in rows], lw=1.2, label=self.agent)
        if self.random_return is not None:
            axes.axhline(self.random_return, color="#777777", ls="--", lw=1.2, label="random")
        axes.set(title=f"{self.env}, seed {self.seed}", xlabel="episode", ylabel="return")
        axes.legend(frameon=False)
        return axes

    def _repr_html_(self) -> str:
        """The verdict and the figures that matter, for notebooks."""
        facts: dict[str, Any] = {"environment": self.env, "agent": self.agent, "seed": self.seed}
        facts["episodes"] = f"{self.episodes:,}"
        if self.final_regret is not None:
            facts["regret"] = f"{self.final_regret:.4g}"
        facts["return, mean"] = f"{self.reward / self.episodes:.4g}"
        facts |= {"agent memory": human_bytes(self.peak_bytes), "while planning": human_bytes(self.planning_bytes)}
        facts["CPU"] = f"{self.cpu_seconds:.1f} s"
        body = "".join(f"<tr><th>{escape(key)}</th><td>{escape(str(value))}</td></tr>" for key, value in facts.items())
        return f"<p><b>{escape(self.verdict)}</b></p><table><tbody>{body}</tbody></table>"
