"""Feature maps as C: a table of finite states, or numbers through cosines, radial functions or tiles."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from linmdp.agents.base import Agent
from linmdp.errors import InvalidParameter
from linmdp.export.numbers import braces, filled, real, reals, table, template, unsigned, wholes
from linmdp.features.base import FeatureMap
from linmdp.features.basis import RBF, Fourier, RandomFourier, Tiles
from linmdp.features.scaling import Scaling
from linmdp.features.tabular import TableFeatures
from linmdp.types import Array, IntArray

MOST_FEATURES = 1 << 24
"""Entries of a table of features; more would be no file for a C compiler."""

WIDE = 8
"""Bytes of a constant: scaled states are computed in wide numbers, so that no tile and no half turn is missed."""

FUNCTION = {"float": 2, "double": 16}
"""Wide multiply-adds that a cosine or an exponential costs about as much as."""


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
    look_words : what it costs to make one state ready,
    look : and how many wide multiply-adds cost about as much
    """

    header: str
    source: str
    blocks: int
    states: int
    flash: int
    look_words: str
    look: int


def feature_code(agent: Agent, real: str) -> FeatureCode:
    """The agent's features in C: of finite states as a table, whatever they are made of."""
    task = agent.task
    if task.S is None:
        return basis_code(task.features, real)
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
        look_words="a look at a state is free",
        look=0,
    )


def basis_code(features: FeatureMap, kind: str) -> FeatureCode:
    """The map in C, in numbers of that kind ("float" or "double")."""
    if isinstance(features, Fourier | RandomFourier):
        return _cosines(features, kind)
    if isinstance(features, RBF):
        return _rbf(features, kind)
    if isinstance(features, Tiles):
        return _tiles(features, kind)
    names = "a table of finite states, fourier, rff, rbf or tiles"
    raise InvalidParameter(f"The features to export must be {names}. Got {type(features).__name__}.")


def _cosines(features: Fourier | RandomFourier, kind: str) -> FeatureCode:
    if isinstance(features, Fourier):
        turns, shift = features._c, np.zeros(features.p)
    else:
        turns, shift = features._omega / np.pi, features._b / np.pi
    length = real(1 / math.sqrt(features.p), kind)
    text = f"#define PI {real(math.pi, 'double')}\n#define LENGTH {length}\n\n"
    text += _matrix("omega[LINMDP_P][LINMDP_N]", turns.T) + table(
        "static const linmdp_wide shift[LINMDP_P]", _wide(shift)
    )
    k, p = turns.shape
    words = f"{k * p:,} wide multiply-adds and {p:,} cosines"
    return _code(features, features.scaling, text, "cosines", (k + 1) * p, words, (k + FUNCTION[kind]) * p)


def _rbf(features: RBF, kind: str) -> FeatureCode:
    p, k = features.centres.shape
    sharpness = real(1 / (2 * features.bandwidth**2), "double")
    text = f"#define SHARPNESS {sharpness}\n\n" + _matrix("centre[LINMDP_P][LINMDP_N]", features.centres)
    words = f"{2 * k * p:,} wide multiply-adds and {p:,} exponentials"
    return _code(features, features.scaling, text, "rbf", k * p, words, (2 * k + FUNCTION[kind]) * p)


def _tiles(features: Tiles, kind: str) -> FeatureCode:
    room, tilings = features.p // features.tilings, features.tilings
    defines = {"TILINGS": tilings, "TILES": features.tiles, "ROOM": room, "HASHED": int(features.hashed)}
    text = "".join(f"#define {name} {value}\n" for name, value in defines.items())
    text += f"#define LENGTH {real(1 / math.sqrt(tilings), kind)}\n\n"
    stride = unsigned(int(features.tilings_of.strides.max()))
    text += table(f"static const {stride} stride[LINMDP_N]", wholes(features.tilings_of.strides))
    text += _matrix("shift[TILINGS][LINMDP_N]", features.tilings_of.shift)
    k = features.scaling.k
    words = f"{tilings * k:,} wide multiply-adds"
    return _code(features, features.scaling, text, "tiles", tilings * k, words, tilings * k)


def _code(
    features: Fourier | RandomFourier | RBF | Tiles,
    scaling: Scaling,
    text: str,
    name: str,
    constants: int,
    words: str,
    look: int,
) -> FeatureCode:
    bounds = table("static const linmdp_wide low[LINMDP_N]", _wide(scaling.low))
    bounds += table("static const linmdp_wide width[LINMDP_N]", _wide(scaling.high - scaling.low))
    bounds += table("static const linmdp_wide margin[LINMDP_N]", _wide(scaling.margin + np.zeros(scaling.k)))
    return FeatureCode(
        header="features_basis.h",
        source=filled("basis.c", {"tables": bounds + text}) + template(f"basis_{name}.c"),
        blocks=features.A,
        states=scaling.k,
        flash=WIDE * (constants + 3 * scaling.k),
        look_words=f"a look at a state takes {words}",
        look=look,
    )


def _matrix(name: str, rows: Array) -> str:
    return table(f"static const linmdp_wide {name}", [braces(_wide(row)) for row in rows])


def _wide(values: Array) -> list[str]:
    return reals(values, "double")
