"""Feature maps over numbers as C: cosines, radial functions, tiles. phi(s, a) is psi(s) in the block of action a."""

from __future__ import annotations

import math

import numpy as np

from linmdp.errors import InvalidParameter
from linmdp.export.numbers import braces, filled, real, reals, table, template, unsigned, wholes
from linmdp.export.tables import FeatureCode
from linmdp.features.base import FeatureMap
from linmdp.features.basis import RBF, Fourier, RandomFourier, Tiles
from linmdp.features.scaling import Scaling
from linmdp.types import Array

WIDE = 8
"""Bytes of a constant: scaled states are computed in wide numbers, so that no tile and no half turn is missed."""


def basis_code(features: FeatureMap, kind: str) -> FeatureCode:
    """The map in C, in numbers of that kind ("float" or "double")."""
    if isinstance(features, Fourier | RandomFourier):
        return _cosines(features, kind)
    if isinstance(features, RBF):
        return _rbf(features)
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
    return _code(features, features.scaling, text, "cosines", (k + 1) * p, words)


def _rbf(features: RBF) -> FeatureCode:
    p, k = features.centres.shape
    sharpness = real(1 / (2 * features.bandwidth**2), "double")
    text = f"#define SHARPNESS {sharpness}\n\n" + _matrix("centre[LINMDP_P][LINMDP_N]", features.centres)
    words = f"{2 * k * p:,} wide multiply-adds and {p:,} exponentials"
    return _code(features, features.scaling, text, "rbf", k * p, words)


def _tiles(features: Tiles, kind: str) -> FeatureCode:
    room, tilings = features.p // features.tilings, features.tilings
    defines = {"TILINGS": tilings, "TILES": features.tiles, "ROOM": room, "HASHED": int(features.hashed)}
    text = "".join(f"#define {name} {value}\n" for name, value in defines.items())
    text += f"#define LENGTH {real(1 / math.sqrt(tilings), kind)}\n\n"
    stride = unsigned(int(features._strides.max()))
    text += table(f"static const {stride} stride[LINMDP_N]", wholes(features._strides))
    text += _matrix("shift[TILINGS][LINMDP_N]", features._shift)
    k = features.scaling.k
    return _code(features, features.scaling, text, "tiles", tilings * k, f"{tilings * k:,} wide multiply-adds")


def _code(
    features: Fourier | RandomFourier | RBF | Tiles, scaling: Scaling, text: str, name: str, constants: int, words: str
) -> FeatureCode:
    bounds = table("static const linmdp_wide low[LINMDP_N]", _wide(scaling.low))
    bounds += table("static const linmdp_wide width[LINMDP_N]", _wide(scaling.high - scaling.low))
    return FeatureCode(
        header="features_basis.h",
        source=filled("basis.c", {"tables": bounds + text}) + template(f"basis_{name}.c"),
        blocks=features.A,
        states=scaling.k,
        flash=WIDE * (constants + 2 * scaling.k),
        look_words=f"a look at a state takes {words}",
    )


def _matrix(name: str, rows: Array) -> str:
    return table(f"static const linmdp_wide {name}", [braces(_wide(row)) for row in rows])


def _wide(values: Array) -> list[str]:
    return reals(values, "double")
