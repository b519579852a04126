"""What of an agent goes onto a device, checked to be what the C library has: linmdp_config.h, and its memory."""

from __future__ import annotations

import ctypes
import math
from dataclasses import asdict, dataclass
from typing import Any

from linmdp.agents import auto_beta
from linmdp.agents.algorithms import LSVIUCB
from linmdp.agents.base import Agent
from linmdp.agents.horizon import DIVERGING, SWEEPS, TOLERANCE, Horizon
from linmdp.agents.lsvi import LSVIAgent
from linmdp.agents.lsvi_gp import LSVIGP
from linmdp.agents.memory import centres
from linmdp.agents.memory.centres import NEIGHBOURS, Centres
from linmdp.agents.schedules.base import Growing
from linmdp.errors import InvalidParameter, invalid
from linmdp.export.features import FeatureCode
from linmdp.export.gp import check_gp, inner
from linmdp.export.numbers import TIES, filled, in_comment, literal, real, unsigned

LARGEST = 2**16 - 1
"""Sizes are 16 bits wide on the device."""

KNOWN = {"beta", "lam", "cap", "ties", "dtype", "episodes", "stationary", "discount", "lookahead", "storage"}
KNOWN |= {"M", "replan", "max_bytes", "memory"}
"""Parameters that may be given."""


@dataclass(frozen=True, kw_only=True)
class DeviceLearner:
    """A learner on a device.

    Attributes
    ----------
    H, A, d, S : of its task; S is 0 where states are not finite
    ahead : steps that are planned
    groups, levels : regressions, and Q: each H or 1
    cap : the largest value that Q can have
    auto : beta comes from the data; else it is `beta`
    centres : next states that are kept, at most; 0 where there is a policy alone
    places : places for those of one regression: one more for the next state that comes, where they are merged
    replan : when it plans
    """

    agent: str
    H: int
    ahead: int
    A: int
    d: int
    S: int
    cap_step: float
    reward_range: tuple[float, float]
    groups: int = 1
    levels: int = 1
    discount: float = 1.0
    beta: float = 0.0
    auto: bool = False
    lam: float = 1.0
    cap: float = 0.0
    cap_remaining: bool = False
    random_ties: bool = False
    centres: int = 0
    places: int = 0
    replan: float = 0.0

    @property
    def merges(self) -> bool:
        """Whether there can be more next states than centres."""
        return self.places > self.centres > 0

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


def learner_of(agent: Agent) -> DeviceLearner:
    """What goes onto the device, of an agent that has not begun."""
    assert isinstance(agent, LSVIAgent)
    storage, S = agent._planner.storage, agent.task.S or LARGEST
    assert isinstance(storage, Centres)
    replan = agent.schedule.fraction if isinstance(agent.schedule, Growing) else 0.0
    learner = policy_of(agent, centres=min(storage.M, S), places=min(storage.M + 1, S), replan=replan)
    for name, size in (("H", learner.H), ("d", learner.d), ("A", learner.A), ("number of centres", learner.places)):
        if size > LARGEST:
            raise InvalidParameter(f"The {name} of an exported learner must be at most {LARGEST}. Got {size}.")
    return learner


def policy_of(agent: Agent, **kept: Any) -> DeviceLearner:
    """Sizes and parameters of what acts, which an agent that is not optimistic has by default; nothing else is kept."""
    task, found = agent.task, dict[str, Any]()
    if isinstance(agent, LSVIAgent):
        assert agent.caps is not None
        found = {
            "groups": agent.horizon.groups,
            "levels": agent.horizon.levels,
            "discount": agent.horizon.discount,
            "beta": agent.beta_value,
            "auto": agent._auto_beta is not None,
            "lam": agent.lam_value,
            "cap": float(agent.caps[0]),
            "cap_remaining": agent.cap == "remaining" and not agent.horizon.discounted,
            "random_ties": agent.ties == "random",
        }
    return DeviceLearner(
        agent=agent.name,
        H=task.H,
        ahead=agent.horizon.H if isinstance(agent, LSVIAgent) else task.H,
        A=task.A,
        d=task.d,
        S=task.S or 0,
        reward_range=task.reward_range,
        cap_step=max(task.reward_range[1], 0.0),
        **found,
        **kept,
    )


def learner_bytes(learner: DeviceLearner, blocks: int, quick_kind: str, state: Any) -> int:
    """sizeof(linmdp_learner), where `state` is the ctypes type of a kept state."""
    quick: Any = ctypes.c_float if quick_kind == "float" else ctypes.c_double
    wide, d, M, p = ctypes.c_double, learner.d, learner.places, learner.d // blocks
    merging = {"radius": wide, "stays": ctypes.c_uint8 * M} if learner.merges else {}
    centre = _struct(sums=wide * (d + 1), point=state if learner.S else wide * p)
    store = _struct(centre=centre * M, **merging, count=ctypes.c_uint16)
    core = _core(learner, wide, quick, blocks * p * (p + 1) // 2)
    return ctypes.sizeof(_struct(core=core, store=store * max(learner.groups - 1, 1), clock=ctypes.c_uint32 * 2))


def stack_bytes(learner: DeviceLearner, numbers: int) -> int:
    """Stack that a call takes at most, where a state has so many numbers (0: states are finite)."""
    # the weights of centres, and what they are solved from
    sharing = 2 * NEIGHBOURS * (NEIGHBOURS + 2) * learner.merges
    return 8 * (10 * learner.d + 4 * learner.A + numbers + sharing) + 800


def _core(learner: DeviceLearner, wide: Any, quick: Any, packed: int) -> Any:
    d, L = learner.d, learner.levels
    group = _struct(sums=wide * (packed + d), factor=quick * packed)
    width = _struct(w=wide * (L * d), returns=wide * 15, counters=ctypes.c_uint32 * 2, arm=ctypes.c_uint8 * 2)
    return _struct(
        group=group * learner.groups,
        weights=wide * (L * d + packed + 1),
        **({"width": width} if learner.auto else {}),
        seed=ctypes.c_uint32 * 3,
        next=ctypes.c_uint16,
        flags=ctypes.c_uint8 * 2,
    )


def _struct(**fields: Any) -> Any:
    return type("Memory", (ctypes.Structure,), {"_fields_": list(fields.items())})


CLOSE = {"float": 1e-5, "double": 1e-10}
"""How far a Q in C may be from that in Python, as a part of its cap (of 1, where that is less)."""

SLACK = {"float": 1e-6, "double": 1e-9}
"""Rounding allowed on a reward before it counts as outside its range."""


def config(learner: DeviceLearner, code: FeatureCode, kind: str, run: str) -> str:
    """The header; `run` says in words what was exported."""
    low, high = learner.reward_range
    scale, quick = max(1.0, learner.cap), quick_kind(kind, code, learner.d)
    values = {name: literal(value) for name, value in (asdict(learner) | _conditional(learner)).items()} | {
        "S": learner.S or None,
        "N": code.states or None,
        "blocks": code.blocks,
        "P": learner.d // code.blocks,
        "tie_act": literal(TIES[quick] * scale),
        "low": _safe(low - SLACK[kind] * max(1.0, abs(low)), kind),
        "high": _safe(high + SLACK[kind] * max(1.0, abs(high)), kind),
        "close": literal(float(f"{CLOSE[kind] * scale:.3g}")),
        "run": in_comment(run),
        "kind": kind,
        "most": "1e30f" if kind == "float" else "1e300",
        "quick": quick,
        "quick_suffix": "f" if quick == "float" else "",
        "state": unsigned(max(learner.S - 1, 0)),
        "action": unsigned(learner.A - 1),
    }
    return filled("linmdp_config.h", values)


def quick_kind(kind: str, code: FeatureCode, d: int) -> str:
    """The numbers that acting computes with: those asked for, and double where it costs next to nothing."""
    return "double" if code.blocks == d else kind


def _safe(value: float, kind: str) -> str:
    """A number that can stand anywhere in an expression."""
    text = real(value, kind)
    return f"({text})" if value < 0 else text


def _conditional(learner: DeviceLearner) -> dict[str, Any]:
    """Parameters that some learners have; None where this one has not."""
    unit = math.sqrt(learner.lam) * learner.reward_scale
    ceiling = unit * Horizon(learner.ahead, True, learner.discount).effective_steps if learner.auto else 0.0
    auto = {name: getattr(auto_beta, name.upper()) for name in ("z", "confidence", "memory", "played", "renew")}
    auto |= {"multiples": auto_beta.MULTIPLES, "floor": auto_beta.FLOOR * unit, "ceiling": ceiling}
    merging = {"neighbours": centres.NEIGHBOURS, "reach": centres.REACH, "share_ridge": centres.RIDGE}
    merging |= {"wider": centres.WIDER, "slack": centres.SLACK}
    kept = {name: getattr(learner, name) for name in ("centres", "places", "replan")} | {"merges": int(learner.merges)}
    groups: list[tuple[bool, dict[str, Any]]] = [
        (learner.levels == 1 < learner.ahead, {"sweeps": SWEEPS, "tolerance": TOLERANCE, "diverging": DIVERGING}),
        (learner.auto, auto),
        (learner.centres > 0, kept),
        (learner.merges, merging),
    ]
    return {name: value if there else None for there, group in groups for name, value in group.items()}
