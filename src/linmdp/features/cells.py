"""Cells of byte and integer observations: a few of their numbers, joined in groups from coarse to fine, and hashed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from linmdp.errors import InvalidData, LinMDPError, check_int, one_line
from linmdp.features.groups import MOST_SLOTS, GroupFeatures
from linmdp.features.hashing import ODD, scattered
from linmdp.io.files import write_atomic
from linmdp.io.tensorfile import TensorFile, array_of, packed, read_tensors
from linmdp.types import IntArray

BYTES = 256
"""Cells of a number that stands alone: a byte has no more values, and of larger numbers some share a cell."""


class Part(NamedTuple):
    """One number of a state, without its last `shift` bits."""

    column: int
    shift: int = 0


class Cells(GroupFeatures):
    """Features of the step and of a few numbers of the state: one-hot groups that join some of them, hashed.

    Parameters
    ----------
    width : numbers in a state, of which the last is the step of the episode
    groups : which parts of a state each group joins
    sizes : cells of each group
    classes : (A,) the class of each action
    found : what the choice of numbers and classes rests on, for those who want to know; plain JSON
    """

    clock = True
    trace = 0.9  # cells are not states: V of the next one is often wrong, and what was earned after it is not

    def __init__(
        self,
        width: int,
        groups: Sequence[Sequence[Part]],
        sizes: Sequence[int],
        classes: IntArray,
        found: Mapping[str, Any] | None = None,
    ) -> None:
        super().__init__(sizes, classes)
        self.width, self.groups, self.found = width, tuple(tuple(group) for group in groups), dict(found or {})
        parts = sorted({part for group in self.groups for part in group})
        self._columns = np.array([part.column for part in parts])
        self._shifts = np.array([part.shift for part in parts], dtype=np.uint64)
        self._factors = np.zeros((len(parts), self.G), dtype=np.uint64)
        for g, group in enumerate(self.groups):
            for part in group:
                place = parts.index(part)
                mixed = scattered(np.array([ODD * (place + 1) & 0xFFFFFFFFFFFFFFFF], dtype=np.uint64))[0]
                self._factors[place, g] = 1 if len(group) == 1 else mixed | np.uint64(1)
        self._joined = np.array([len(group) > 1 for group in self.groups])
        self._sizes = self.sizes.astype(np.uint64)

    def active(self, states: np.ndarray) -> IntArray:
        """The cell of each group of n states, (n, G)."""
        numbers = np.asarray(states)[:, self._columns].astype(np.int64).astype(np.uint64) >> self._shifts
        codes = (numbers[:, :, None] * self._factors).sum(axis=1, dtype=np.uint64)
        codes[:, self._joined] = scattered(codes[:, self._joined])
        cells: IntArray = (codes % self._sizes).astype(np.int64)
        return cells

    @property
    def columns(self) -> list[int]:
        """The numbers of a state that were chosen, the step left out."""
        return sorted({part.column for group in self.groups for part in group if part.column < self.width - 1})

    def save(self, path: Path) -> None:
        """Write it as safetensors, whole or not at all; `read_cells` reads it."""
        parts = [(g, *part) for g, group in enumerate(self.groups) for part in group]
        arrays = {"parts": np.array(parts, dtype=np.int64), "sizes": self.sizes, "classes": self.classes}
        write_atomic(path, packed("cells", {"width": self.width, "found": self.found}, arrays))


def read_cells(path: str | Path) -> Cells:
    """The cells in a file."""
    file = read_tensors(path, "cells")
    try:
        return _checked(file, f"the cells '{path}'")
    except (KeyError, TypeError, ValueError, OverflowError) as error:
        if isinstance(error, LinMDPError):
            raise
        raise InvalidData(f"The file of cells '{path}' lacks a part: {one_line(str(error), 200)}.") from error


def _checked(file: TensorFile, where: str) -> Cells:
    parts, sizes = array_of(file, "parts", (None, 3), where=where), array_of(file, "sizes", (None,), where=where)
    classes, found = array_of(file, "classes", (None,), where=where), file.meta.get("found", {})
    width = check_int(where, "width", file.meta["width"], low=2)
    whole = all(array.dtype == np.int64 and array.size for array in (parts, sizes, classes)) and isinstance(found, dict)
    fits = whole and set(parts[:, 0].tolist()) == set(range(len(sizes))) and sizes.min() > 0
    fits = fits and sizes.max() <= MOST_SLOTS and (parts >= 0).all() and (parts[:, 1] < width).all()
    fits = fits and (parts[:, 2] < 64).all() and set(classes.tolist()) == set(range(int(classes.max()) + 1))
    if not fits:
        raise InvalidData(f"The arrays of {where} must be groups of parts of {width} numbers, their sizes and classes.")
    groups = [[Part(*row[1:]) for row in parts.tolist() if row[0] == g] for g in range(len(sizes))]
    return Cells(width, groups, sizes.tolist(), classes, found)
