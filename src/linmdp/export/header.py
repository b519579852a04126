"""linmdp_config.h: sizes and parameters."""

from __future__ import annotations

import math
from dataclasses import asdict
from typing import Any

from linmdp.agents import auto_beta
from linmdp.agents.horizon import DIVERGING, SWEEPS, TOLERANCE, Horizon
from linmdp.agents.memory import centres
from linmdp.export.features import FeatureCode
from linmdp.export.learner import Learner
from linmdp.export.numbers import TIES, filled, in_comment, literal, real, unsigned

CLOSE = {"float": 1e-5, "double": 1e-10}
"""How far a Q in C may be from that in Python, as a part of its cap (of 1, where that is less)."""

SLACK = {"float": 1e-6, "double": 1e-9}
"""Rounding allowed on a reward before it counts as outside its range."""


def config(learner: Learner, code: FeatureCode, kind: str, run: str) -> str:
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


def _conditional(learner: Learner) -> dict[str, Any]:
    """Parameters that some learners have; None where this one has not."""
    unit = math.sqrt(learner.lam) * learner.reward_scale
    ceiling = unit * Horizon(learner.ahead, True, learner.discount).effective_steps if learner.auto else 0.0
    auto = {name: getattr(auto_beta, name.upper()) for name in ("z", "confidence", "memory", "played", "renew")}
    auto |= {"multiples": auto_beta.MULTIPLES, "floor": auto_beta.FLOOR * unit, "ceiling": ceiling}
    merging = {"neighbours": centres.NEIGHBOURS, "reach": centres.REACH, "share_ridge": centres.RIDGE}
    merging |= {"wider": centres.WIDER, "slack": centres.SLACK}
    kept = {name: getattr(learner, name) for name in ("centres", "room", "replan")} | {"merges": int(learner.merges)}
    groups: list[tuple[bool, dict[str, Any]]] = [
        (learner.levels == 1 < learner.ahead, {"sweeps": SWEEPS, "tolerance": TOLERANCE, "diverging": DIVERGING}),
        (learner.auto, auto),
        (learner.centres > 0, kept),
        (learner.merges, merging),
    ]
    return {name: value if there else None for there, group in groups for name, value in group.items()}
