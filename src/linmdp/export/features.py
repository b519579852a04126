"""Feature maps as C: a table of finite states, or numbers through cosines."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from linmdp.agents.base import Agent
from linmdp.errors import InvalidParameter
from linmdp.export.numbers import braces, filled, real, reals, table, unsigned, wholes
from linmdp.features.base import FeatureMap
from linmdp.features.basis import Fourier, RandomFourier
from linmdp.features.tabular import TableFeatures
from linmdp.types import Array, IntArray

MOST_FEATURES = 1 << 24
"""Entries of a table of features; more would be no file for a C compiler."""

WIDE = 8
"""Bytes of a constant: scaled states are computed in wide numbers, so that no tile and no half turn is missed."""


@dataclass(frozen=True, kw_only=True)
class FeatureCode:
    """A feature map in C.

    Attributes
    ----------
    header : the template of linmdp_features.h
    source : linmdp_features.c
    blocks : no phi(s, a) has entries in two of so many blocks of equal length
    states : numbers in a state; 0 where states are finite
    flash : bytes of read-only tables
    """

    header: str
    source: str
    blocks: int
    states: int
    flash: int


def feature_code(agent: Agent, real: str) -> FeatureCode:
    """The agent's features in C: of finite states as a table, whatever they are made of."""
    task = agent.task
    if task.S is None:
        return basis_code(task.features)
    features = task.features
    if not isinstance(features, TableFeatures):
        if task.S * task.A * task.d > MOST_FEATURES:
            raise InvalidParameter(f"The features to export must have S * A * d at most {MOST_FEATURES}.")
        every: Any = np.arange(task.S)
        features = TableFeatures(features.batch(every), bound=features.bound)
    return table_code(features, real)


def table_code(features: TableFeatures, kind: str) -> FeatureCode:
    """The smallest of three forms, in numbers of that kind ("float" or "double")."""
    rows = features.table().reshape(-1, features.d)
    size = 4 if kind == "float" else 8
    where, places = np.nonzero(rows)
    values = rows[where, places]
    same = len(values) > 0 and bool((values == values[0]).all())
    index = unsigned(features.d - 1)
    entries = np.bincount(where, minlength=len(rows))
    blocks = _blocks(where, places, features.A, features.d)
    if same and int(entries.min()) == 1 == int(entries.max()):
        text = table(f"static const {index} place[LINMDP_S * LINMDP_A]", wholes(places))
        return _table_code("unit", text, real(values[0], kind), len(rows) * _bytes(index), blocks)
    offsets = unsigned(len(values))
    sparse = (len(rows) + 1) * _bytes(offsets) + len(values) * (_bytes(index) + (0 if same else size))
    if sparse >= rows.size * size:
        lines = ["{" + ", ".join(reals(row, kind)) + "}" for row in rows]
        text = table("static const linmdp_real table[LINMDP_S * LINMDP_A][LINMDP_D]", lines)
        return _table_code("dense", text, "", rows.size * size, blocks)
    starts = np.concatenate(([0], entries.cumsum()))
    text = "/* the entries of phi that are not 0: those of row s * LINMDP_A + a from start[row] on */\n"
    text += table(f"static const {offsets} start[LINMDP_S * LINMDP_A + 1]", wholes(starts))
    text += table(f"static const {index} place[{max(len(values), 1)}]", wholes(places) or ["0"])
    if not same:
        text += table(f"static const linmdp_real value[{max(len(values), 1)}]", reals(values, kind) or ["0"])
    entry = real(values[0], kind) if same else "value[at]"
    return _table_code("sparse", text, entry, sparse, blocks)


def _bytes(c_type: str) -> int:
    return int(c_type.strip("uint_")) // 8


def _blocks(where: IntArray, places: IntArray, A: int, d: int) -> int:
    """Into how many blocks the entries fall, none of whose rows has any in two: d, one for each action, or 1."""
    for blocks in (d, A):
        if d % blocks == 0:
            pairs = np.unique(where * blocks + places // (d // blocks))
            if len(np.unique(pairs // blocks)) == len(pairs):
                return blocks
    return 1


def _table_code(form: str, tables: str, entry: str, flash: int, blocks: int) -> FeatureCode:
    return FeatureCode(
        header="features_table.h",
        source=filled(f"features_{form}.c", {"tables": tables, "entry": entry}),
        blocks=blocks,
        states=0,
        flash=flash,
    )


def basis_code(features: FeatureMap) -> FeatureCode:
    """The map in C, in double precision: a last digit lost would now and then make another centre the nearest."""
    if isinstance(features, Fourier):
        turns, shift = features._c, np.zeros(features.p)
    elif isinstance(features, RandomFourier):
        turns, shift = features._omega / np.pi, features._b / np.pi
    else:
        names = "a table of finite states, fourier or auto"
        raise InvalidParameter(f"The features to export must be {names}. Got {type(features).__name__}.")
    scaling, (k, p) = features.scaling, turns.shape
    numbers = {"low": scaling.low, "width": scaling.high - scaling.low, "margin": scaling.margin + np.zeros(k)}
    tables = "".join(table(f"static const linmdp_wide {name}[LINMDP_N]", _wide(x)) for name, x in numbers.items())
    tables += f"#define PI {real(math.pi, 'double')}\n#define LENGTH {real(1 / math.sqrt(p), 'double')}\n\n"
    tables += table("static const linmdp_wide omega[LINMDP_P][LINMDP_N]", [braces(_wide(row)) for row in turns.T])
    tables += table("static const linmdp_wide shift[LINMDP_P]", _wide(shift))
    return FeatureCode(
        header="features_basis.h",
        source=filled("basis.c", {"tables": tables}),
        blocks=features.A,
        states=k,
        flash=WIDE * ((k + 1) * p + 3 * k),
    )


def _wide(values: Array) -> list[str]:
    return reals(values, "double")
