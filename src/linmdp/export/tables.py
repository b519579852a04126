"""A table of features as C: dense, or its non-zero entries where those take less room."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from linmdp.export.numbers import real, reals, table, unsigned, wholes
from linmdp.features.tabular import TableFeatures


@dataclass(frozen=True, kw_only=True)
class FeatureCode:
    """A feature map in C.

    Attributes
    ----------
    header : the template of linmdp_features.h
    source : linmdp_features.c
    defines : sizes that the header needs
    flash : bytes of read-only tables
    look_words : what it costs to make one state ready
    unit : every phi(s, a) has one entry that is not 0, at most
    """

    header: str
    source: str
    defines: dict[str, str] = field(default_factory=dict)
    flash: int = 0
    look_words: str = ""
    unit: bool = False


START = """/* linmdp_features.c: see linmdp_features.h. Written by `linmdp export`. */
#include "linmdp_features.h"

#include <stddef.h>

"""

DENSE = """void linmdp_phi(const linmdp_seen *seen, unsigned action, linmdp_real phi[LINMDP_D])
{
    const linmdp_real *row = table[(size_t)*seen * LINMDP_A + action];
    for (size_t i = 0; i < LINMDP_D; i++)
        phi[i] = row[i];
}
"""

SPARSE = """void linmdp_phi(const linmdp_seen *seen, unsigned action, linmdp_real phi[LINMDP_D])
{
    const size_t row = (size_t)*seen * LINMDP_A + action;
    for (size_t i = 0; i < LINMDP_D; i++)
        phi[i] = 0;
    for (size_t at = start[row]; at < start[row + 1]; at++)
        phi[place[at]] = %s;
}
"""

UNIT = """void linmdp_phi(const linmdp_seen *seen, unsigned action, linmdp_real phi[LINMDP_D])
{
    for (size_t i = 0; i < LINMDP_D; i++)
        phi[i] = 0;
    phi[place[(size_t)*seen * LINMDP_A + action]] = %s;
}
"""


def table_code(features: TableFeatures, kind: str) -> FeatureCode:
    """The smallest of three forms, in numbers of that kind ("float" or "double")."""
    rows = features.table().reshape(-1, features.d)
    size = 4 if kind == "float" else 8
    where, places = np.nonzero(rows)
    values = rows[where, places]
    same = len(values) > 0 and bool((values == values[0]).all())
    index = unsigned(features.d - 1)
    entries = np.bincount(where, minlength=len(rows))
    unit = int(entries.max()) <= 1
    if same and int(entries.min()) == 1 == int(entries.max()):
        text = table(f"static const {index} place[LINMDP_S * LINMDP_A]", wholes(places))
        return _code(text + "\n" + UNIT % real(values[0], kind), len(rows) * _bytes(index), unit)
    offsets = unsigned(len(values))
    sparse = (len(rows) + 1) * _bytes(offsets) + len(values) * (_bytes(index) + (0 if same else size))
    if sparse >= rows.size * size:
        lines = ["{" + ", ".join(reals(row, kind)) + "}" for row in rows]
        text = table("static const linmdp_real table[LINMDP_S * LINMDP_A][LINMDP_D]", lines)
        return _code(text + "\n" + DENSE, rows.size * size, unit)
    starts = np.concatenate(([0], entries.cumsum()))
    text = "/* the entries of phi that are not 0: those of row s * LINMDP_A + a from start[row] on */\n"
    text += table(f"static const {offsets} start[LINMDP_S * LINMDP_A + 1]", wholes(starts))
    text += table(f"static const {index} place[{max(len(values), 1)}]", wholes(places) or ["0"])
    if not same:
        text += table(f"static const linmdp_real value[{max(len(values), 1)}]", reals(values, kind) or ["0"])
    entry = real(values[0], kind) if same else "value[at]"
    return _code(text + "\n" + SPARSE % entry, sparse, unit)


def _bytes(c_type: str) -> int:
    return int(c_type.strip("uint_")) // 8


def _code(text: str, flash: int, unit: bool) -> FeatureCode:
    words = "a look at a state is free"
    return FeatureCode(header="features_table.h", source=START + text, flash=flash, look_words=words, unit=unit)
