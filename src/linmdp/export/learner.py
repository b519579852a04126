"""What of an agent goes onto a device: its sizes and parameters, checked to be ones that the C library has."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from linmdp.agents.base import Agent
from linmdp.agents.fold import LSVIUCBFold
from linmdp.agents.lsvi import LSVIUCBFixed
from linmdp.agents.optimist import Optimist
from linmdp.agents.schedules import FixedPhases
from linmdp.errors import InvalidParameter

LARGEST = 2**16 - 1
"""Sizes are 16 bits wide on the device."""

COMMON = {"beta", "lam", "cap", "ties", "dtype", "episodes"}
KNOWN: dict[type[Agent], set[str]] = {
    LSVIUCBFold: COMMON | {"M", "replan", "probes", "correction"},
    LSVIUCBFixed: COMMON | {"rho", "storage"},
}


@dataclass(frozen=True, kw_only=True)
class Learner:
    """A learner on a device.

    Attributes
    ----------
    kind : "fold" or "fixed"
    H, A, d, S : of its task; S is 0 where states are not finite
    room : transitions that one step has room for: M of Fold, the length of a phase of Fixed
    counts : Fixed keeps N (d x S) instead of the samples
    replan, reservoir, correction : of Fold
    """

    kind: str
    agent: str
    H: int
    A: int
    d: int
    S: int
    beta: float
    lam: float
    cap_step: float
    cap_remaining: bool
    random_ties: bool
    reward_range: tuple[float, float]
    room: int
    counts: bool = False
    replan: float = 0.0
    reservoir: bool = False
    correction: str = ""

    @property
    def largest_cap(self) -> float:
        """The largest value that Q can have."""
        return self.cap_step * self.H


def learner_of(agent: Agent) -> Learner:
    """What goes onto the device, if the C library can do what this agent does."""
    if type(agent) not in KNOWN:
        names = f"{LSVIUCBFold.name} or {LSVIUCBFixed.name}"
        raise InvalidParameter(f"The agent to export must be {names}, unless '--only policy'. Got '{agent.name}'.")
    _check_parameters(agent, KNOWN[type(agent)])
    common: dict[str, Any] = common_of(agent)
    if isinstance(agent, LSVIUCBFold):
        own: dict[str, Any] = {
            "kind": "fold",
            "room": agent._buffer.M,
            "replan": float(agent.replan),
            "reservoir": agent.probes == "reservoir",
            "correction": agent.correction,
        }
    else:
        assert isinstance(agent, LSVIUCBFixed)
        assert isinstance(agent.schedule, FixedPhases)
        own = {"kind": "fixed", "room": agent.schedule.length, "counts": _keeps_counts(agent)}
    learner = Learner(**common, **own)
    for name, size in (("H", learner.H), ("d", learner.d), ("A", learner.A), ("room for samples", learner.room)):
        if size > LARGEST:
            raise InvalidParameter(f"The {name} of an exported learner must be at most {LARGEST}. Got {size}.")
    return learner


def _keeps_counts(agent: LSVIUCBFixed) -> bool:
    """As the agent was told or, if it was left the choice, whatever takes less room."""
    assert isinstance(agent.schedule, FixedPhases)
    task, sample = agent.task, 8
    smaller = task.S is not None and 8 * task.S * task.d < sample * (agent.schedule.length - 1)
    return agent.storage == "counts" or (agent.storage == "auto" and smaller)


def common_of(agent: Agent) -> dict[str, Any]:
    """Sizes and parameters that every optimistic agent has; those of an agent without them are zero."""
    task = agent.task
    found: dict[str, Any] = {
        "agent": agent.name,
        "H": task.H,
        "A": task.A,
        "d": task.d,
        "S": task.S or 0,
        "reward_range": task.reward_range,
        "cap_step": max(task.reward_range[1], 0.0),
    }
    if not isinstance(agent, Optimist):
        return found | {"beta": 0.0, "lam": 1.0, "cap_remaining": False, "random_ties": False}
    return found | {
        "beta": agent.beta_value,
        "lam": float(agent.lam),
        "cap_remaining": agent.cap == "remaining",
        "random_ties": agent.ties == "random",
    }


def _check_parameters(agent: Agent, known: set[str]) -> None:
    """A parameter that the C library does not know must be what it is by default."""
    defaults = {name: parameter.default for name, parameter in agent.parameters().items()}
    for name, value in agent.get_params().items():
        if name not in known and value != defaults[name]:
            raise InvalidParameter(
                f"The '{name}' parameter of an exported {agent.name} must be left out. Got {value!r}."
            )
