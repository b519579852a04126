"""What of an agent goes onto a device: its sizes and parameters, checked to be ones that the C library has."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from linmdp.agents.algorithms import LSVIUCB
from linmdp.agents.base import Agent
from linmdp.agents.exploration.forgetting import Forgetting, OptWLSVI
from linmdp.agents.lsvi import LSVIAgent
from linmdp.agents.lsvi_gp import LSVIGP
from linmdp.agents.schedules.base import Growing
from linmdp.agents.schedules.fixed import FixedPhases, LSVIUCBFixed
from linmdp.agents.storage.centres import Centres
from linmdp.errors import InvalidParameter, invalid
from linmdp.export.gp import check_gp, inner

LARGEST = 2**16 - 1
"""Sizes are 16 bits wide on the device."""

COMMON = {"beta", "lam", "cap", "ties", "dtype", "episodes", "stationary", "discount", "lookahead"}
KNOWN: dict[type[Agent], set[str]] = {
    LSVIUCB: COMMON | {"M", "replan", "max_bytes", "storage"},
    OptWLSVI: COMMON | {"W", "B", "M", "max_bytes", "storage"},
    LSVIUCBFixed: COMMON | {"rho", "storage"},
}


@dataclass(frozen=True, kw_only=True)
class Learner:
    """A learner on a device.

    Attributes
    ----------
    kind : "centres" or "fixed"
    H, A, d, S : of its task; S is 0 where states are not finite
    ahead : steps that are planned
    groups, levels : regressions, and Q: each H or 1
    cap : the largest value that Q can have
    auto : beta comes from the data; else it is `beta`
    room : what one regression has room for: samples of a phase of Fixed, and centres, one of them for the next state
        that comes, where there may be more than `centres`, which are merged then
    phase : episodes of a phase of Fixed
    counts : Fixed keeps N (d x S) instead of the samples
    replan : of centres: when it plans
    centres : next states that are kept, at most
    fade : what the weight of each sample is multiplied by with every episode
    """

    kind: str
    agent: str
    H: int
    ahead: int
    A: int
    d: int
    S: int
    groups: int
    levels: int
    discount: float
    beta: float
    auto: bool
    lam: float
    cap: float
    cap_step: float
    cap_remaining: bool
    random_ties: bool
    reward_range: tuple[float, float]
    room: int = 0
    phase: int = 0
    counts: bool = False
    replan: float = 0.0
    centres: int = 0
    fade: float = 1.0

    @property
    def merges(self) -> bool:
        """Whether there can be more next states than centres."""
        return self.room > self.centres > 0

    @property
    def places(self) -> bool:
        """Whether computed features say which centre is nearest: a last digit lost would now and then say another."""
        return self.kind == "centres" and not self.S

    @property
    def reward_scale(self) -> float:
        """The largest reward in size."""
        return max(max(abs(r) for r in self.reward_range), 1e-12)


def check_exportable(agent: Agent) -> None:
    """Refuse an agent that does what the C library does not."""
    agent = inner(agent)
    if isinstance(agent, LSVIGP):
        check_gp(agent)
        return
    if type(agent) not in KNOWN:
        *names, last = (known.name for known in KNOWN)
        rule = f"{', '.join(names)} or {last}, unless '--only policy'"
        raise InvalidParameter(f"The agent to export must be {rule}. Got '{agent.name}'.")
    defaults = {name: parameter.default for name, parameter in agent.parameters().items()}
    for name, value in agent.get_params().items():
        if name not in KNOWN[type(agent)] and value != defaults[name]:
            invalid(f"an exported {agent.name}", name, "left out", value)
    if isinstance(agent, LSVIUCB | OptWLSVI) and agent._storing.name != "centres":
        invalid(f"an exported {agent.name}", "storage", "'centres', unless '--only policy'", agent._storing.name)
    if isinstance(agent, LSVIAgent) and agent.auto:
        found = f" such as the {agent.chosen['lam']:g} that was chosen here" if "lam" in agent.chosen else ""
        invalid(f"an exported {agent.name}", "lam", f"a number{found}, unless '--only policy'", agent.lam)
    if isinstance(agent, LSVIAgent) and agent.horizon.stride > 1:
        rule = "below 1 where the weights of all steps take this much memory"
        invalid(f"an exported {agent.name}", "discount", rule, agent.discount)
    if isinstance(agent, LSVIAgent) and agent.horizon.discounted and agent.horizon.H == 1:
        invalid(f"an exported {agent.name}", "discount", "1 where one step is planned", agent.discount)
    if isinstance(agent, LSVIUCBFixed) and agent.episodes is None:  # phases would grow, and so would the memory
        invalid(f"an exported {agent.name}", "episodes", "given", None)
    if isinstance(agent, OptWLSVI) and agent.W is None and agent.episodes is None:  # the window would grow
        invalid(f"an exported {agent.name}", "W", "given, or 'episodes'", None)


def learner_of(agent: Agent) -> Learner:
    """What goes onto the device, of an agent that has not begun."""
    assert isinstance(agent, LSVIAgent)
    storage = agent._planner.storage
    if isinstance(storage, Centres):
        own = _centres_of(agent, storage)
    else:
        assert isinstance(agent, LSVIUCBFixed)
        own = _fixed_of(agent)
    learner = Learner(**common_of(agent), **own)
    for name, size in (("H", learner.H), ("d", learner.d), ("A", learner.A), ("number of samples kept", learner.room)):
        if size > LARGEST:
            raise InvalidParameter(f"The {name} of an exported learner must be at most {LARGEST}. Got {size}.")
    return learner


def _centres_of(agent: LSVIAgent, storage: Centres) -> dict[str, Any]:
    S = agent.task.S or LARGEST
    return {
        "kind": "centres",
        "centres": min(storage.M, S),
        "room": min(storage.M + 1, S),
        "replan": _replan(agent),
        "fade": agent.schedule.eta if isinstance(agent.schedule, Forgetting) else 1.0,
    }


def _fixed_of(agent: LSVIUCBFixed) -> dict[str, Any]:
    assert isinstance(agent.schedule, FixedPhases)
    phase = agent.schedule.length
    room = (phase - 1) * agent.horizon.samples_per_episode
    return {"kind": "fixed", "phase": phase, "room": room, "counts": _keeps_counts(agent, room)}


def _replan(agent: LSVIAgent) -> float:
    """The episodes grow by this fraction before the next planning; 0: it plans in every one."""
    return agent.schedule.fraction if isinstance(agent.schedule, Growing) else 0.0


def _keeps_counts(agent: LSVIUCBFixed, room: int) -> bool:
    """As the agent was told or, if it was left the choice, whatever takes less room."""
    if agent.storage not in ("auto", "counts", "features", "states"):
        invalid(agent.name, "storage", "'auto', 'counts', 'features' or 'states' for a device", agent.storage)
    task, sample = agent.task, 6
    smaller = task.S is not None and 8 * task.S * task.d < sample * room
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
    if not isinstance(agent, LSVIAgent):
        nothing = {"ahead": task.H, "groups": 1, "levels": 1, "discount": 1.0, "beta": 0.0, "auto": False, "lam": 1.0}
        return found | nothing | {"cap": 0.0, "cap_remaining": False, "random_ties": False}
    assert agent.caps is not None
    return found | {
        "ahead": agent.horizon.H,
        "groups": agent.horizon.groups,
        "levels": agent.horizon.levels,
        "discount": agent.horizon.discount,
        "beta": agent.beta_value,
        "auto": agent._auto_beta is not None,
        "cap": float(agent.caps[0]),
        "lam": agent.lam_value,
        "cap_remaining": agent.cap == "remaining" and not agent.horizon.discounted,
        "random_ties": agent.ties == "random",
    }
