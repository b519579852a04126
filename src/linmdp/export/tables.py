"""A table of features as C: dense, or its non-zero entries where those take less room."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from linmdp.export.numbers import filled, real, reals, table, unsigned, wholes
from linmdp.features.tabular import TableFeatures
from linmdp.types import IntArray


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
    look_words : what it costs to make one state ready
    """

    header: str
    source: str
    blocks: int
    states: int
    flash: int
    look_words: str


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
        return _code("unit", text, real(values[0], kind), len(rows) * _bytes(index), blocks)
    offsets = unsigned(len(values))
    sparse = (len(rows) + 1) * _bytes(offsets) + len(values) * (_bytes(index) + (0 if same else size))
    if sparse >= rows.size * size:
        lines = ["{" + ", ".join(reals(row, kind)) + "}" for row in rows]
        text = table("static const linmdp_real table[LINMDP_S * LINMDP_A][LINMDP_D]", lines)
        return _code("dense", text, "", rows.size * size, blocks)
    starts = np.concatenate(([0], entries.cumsum()))
    text = "/* the entries of phi that are not 0: those of row s * LINMDP_A + a from start[row] on */\n"
    text += table(f"static const {offsets} start[LINMDP_S * LINMDP_A + 1]", wholes(starts))
    text += table(f"static const {index} place[{max(len(values), 1)}]", wholes(places) or ["0"])
    if not same:
        text += table(f"static const linmdp_real value[{max(len(values), 1)}]", reals(values, kind) or ["0"])
    entry = real(values[0], kind) if same else "value[at]"
    return _code("sparse", text, entry, sparse, blocks)


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


def _code(form: str, tables: str, entry: str, flash: int, blocks: int) -> FeatureCode:
    return FeatureCode(
        header="features_table.h",
        source=filled(f"features_{form}.c", {"tables": tables, "entry": entry}),
        blocks=blocks,
        states=0,
        flash=flash,
        look_words="a look at a state is free",
    )
