"""What a learner takes on a device: sizeof(linmdp_learner), and the stack of a call."""

from __future__ import annotations

import ctypes
from typing import Any

from linmdp.agents.memory.centres import NEIGHBOURS
from linmdp.export.learner import Learner


def learner_bytes(learner: Learner, blocks: int, quick_kind: str, state: Any) -> int:
    """sizeof(linmdp_learner), where `state` is the ctypes type of a kept state."""
    quick: Any = ctypes.c_float if quick_kind == "float" else ctypes.c_double
    wide, d, M, p = ctypes.c_double, learner.d, learner.room, learner.d // blocks
    merging = {"radius": wide, "stays": ctypes.c_uint8 * M} if learner.merges else {}
    centre = _struct(sums=wide * (d + 1), point=state if learner.S else wide * p)
    store = _struct(centre=centre * M, **merging, count=ctypes.c_uint16)
    core = _core(learner, wide, quick, blocks * p * (p + 1) // 2)
    return ctypes.sizeof(_struct(core=core, store=store * max(learner.groups - 1, 1), clock=ctypes.c_uint32 * 2))


def stack_bytes(learner: Learner, numbers: int) -> int:
    """Stack that a call takes at most, where a state has so many numbers (0: states are finite)."""
    # the weights of centres, and what they are solved from
    sharing = 2 * NEIGHBOURS * (NEIGHBOURS + 2) * learner.merges
    return 8 * (10 * learner.d + 4 * learner.A + numbers + sharing) + 800


def _core(learner: Learner, wide: Any, quick: Any, packed: int) -> Any:
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
