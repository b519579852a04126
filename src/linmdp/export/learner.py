"""What of an agent goes onto a device: its sizes and parameters, checked to be ones that the C library has."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from linmdp.agents.algorithms import LSVIUCB
from linmdp.agents.base import Agent
from linmdp.agents.lsvi import LSVIAgent
from linmdp.agents.lsvi_gp import LSVIGP
from linmdp.agents.memory.centres import Centres
from linmdp.agents.schedules.base import Growing
from linmdp.errors import InvalidParameter, invalid
from linmdp.export.gp import check_gp, inner

LARGEST = 2**16 - 1
"""Sizes are 16 bits wide on the device."""

KNOWN = {"beta", "lam", "cap", "ties", "dtype", "episodes", "stationary", "discount", "lookahead", "storage"}
KNOWN |= {"M", "replan", "max_bytes", "memory"}
"""Parameters that may be given."""


@dataclass(frozen=True, kw_only=True)
class Learner:
    """A learner on a device.

    Attributes
    ----------
    H, A, d, S : of its task; S is 0 where states are not finite
    ahead : steps that are planned
    groups, levels : regressions, and Q: each H or 1
    cap : the largest value that Q can have
    auto : beta comes from the data; else it is `beta`
    centres : next states that are kept, at most; 0 where there is a policy alone
    room : places for those of one regression: one more for the next state that comes, where they are merged
    replan : when it plans
    """

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
    centres: int = 0
    room: int = 0
    replan: float = 0.0

    @property
    def merges(self) -> bool:
        """Whether there can be more next states than centres."""
        return self.room > self.centres > 0

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
    if type(agent) is not LSVIUCB:
        rule = "auto, lsvi-gp or lsvi-ucb, unless '--only policy'"
        raise InvalidParameter(f"The agent to export must be {rule}. Got '{agent.name}'.")
    owner, defaults = f"an exported {agent.name}", agent.parameters()
    for name, value in agent.get_params().items():
        if name not in KNOWN and value != defaults[name].default:
            invalid(owner, name, "left out", value)
    if agent._storing.name != "centres":
        invalid(owner, "storage", "'centres', unless '--only policy'", agent._storing.name)
    if agent.auto:
        found = f" such as the {agent.chosen['lam']:g} that was chosen here" if "lam" in agent.chosen else ""
        invalid(owner, "lam", f"a number{found}, unless '--only policy'", agent.lam)
    if agent.horizon.stride > 1:
        invalid(owner, "discount", "below 1 where the weights of all steps take this much memory", agent.discount)
    if agent.horizon.discounted and agent.horizon.H == 1:
        invalid(owner, "discount", "1 where one step is planned", agent.discount)


def learner_of(agent: Agent) -> Learner:
    """What goes onto the device, of an agent that has not begun."""
    assert isinstance(agent, LSVIAgent)
    storage, S = agent._planner.storage, agent.task.S or LARGEST
    assert isinstance(storage, Centres)
    replan = agent.schedule.fraction if isinstance(agent.schedule, Growing) else 0.0
    learner = Learner(**common_of(agent), centres=min(storage.M, S), room=min(storage.M + 1, S), replan=replan)
    for name, size in (("H", learner.H), ("d", learner.d), ("A", learner.A), ("number of centres", learner.room)):
        if size > LARGEST:
            raise InvalidParameter(f"The {name} of an exported learner must be at most {LARGEST}. Got {size}.")
    return learner


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
