"""linmdp_config.h: sizes, parameters, and what they cost."""

from __future__ import annotations

import math

from linmdp.agents import auto_beta
from linmdp.agents.base import TIE
from linmdp.agents.horizon import SWEEPS, TOLERANCE, Horizon
from linmdp.export.cost import COLUMNS, Costs, Ops
from linmdp.export.learner import Learner
from linmdp.export.numbers import real, signed, unsigned
from linmdp.export.tables import FeatureCode

CLOSE = {"float": 1e-5, "double": 1e-10}
"""How far a Q in C may be from that in Python."""

TIES = {"float": 1e-7, "double": TIE}
"""Q that differ by less are equal. A float has 24 bits: below 1e-7 there is nothing to tell apart."""

SLACK = {"float": 1e-6, "double": 1e-9}
"""Rounding allowed on a reward before it counts as outside its range."""


def config(learner: Learner, code: FeatureCode, kind: str, costs: Costs | None, size: int, run: str) -> str:
    """The header; `run` says in words what was exported."""
    low, high = learner.reward_range
    scale, quick = max(1.0, learner.cap), quick_kind(kind, code, learner.d)
    defines = {
        "LINMDP_H": (learner.H, "steps of an episode"),
        "LINMDP_A": (learner.A, "actions"),
        "LINMDP_D": (learner.d, "length of phi(s, a)"),
        **({"LINMDP_S": (learner.S, "states")} if learner.S else {}),
        **({"LINMDP_N": (code.states, "numbers in a state")} if code.states else {}),
        "LINMDP_BLOCKS": (code.blocks, "no phi has entries in two of these blocks,"),
        "LINMDP_P": (learner.d // code.blocks, "each of this length, and nor has Lambda"),
        "LINMDP_GROUPS": (learner.groups, "regressions: one a step, or one for all steps"),
        "LINMDP_LEVELS": (learner.levels, "Q: one a step, or one for all of them"),
        "LINMDP_DISCOUNT": (real(learner.discount, "double"), "of the next step's value"),
        **_planning(learner),
        "LINMDP_LAMBDA": (real(learner.lam, "double"), "of the ridge regression"),
        "LINMDP_CAP": (real(learner.cap, "double"), "the largest value that Q can have"),
        "LINMDP_CAP_REMAINING": (int(learner.cap_remaining), "1: it falls by so much a step:"),
        "LINMDP_CAP_STEP": (real(learner.cap_step, "double"), "the most that one step pays"),
        "LINMDP_RANDOM_TIES": (int(learner.random_ties), "1: any of the best actions, 0: the first"),
        "LINMDP_TIE": (real(TIE * scale, "double"), "Q that differ by less are equal: while planning,"),
        "LINMDP_TIE_ACT": (real(TIES[quick] * scale, "double"), "and while acting"),
        "LINMDP_REWARD_LOW": (_safe(low - SLACK[kind] * max(1.0, abs(low)), kind), "with room for rounding"),
        "LINMDP_REWARD_HIGH": (_safe(high + SLACK[kind] * max(1.0, abs(high)), kind), ""),
        "LINMDP_CLOSE": (real(CLOSE[kind], "double"), "the self-test: how far Q may be from that in Python"),
        **_own(learner),
    }
    longest = max(len(name) for name in defines)
    lines = [_define(name, str(value), words, longest) for name, (value, words) in defines.items()]
    return TEMPLATE.format(
        run=run,
        costs=_cost_words(learner, code, costs, size),
        kind=kind,
        suffix="f" if kind == "float" else "",
        most="1e30f" if kind == "float" else "1e300",
        quick=quick,
        quick_suffix="f" if quick == "float" else "",
        state=unsigned(max(learner.S - 1, 0)),
        action=unsigned(learner.A - 1),
        best=signed(learner.A - 1),
        defines="\n".join(lines),
    )


def quick_kind(kind: str, code: FeatureCode, d: int) -> str:
    """The numbers that acting computes with: those asked for, and double where it costs next to nothing."""
    return "double" if code.blocks == d else kind


def _safe(value: float, kind: str) -> str:
    """A number that can stand anywhere in an expression."""
    text = real(value, kind)
    return f"({text})" if value < 0 else text


def _planning(learner: Learner) -> dict[str, tuple[object, str]]:
    found: dict[str, tuple[object, str]] = {}
    if learner.levels == 1 < learner.H:
        found |= {
            "LINMDP_SWEEPS": (SWEEPS, "backups of a planning, at most; it ends before"),
            "LINMDP_TOLERANCE": (TOLERANCE, "when no weight moves by more than this fraction of the cap"),
        }
    found["LINMDP_AUTO"] = (int(learner.auto), "1: beta comes from the data: see linmdp_auto_beta.h")
    found["LINMDP_BETA"] = (real(learner.beta, "double"), "width of the bonus, to begin with")
    if not learner.auto:
        return found
    floor = auto_beta.FLOOR * math.sqrt(learner.lam) * learner.reward_scale
    ceiling = math.sqrt(learner.lam) * learner.reward_scale * Horizon(learner.H, True, learner.discount).effective_steps
    return found | {
        "LINMDP_AUTO_MULTIPLES": (", ".join(map(str, auto_beta.MULTIPLES)), "of the noise; a bandit chooses"),
        "LINMDP_AUTO_Z": (auto_beta.Z, "standard deviations of the noise"),
        "LINMDP_AUTO_FLOOR": (real(floor, "double"), "the noise is never taken to be less,"),
        "LINMDP_AUTO_CEILING": (real(ceiling, "double"), "and beta never to be more"),
        "LINMDP_AUTO_CONFIDENCE": (auto_beta.CONFIDENCE, "of the bandit, in standard deviations of the returns"),
        "LINMDP_AUTO_MEMORY": (auto_beta.MEMORY, "of t episodes the last t / MEMORY + 20 count"),
        "LINMDP_AUTO_PLAYED": (auto_beta.PLAYED, "faded episodes of a multiple before any bound is asked"),
        "LINMDP_AUTO_RENEW": (auto_beta.RENEW, "greedy weights are planned when the episodes have grown by this"),
    }


def _own(learner: Learner) -> dict[str, tuple[object, str]]:
    if learner.kind == "fixed":
        return {
            "LINMDP_PHASE": (learner.phase, "episodes of a phase"),
            "LINMDP_ROOM": (learner.room, "samples of a phase"),
            "LINMDP_COUNTS": (int(learner.counts), "1: samples are kept as sums for each next state, 0: one by one"),
        }
    if learner.kind != "fold":
        return {}
    return {
        "LINMDP_M": (learner.room, "different transitions in a buffer, and as many probes"),
        "LINMDP_REPLAN": (real(learner.replan, "double"), "plan when the episodes have grown by this fraction"),
        "LINMDP_RESERVOIR": (int(learner.reservoir), "1: probes out of all that was folded, 0: the last buffer"),
        "LINMDP_PROBES_FOLLOW": (int(learner.follow), "old targets follow V: at the probes,"),
        "LINMDP_SLOPES": (int(learner.slopes), "and by their slopes"),
        "LINMDP_COLUMNS": (min(COLUMNS, learner.d), "columns of J worked on at once: more RAM, fewer looks"),
    }


def _define(name: str, value: str, words: str, longest: int) -> str:
    line = f"#define {name:{longest}} {value}"
    return f"{line} /* {words} */" if words else line


def _cost_words(learner: Learner, code: FeatureCode, costs: Costs | None, size: int) -> str:
    tables = f" * Read-only tables of the features: {code.flash:,} bytes.\n"
    if costs is None:
        return tables
    names = ("linmdp_act", "linmdp_observe", "linmdp_begin_episode")
    rows = [*zip(names, costs, strict=True), ("a step (act, observe)", Ops().plus(costs.act, costs.observe))]
    lines = [f" *   {name:22} {ops.quick:14,} {ops.wide:14,} {ops.looks:9,}" for name, ops in rows]
    merges = learner.kind == "fold" and learner.S > 0
    stack = 8 * (10 * learner.d + 4 * learner.A + code.states) + 800
    return (
        f" * RAM: sizeof(linmdp_learner) is {size:,} bytes, and a call takes {stack:,} bytes of stack at most.\n"
        + tables
        + " * Worst case of each call, in multiply-adds of linmdp_quick and of linmdp_wide, and in looks at a state:\n"
        + f" *   {'':22} {'quick':>14} {'wide':>14} {'looks':>9}\n"
        + "\n".join(lines)
        + "\n"
        + f" * {code.look_words[0].upper()}{code.look_words[1:]}. "
        + "Besides: a square root for each action of a state looked at, one for\n"
        + " * each row of a matrix that is factored, and reading phi(s, a), LINMDP_D numbers at a time.\n"
        + (
            f" * linmdp_observe compares a transition with {learner.room:,} at most, folding all with all.\n"
            if merges
            else ""
        )
    )


TEMPLATE = """/* linmdp_config.h: sizes and parameters, for all other files. Written by `linmdp export`.
 *
 * {run}
 *
{costs} */
#ifndef LINMDP_CONFIG_H
#define LINMDP_CONFIG_H

#include <stdint.h>

typedef {kind} linmdp_real;  /* states, features, rewards, and Q as it is shown */
typedef double linmdp_wide; /* sums over many samples, and planning: 24 bits would not do */
typedef {quick} linmdp_quick; /* the factors that acting reads, once or twice in each step */
#define LINMDP_QUICK_SQRT sqrt{quick_suffix}
#define LINMDP_COS cos{suffix}
#define LINMDP_EXP exp{suffix}
#define LINMDP_REAL_MAX {most}
#define LINMDP_WIDE_SQRT sqrt
#define LINMDP_WIDE_LOG log
#define LINMDP_WIDE_MAX 1e300

typedef {state} linmdp_index_s; /* a finite state in memory */
typedef {action} linmdp_index_a;  /* an action in memory */
typedef {best} linmdp_best;     /* an action, or -1 */

{defines}

#endif
"""
