"""Bytes and worst-case operations of a learner on a device. A test counts the operations of the C code and compares."""

from __future__ import annotations

import ctypes
from typing import Any, NamedTuple

from linmdp.agents.horizon import SWEEPS
from linmdp.agents.storage.cover import NEIGHBOURS
from linmdp.export.learner import Learner


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


M4_INSTRUCTIONS = {"float": 25, "double": 125}
"""Of one multiply-add on a Cortex-M4, loads and loop included; `double` is done in software. `benchmarks/device.py`
holds them against an emulated one."""


def m4_instructions(ops: Ops, quick_kind: str, look: int) -> int:
    """About how many instructions that is on a Cortex-M4, where a look costs as much as `look` wide multiply-adds."""
    return M4_INSTRUCTIONS[quick_kind] * ops.quick + M4_INSTRUCTIONS["double"] * (ops.wide + look * ops.looks)


class CallCosts(NamedTuple):
    """The worst case of each call; `merging` is what observing takes beside, once there are too many centres."""

    act: Ops
    observe: Ops
    begin_episode: Ops
    merging: Ops

    @property
    def step(self) -> Ops:
        """Acting and observing."""
        return self.act.plus(self.observe)


class Algebra(NamedTuple):
    """Multiply-adds of each function of linmdp_algebra.c, and the numbers in a matrix."""

    outer: int
    factor: int
    solve: int
    product: int
    form: int
    packed: int

    @classmethod
    def of(cls, blocks: int, p: int) -> Algebra:
        """For matrices of so many blocks with p rows each."""
        factor, packed = p * (p + 1) * (p + 2) // 6, blocks * p * (p + 1) // 2
        return cls(p * (p + 3) // 2, blocks * factor, blocks * p * (p + 1), blocks * p * p, p * (p + 3) // 2, packed)


def costs(learner: Learner, blocks: int) -> CallCosts:
    """The worst case of each call; `linmdp_end_episode` does nothing that counts."""
    d, A, algebra = learner.d, learner.A, Algebra.of(blocks, learner.d // blocks)
    act = Ops(quick=algebra.form, wide=d).times(A).plus(Ops(looks=1))
    observe = Ops(wide=algebra.outer + d + d * learner.counts + A * d * learner.auto, looks=1)
    value, greedy = Ops(wide=(algebra.form + d) * A), Ops(wide=d * A)  # Q of a state, with and without a bonus
    begin, merging = _solve(learner, algebra, _target(learner, value)), Ops()
    if learner.kind == "centres":
        observe = observe.plus(_placing(learner, blocks))
        merging = _merging(learner, blocks)
        begin = begin.plus(_fading(learner, algebra))
    if learner.auto:
        begin = begin.plus(_solve(learner, algebra, _target(learner, greedy)))
    return CallCosts(act, observe, begin, merging)


def _solve(learner: Learner, algebra: Algebra, target: Ops) -> Ops:
    """Weights of every Q, where sum phi V(s') costs `target`."""
    backups = SWEEPS if learner.levels == 1 < learner.ahead else learner.ahead
    targets = backups if learner.levels == 1 < learner.ahead else backups - 1
    factors, regress = Ops(wide=algebra.factor * learner.groups), Ops(wide=algebra.solve)
    return target.times(targets).plus(factors, regress.times(backups))


def _target(learner: Learner, value: Ops) -> Ops:
    """sum phi V(s') over all samples, where one V costs `value`."""
    d = learner.d
    if learner.kind == "centres":
        return value.plus(Ops(wide=d)).times(learner.centres)
    if learner.counts:
        return value.plus(Ops(wide=d, looks=1)).times(learner.S)
    return value.plus(Ops(wide=d, looks=2)).times(learner.room)


def _difference(learner: Learner, blocks: int) -> int:
    """Multiply-adds of a product of two differences of points, subtractions included."""
    return 2 * (learner.A * learner.d if learner.S else learner.d // blocks)


def _sharing(learner: Learner, blocks: int) -> int:
    """Which centres stand for a point, and with which weights."""
    k, each = NEIGHBOURS, _difference(learner, blocks)
    weights = sum(i * i * (i + 3) // 2 for i in range(1, k + 1))
    return learner.centres * each + k * (k + 1) // 2 * each + weights


def _placing(learner: Learner, blocks: int) -> Ops:
    """Adding a sample to the centres that stand for its next state."""
    if not learner.merges:
        return Ops(wide=learner.d)
    return Ops(wide=_sharing(learner, blocks) + NEIGHBOURS * learner.d, looks=int(not learner.S))


def _merging(learner: Learner, blocks: int) -> Ops:
    """The distances of all centres, twice, and all but one merged into others."""
    if not learner.merges:
        return Ops()
    n = learner.room
    distances = n * (n - 1) * _difference(learner, blocks)
    return Ops(wide=distances + (n - 1) * (_sharing(learner, blocks) + NEIGHBOURS * learner.d))


def _fading(learner: Learner, algebra: Algebra) -> Ops:
    """What it takes to let all samples fade."""
    stores = max(learner.groups - 1, 1)
    sums = learner.groups * (algebra.packed + learner.d) + stores * learner.centres * learner.d
    return Ops(wide=sums * (learner.fade < 1))


def learner_bytes(learner: Learner, blocks: int, quick_kind: str, state: Any) -> int:
    """sizeof(linmdp_learner), where `state` is the ctypes type of a kept state."""
    return ctypes.sizeof(_memory(learner, quick_kind, state, learner.d // blocks, blocks))


def stack_bytes(learner: Learner, numbers: int) -> int:
    """Stack that a call takes at most, where a state has so many numbers (0: states are finite)."""
    sharing = (
        2 * NEIGHBOURS * (NEIGHBOURS + 2) * learner.merges
    )  # the weights of centres, and what they are solved from
    return 8 * (10 * learner.d + 4 * learner.A + numbers + sharing) + 800


def _memory(learner: Learner, quick_kind: str, state: Any, p: int, blocks: int) -> Any:
    quick: Any = ctypes.c_float if quick_kind == "float" else ctypes.c_double
    wide, d, M = ctypes.c_double, learner.d, learner.room
    action: Any = ctypes.c_uint8 if learner.A <= 256 else ctypes.c_uint16
    transition = {"state": state, "next": state, "action": action, "alive": ctypes.c_uint8}
    sample = _struct(**transition)
    packed, stores = Algebra.of(blocks, p).packed, max(learner.groups - 1, 1)
    core = _core(learner, wide, quick, packed)
    if learner.kind == "fixed":
        store = wide * (learner.S * d) if learner.counts else _struct(sample=sample * M, count=ctypes.c_uint32)
        return _struct(core=core, store=store * stores, phase=ctypes.c_uint32, learning=ctypes.c_uint8)
    merging = {"radius": wide, "stays": ctypes.c_uint8 * M} if learner.merges else {}
    centre = _struct(sums=wide * (d + 1), point=state if learner.S else wide * p)
    store = _struct(centre=centre * M, **merging, count=ctypes.c_uint16)
    return _struct(core=core, store=store * stores, clock=ctypes.c_uint32 * 2)


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
