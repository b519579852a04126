"""`lsvi-gp` as C: its sizes, its memory, and the folder with it."""

from __future__ import annotations

import ctypes
import re
from typing import Any

from linmdp.agents import experience, gaussian, returns
from linmdp.agents.auto import Auto
from linmdp.agents.base import Agent
from linmdp.agents.lsvi_gp import LSVIGP
from linmdp.errors import InvalidParameter, invalid
from linmdp.export.numbers import TIES, filled, in_comment, literal, real, template, unsigned

LARGEST = 2**16 - 2
"""Rows, points and cells are numbered by 16 bits on the device, and one number is none of them."""

CLOSE = {"float": 1e-2, "double": 1e-6}
"""How far a Q in C may be from that in Python, as a part of the largest of its size."""

FAR = {"float": 0.05, "double": 0.0}
"""Of so many steps rounding may decide: early, where shares span nine digits, single precision has too few."""

PARTS = ("experience", "returns", "model", "evidence", "job")


def check_gp(agent: LSVIGP) -> None:
    """Refuse one that does not fit on a device."""
    if agent.task.S is None and agent.task.state_bytes is None:
        raise InvalidParameter("The states of an exported learner must be numbers or arrays of them. Got codes.")
    for name, size in sizes(agent).items():
        if size > LARGEST:
            invalid(f"an exported {agent.name}", "states", f"less: {name} is {LARGEST} at most", agent.sizes["states"])


def sizes(agent: LSVIGP) -> dict[str, int]:
    """The sizes of its arrays on a device."""
    task, most = agent.task, agent.largest(agent.sizes)
    K, clock = most.coordinates, int(not task.stationary)
    found = {"H": task.H, "A": task.A, "K": K, "N": K - clock, "clock": clock, "states": agent.sizes["states"]}
    found |= {"rows": most.rows, "held": most.states, "cells": most.cells, "features": most.features}
    return found | {"ahead": min(task.H, agent.levels), "kept": most.levels}


def config(agent: LSVIGP, kind: str, run: str, close: float) -> str:
    """linmdp_config.h"""
    given = ("length", "noise", "exact", "evidence", "replan", "discount", "scout", "every", "budget", "settled")
    values: dict[str, Any] = {name: literal(getattr(agent, name)) for name in given} | sizes(agent)
    own: dict[str, Any] = {
        "short": gaussian.SHORT,
        "shorter": gaussian.SHORTER,
        "left_out": gaussian.LEFT_OUT,
        "probes": experience.PROBES,
    }
    own |= {"close_by": gaussian.CLOSE, "least": gaussian.LEAST, "greatest": gaussian.MOST, "left": experience.LEFT}
    own |= {
        "wider": experience.WIDER,
        "start": tuple(gaussian.START),
        "same": returns.SAME,
        "tie": TIES[kind],
        "close": close,
        "far": FAR[kind],
    }
    values |= {name: literal(value) for name, value in own.items()}
    values |= {
        "kind": kind,
        "suffix": "f" if kind == "float" else "",
        "most": real(3e38 if kind == "float" else 1e300, kind),
    }
    values |= {"S": agent.task.S, "action": unsigned(agent.task.A - 1), "run": in_comment(run)}
    values |= {"alone": 1 if agent.task.S is None else None, "beta": literal(agent.beta / agent.task.H**0.5)}
    return filled("config_gp.h", values)


def gp_code(agent: LSVIGP, kind: str, run: str, close: float) -> dict[str, str]:
    """The library by the names of its files."""
    states = "states_numbers.h" if agent.task.S is None else "states_finite.h"
    return {
        "linmdp_config.h": config(agent, kind, run, close),
        "linmdp_features.h": template(states),
        "linmdp_memory.h": template("memory_gp.h"),
        "linmdp_gp.h": template("gp.h"),
        "linmdp_learner.c": template("learner_gp.c"),
        **{f"linmdp_{part}.c": template(f"gp_{part}.c") for part in PARTS},
        **{name: template(name) for name in ("linmdp.h", "linmdp_draws.h")},
    }


def gp_bytes(agent: LSVIGP, kind: str) -> dict[str, int]:
    """sizeof of each struct of memory_gp.h, as read from there."""
    number: Any = ctypes.c_float if kind == "float" else ctypes.c_double
    action: Any = ctypes.c_uint8 if agent.task.A <= 256 else ctypes.c_uint16
    types: dict[str, Any] = {"linmdp_real": number, "linmdp_wide": ctypes.c_double, "linmdp_number": ctypes.c_float}
    types |= {"linmdp_index_a": action} | {f"uint{n}_t": getattr(ctypes, f"c_uint{n}") for n in (8, 16, 32)}
    text = re.sub(r"/\*.*?\*/", "", template("memory_gp.h"), flags=re.DOTALL)
    constants = dict(re.findall(r"#define LINMDP_(\w+)\s+([0-9]+)\b", config(agent, kind, "", 0.0)))
    p = int(constants["P"])
    constants["TRIANGLE"] = str(p * (p + 1) // 2)
    for body, name in re.findall(r"typedef struct \{(.*?)\} (\w+);", text, flags=re.DOTALL):
        fields = []
        for kind_of, words in re.findall(r"(\w+) ([^;]+);", body):
            for word in words.split(","):
                label, *dimensions = re.findall(r"\w+(?: \+ 1)?", word)
                kept = types[kind_of]
                for dimension in reversed(dimensions):
                    size, *more = dimension.split(" + ")
                    kept = kept * (int(constants.get(size.removeprefix("LINMDP_"), 0) or size) + len(more))
                fields.append((label, kept))
        types[name] = type(name, (ctypes.Structure,), {"_fields_": fields})
    return {name.removeprefix("linmdp_"): ctypes.sizeof(found) for name, found in types.items()}


def gp_stack(agent: LSVIGP) -> int:
    """Stack that a call takes at most."""
    size = sizes(agent)
    return 8 * (6 * size["features"] * (1 + size["A"]) + 8 * size["K"] + experience.PROBES) + 800


def inner(agent: Agent) -> Agent:
    """The agent that learns: of `auto` the one that it has become."""
    return agent.inner if isinstance(agent, Auto) else agent
