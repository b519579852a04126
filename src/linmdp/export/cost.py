"""Bytes and worst-case operations of a learner on a device. A test counts the operations of the C code and compares."""

from __future__ import annotations

import ctypes
from typing import Any, NamedTuple

from linmdp.export.learner import Learner

COLUMNS = 8
"""Columns of J that are brought up to date at once: more need more room, fewer need more looks at the samples."""


class Ops(NamedTuple):
    """Multiply-adds in `linmdp_quick` and in `linmdp_wide`, and states made ready."""

    quick: int = 0
    wide: int = 0
    looks: int = 0

    def plus(self, *others: Ops) -> Ops:
        """The sum."""
        return Ops(*(sum(parts) for parts in zip(self, *others, strict=True)))

    def times(self, n: int) -> Ops:
        """The same n times over."""
        return Ops(*(n * part for part in self))


class Costs(NamedTuple):
    """The worst case of each call."""

    act: Ops
    observe: Ops
    begin_episode: Ops


class Algebra(NamedTuple):
    """Multiply-adds of each function of linmdp_algebra.c."""

    outer: int
    factor: int
    solve: int
    product: int
    form: int

    @classmethod
    def of(cls, blocks: int, p: int) -> Algebra:
        """For matrices of so many blocks with p rows each."""
        factor = p * (p + 1) * (p + 2) // 6
        return cls(p * (p + 1) // 2, blocks * factor, blocks * p * (p + 1), blocks * p * p, p * (p + 3) // 2)


def costs(learner: Learner, blocks: int) -> Costs:
    """The worst case of each call; `linmdp_end_episode` does nothing that counts."""
    d, algebra = learner.d, Algebra.of(blocks, learner.d // blocks)
    value = Ops(wide=algebra.form + d).times(learner.A)  # Q of all actions of a state while planning,
    act = Ops(quick=algebra.form, wide=d).times(learner.A).plus(Ops(looks=1))  # and while acting
    observe = Ops(wide=algebra.outer + d + d * learner.counts, looks=1)
    target = _fold_target(learner, value, algebra) if learner.kind == "fold" else _fixed_target(learner, value)
    regress = Ops(wide=algebra.factor + algebra.solve)
    return Costs(act, observe, target.times(learner.H - 1).plus(regress.times(learner.H)))


def _fixed_target(learner: Learner, value: Ops) -> Ops:
    """The last planning of a phase: its last two episodes add no sample to it."""
    d = learner.d
    if learner.counts:
        return value.plus(Ops(wide=d, looks=1)).times(learner.S)
    return value.plus(Ops(wide=d, looks=2)).times(learner.room - 2)


def _fold_target(learner: Learner, value: Ops, algebra: Algebra) -> Ops:
    """A planning that folds, with all probes there."""
    d, M = learner.d, learner.room
    total = value.plus(Ops(wide=2 * d, looks=2)).times(M)  # the buffer
    if learner.correction == "frozen":
        return total.plus(value.plus(Ops(looks=1)).times(M))
    total = total.plus(value.plus(Ops(wide=algebra.outer + d, looks=2)).times(M))  # the probes
    total = total.plus(Ops(wide=algebra.factor + algebra.solve + algebra.product + d))
    if learner.correction == "slope":
        total = total.plus(Ops(wide=d * d + M * d, looks=M))
        columns = d * (3 * M * d + algebra.solve + algebra.product + d)
        total = total.plus(Ops(wide=columns, looks=5 * M * -(-d // min(COLUMNS, d))))
    return total


def learner_bytes(learner: Learner, blocks: int, quick_kind: str, state: Any) -> int:
    """sizeof(linmdp_learner), where `state` is the ctypes type of a kept state."""
    p = learner.d // blocks
    return ctypes.sizeof(_memory(learner, quick_kind, state, blocks * p * (p + 1) // 2))


def _memory(learner: Learner, quick_kind: str, state: Any, packed: int) -> Any:
    quick: Any = ctypes.c_float if quick_kind == "float" else ctypes.c_double
    wide, d, M, H = ctypes.c_double, learner.d, learner.room, learner.H
    action: Any = ctypes.c_uint8 if learner.A <= 256 else ctypes.c_uint16
    best: Any = ctypes.c_int8 if learner.A <= 128 else ctypes.c_int16
    sample = _struct(state=state, next=state, action=action, alive=ctypes.c_uint8)
    step = _struct(Lambda=wide * packed, u=wide * d, q=_struct(w=wide * d, factor=quick * packed))
    tail = {"seed": ctypes.c_uint32 * 3}
    if learner.kind == "fixed":
        past = wide * (learner.S * d) if learner.counts else _struct(sample=sample * (M - 1), count=ctypes.c_uint16)
        return _struct(
            step=step * H,
            past=past * max(H - 1, 1),
            factor=wide * packed,
            **tail,
            phase=ctypes.c_uint32,
            next=ctypes.c_uint16,
            learning=ctypes.c_uint8,
        )
    slopes = d * d if learner.correction == "slope" else 0
    past = _struct(
        sums=wide * (2 * d + slopes + M),
        best_ref=best * M,
        samples=sample * (2 * M),
        folded=ctypes.c_uint32,
        probes=ctypes.c_uint16,
    )
    scratch = _struct(wide=wide * (2 * packed + min(COLUMNS, d) * d + 2 * M), best=best * (2 * M))
    return _struct(
        step=step * H,
        past=past * max(H - 1, 1),
        scratch=scratch,
        **tail,
        clock=ctypes.c_uint32 * 2,
        count=ctypes.c_uint16 * H,
        next=ctypes.c_uint16,
    )


def _struct(**fields: Any) -> Any:
    return type("Memory", (ctypes.Structure,), {"_fields_": list(fields.items())})
