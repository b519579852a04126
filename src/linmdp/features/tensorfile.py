"""Files of named arrays with a few words about them: safetensors, and JSON in its header. No pickle anywhere."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from linmdp.errors import InvalidData

FORMAT = 1
KEY = "linmdp"


class TensorFile(NamedTuple):
    """What a file holds: its metadata, and its arrays by name."""

    meta: dict[str, Any]
    arrays: dict[str, np.ndarray]


def packed(kind: str, meta: Mapping[str, Any], arrays: Mapping[str, np.ndarray]) -> bytes:
    """A file of that kind ("model", "dataset", "checkpoint") as bytes."""
    from safetensors.numpy import save

    words = json.dumps({"format": FORMAT, "kind": kind, **meta})
    return save({name: np.ascontiguousarray(array) for name, array in arrays.items()}, {KEY: words})


def read_tensors(path: str | Path, kind: str) -> TensorFile:
    """The file, if it is whole, one of ours and of that kind, and every number in it is finite."""
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(path, framework="numpy") as file:
            meta = json.loads((file.metadata() or {}).get(KEY, "null"))
            arrays = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 (not a mapping)
    except (SafetensorError, ValueError) as error:
        raise InvalidData(f"The {kind} file '{path}' is damaged or no safetensors file: {_line(error)}.") from error
    except OSError as error:
        raise InvalidData(f"The {kind} file '{path}' can not be read: {error.strerror or _line(error)}.") from error
    if not isinstance(meta, dict) or meta.get("kind") != kind or meta.get("format") != FORMAT:
        found = f"a {meta.get('kind')} file of format {meta.get('format')}" if isinstance(meta, dict) else "another"
        raise InvalidData(f"'{path}' must be a {kind} file of format {FORMAT} written by linmdp. Got {found}.")
    for name, array in arrays.items():
        if array.dtype.kind == "f" and not np.isfinite(array).all():
            raise InvalidData(f"The {kind} file '{path}' must hold finite numbers. '{name}' has NaN or infinity.")
    return TensorFile(meta, arrays)


def array_of(file: TensorFile, name: str, shape: tuple[int | None, ...], *, where: str) -> np.ndarray:
    """One array, if it is there and has that shape (None: any length)."""
    if name not in file.arrays:
        raise InvalidData(f"The file of {where} must hold '{name}'. It does not.")
    array = file.arrays[name]
    if len(array.shape) != len(shape) or any(n is not None and n != m for n, m in zip(shape, array.shape, strict=True)):
        raise InvalidData(f"'{name}' in the file of {where} must have shape {shape}. Got {array.shape}.")
    return array


def _line(error: Exception) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0].rstrip(".")
