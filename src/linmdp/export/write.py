"""The folder of a C library: what is copied, what is written, and in which order."""

from __future__ import annotations

import ctypes
import warnings
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from linmdp.agents.base import Agent
from linmdp.agents.lsvi_gp import LSVIGP
from linmdp.errors import InvalidParameter, LinMDPWarning, check_choice, check_int
from linmdp.export.features import feature_code
from linmdp.export.gp import CLOSE, gp_bytes, gp_code, gp_stack, inner
from linmdp.export.learner import (
    DeviceLearner,
    check_exportable,
    config,
    learner_bytes,
    learner_of,
    policy_of,
    quick_kind,
    stack_bytes,
)
from linmdp.export.names import CNames, c_names, example_code, gp_readme, names_code, readme
from linmdp.export.numbers import TIES, filled, literal, template
from linmdp.export.policy import policy_code
from linmdp.export.vectors import PolicyStep, SelfTestStep, decisions, new_agent, record, vectors_code
from linmdp.io.files import output_folder, write_atomic

REALS = ("float", "double")
VALUE = ("linmdp_algebra.h", "linmdp_algebra.c", "linmdp_value.h", "linmdp_value.c")
LEARNER = ("linmdp.h", "linmdp_core.h", "linmdp_common.h", "linmdp_common.c", "linmdp_draws.h", "linmdp_clock.h")
WIDTH = ("linmdp_width.h", "linmdp_width.c")
SELFTEST = ("selftest.h", "selftest.c", "selftest_vectors.h", "selftest_main.c", "Makefile")
BOARD = tuple(f"cortex-m4/{name}" for name in ("startup.c", "board.h", "board.c", "main.c", "cycles.c", "link.ld"))


class Exported(NamedTuple):
    """What was written, and what it will take on the device."""

    files: list[Path]
    ram: int
    stack: int
    flash: int


def export_learner(
    agent: Agent, env: Any, folder: Path, *, real: str, steps: int, seed: int = 0, run: str = ""
) -> Exported:
    """The policy of `agent`, a learner of its kind, and a self-test of so many steps in `env`."""
    check_choice("export", "real", real, REALS)
    check_int("export", "steps", steps, low=1, high=1_000_000)
    agent = inner(agent)
    check_exportable(agent)
    if isinstance(agent, LSVIGP):
        return _export_gp(agent, env, folder, real=real, steps=steps, seed=seed, run=run)
    learner = learner_of(new_agent(agent, seed))
    code = feature_code(agent, real)
    policy, flash = policy_code(agent, real, code.blocks)
    recorded = record(env, new_agent(agent, seed), steps, seed, real)
    state = _kept_state(learner, recorded[0], real)
    ram = learner_bytes(learner, code.blocks, quick_kind(real, code, learner.d), state)
    names, (low, high) = c_names(agent.task, code.states), learner.reward_range
    sizes = {"ram": ram, "stack": stack_bytes(learner, code.states), "flash": code.flash + flash}
    said: dict[str, Any] = {"low": f"{low:g}", "high": f"{high:g}", **sizes}
    said["centres"] = learner.centres if learner.merges else None
    written = {
        "linmdp_config.h": config(learner, code, real, run),
        "README.md": readme("README.md", names, learner.S, learner.H, run=run, **said),
        "linmdp_features.h": template(code.header),
        "linmdp_features.c": code.source,
        "linmdp_memory.h": template("memory_centres.h"),
        "linmdp_learner.c": template("learner_centres.c"),
        "linmdp_policy.c": policy,
        **_copied("linmdp_policy.h", *VALUE, *LEARNER, *(WIDTH if learner.auto else ())),
        **_tried(names, learner.S > 0, recorded, decisions(agent, [s.state for s in recorded]), seed, real),
        **_masked(real, "core.tie_key"),
    }
    return Exported(write_texts(folder, written), **sizes)


def _export_gp(agent: LSVIGP, env: Any, folder: Path, *, real: str, steps: int, seed: int, run: str) -> Exported:
    """The same of `lsvi-gp`. On states that are not finite it has no frozen policy."""
    recorded, finite = record(env, new_agent(agent, seed), steps, seed, real), agent.task.S is not None
    names, held = c_names(agent.task, int(np.size(recorded[0].state))), gp_bytes(agent, real)
    policy, flash = policy_code(agent, real, 1) if finite else ("", 0)
    chosen, stack = decisions(agent, [s.state for s in recorded]) if finite else [], gp_stack(agent)
    close = CLOSE[real] * max(1.0, max(float(np.abs(s.q).max()) for s in recorded))
    written = gp_code(agent, real, run, close) | _tried(names, finite, recorded, chosen, seed, real)
    written |= _masked(real, "tie_key")
    written["README.md"] = gp_readme(agent, names, held=held, flash=flash, stack=stack, kind=real, run=run)
    written |= _copied("linmdp_policy.h") | {"linmdp_policy.c": policy} if finite else {}
    return Exported(write_texts(folder, written), ram=held["learner"], stack=stack, flash=flash)


def _masked(real: str, key: str) -> dict[str, str]:
    """How a learner acts whose draws have their key there, where not every action may be taken."""
    return {"linmdp_mask.c": filled("linmdp_mask.c", {"tie": literal(TIES[real]), "key": key})}


def export_policy(agent: Agent, folder: Path, *, real: str, run: str = "") -> Exported:
    """The policy of `agent` alone: it needs no RAM."""
    check_choice("export", "real", real, REALS)
    code, finite = feature_code(agent, real), agent.task.S is not None
    policy, flash = policy_code(agent, real, code.blocks)
    nobody, names = policy_of(agent), c_names(agent.task, code.states)
    flash += 0 if finite else code.flash  # a table of actions needs no features
    written = {
        "README.md": readme("README_policy.md", names, nobody.S, nobody.H, run=run, flash=flash),
        "linmdp_names.h": names_code(names, finite),
        "linmdp_config.h": config(nobody, code, real, run),
        "linmdp_features.h": template(code.header),
        "linmdp_policy.c": policy,
        **_copied("linmdp_policy.h", *(() if finite else VALUE)),
    }
    if not finite:
        written["linmdp_features.c"] = code.source
    return Exported(write_texts(folder, written), ram=0, stack=0, flash=flash)


def _copied(*names: str) -> dict[str, str]:
    """Files that are the same for all."""
    return {name: template(name) for name in names}


def _tried(
    names: CNames, finite: bool, recorded: list[SelfTestStep], chosen: list[PolicyStep], seed: int, real: str
) -> dict[str, str]:
    """The names of states and actions, an application that speaks of them, and the self-test."""
    return {
        "example/main.c": example_code(names, finite, real),
        "linmdp_names.h": names_code(names, finite),
        "selftest_vectors.c": vectors_code(recorded, chosen, seed, real),
        **_copied(*SELFTEST, *BOARD),
    }


def export_c(
    agent: Agent, env: Any, folder: Path, *, only: str | None, real: str = "float", steps: int = 1000, run: str = ""
) -> Exported:
    """Learner and policy, or the policy alone, as `only` says ("all", "policy"); with None whatever there is."""
    if only is None:
        try:
            check_exportable(agent)
        except InvalidParameter as error:
            only = "policy"
            warnings.warn(f"the policy alone, without the learner: {error}", LinMDPWarning, stacklevel=3)
    if check_choice("export", "only", only or "all", ("all", "policy")) == "policy":
        return export_policy(agent, folder, real=real, run=run)
    return export_learner(agent, env, folder, real=real, steps=steps, run=run)


def _kept_state(learner: DeviceLearner, step: SelfTestStep, real: str) -> Any:
    """The ctypes type of a state in memory."""
    if learner.S:
        return ctypes.c_uint8 if learner.S <= 2**8 else ctypes.c_uint16 if learner.S <= 2**16 else ctypes.c_uint32
    return (ctypes.c_float if real == "float" else ctypes.c_double) * np.size(step.state)


def write_texts(folder: Path, written: dict[str, str]) -> list[Path]:
    """Each text into the file of its name, in folders that are made where they are missing."""
    paths = []
    output_folder(folder)
    for name, text in written.items():
        path = folder / name
        output_folder(path.parent)
        write_atomic(path, text.encode())
        paths.append(path)
    return paths
