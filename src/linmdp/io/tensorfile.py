"""Files of named arrays with a few words about them: safetensors, and JSON in its header. No pickle anywhere."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from linmdp.errors import InvalidData, described

FORMAT = 1
KEY = "linmdp"
CHECKSUM = "sha256"


class Damaged(InvalidData):
    """A file that is not whole, or not what was written: an older copy of it may be."""


class TensorFile(NamedTuple):
    """What a file holds: its metadata, and its arrays by name."""

    meta: dict[str, Any]
    arrays: dict[str, np.ndarray]


def packed(kind: str, meta: Mapping[str, Any], arrays: Mapping[str, np.ndarray]) -> bytes:
    """A file of that kind ("model", "dataset", "agent", "checkpoint") as bytes, with a checksum over all of it."""
    from safetensors.numpy import save

    whole = {name: np.asarray(array, order="C") for name, array in arrays.items()}
    words = json.loads(json.dumps({"format": FORMAT, "kind": kind, **meta}))
    return save(whole, {KEY: json.dumps(words | {CHECKSUM: checksum(words, whole)})})


def checksum(meta: Mapping[str, Any], arrays: Mapping[str, np.ndarray]) -> str:
    """SHA-256 over the words, and over the name, type, shape and bytes of every array."""
    whole = hashlib.sha256(json.dumps({**meta, CHECKSUM: None}, sort_keys=True).encode())
    for name in sorted(arrays):
        array = arrays[name]
        whole.update(f"\n{name} {array.dtype.str} {array.shape}\n".encode())
        whole.update(np.ascontiguousarray(array).view(np.uint8).data if array.size else b"")
    return whole.hexdigest()


def read_tensors(path: str | Path, *kinds: str, signed: bool = False) -> TensorFile:
    """The file, if it is whole, one of linmdp and of such a kind, and every number in it is finite.

    A checksum that is there must be right; `signed`: it must be there (files of older versions have none).
    """
    kind = kinds[0]
    meta, arrays = _opened(Path(path), kind)
    found = meta.get(CHECKSUM) if isinstance(meta, dict) else None
    if found is not None and found != checksum(meta, arrays):
        raise Damaged(f"The {kind} file '{path}' is damaged: its checksum is not that of its contents.")
    if not isinstance(meta, dict) or meta.get("kind") not in kinds or meta.get("format") != FORMAT:
        known = meta if isinstance(meta, dict) else {}
        got = f"a {known['kind']} file of format {known.get('format')}"[:80] if "kind" in known else "another"
        raise InvalidData(f"'{path}' must be a {kind} file of format {FORMAT} written by linmdp. Got {got}.")
    if signed and found is None:
        raise Damaged(f"The {kind} file '{path}' must have a checksum. It has none.")
    for name, array in arrays.items():
        if array.dtype.kind == "f" and not np.isfinite(array).all():
            raise Damaged(f"The {kind} file '{path}' must hold finite numbers. {name!r:.80} has NaN or infinity.")
    return TensorFile(meta, arrays)


def _opened(path: Path, kind: str) -> tuple[Any, dict[str, np.ndarray]]:
    """What stands in a safetensors file. Its header may claim no more than the file's own bytes."""
    from safetensors import SafetensorError, safe_open

    try:
        if not path.is_file():  # opening a pipe would block
            raise InvalidData(f"The {kind} file '{path}' cannot be read: there is no such file.")
        with safe_open(path, framework="numpy") as file:
            meta = json.loads((file.metadata() or {}).get(KEY, "null"))
            arrays = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 (not a mapping)
    except OSError as error:
        raise InvalidData(f"The {kind} file '{path}' cannot be read: {error.strerror or described(error)}.") from error
    except InvalidData:
        raise
    except (SafetensorError, ValueError, TypeError, AttributeError, KeyError, RecursionError) as error:
        raise Damaged(f"The {kind} file '{path}' is damaged or no safetensors file: {described(error)}.") from error
    return meta, arrays


def array_of(file: TensorFile, name: str, shape: tuple[int | None, ...], *, where: str) -> np.ndarray:
    """One array, if it is there and has that shape (None: any length)."""
    if name not in file.arrays:
        raise InvalidData(f"The file of {where} must hold '{name}'. It does not.")
    array = file.arrays[name]
    if len(array.shape) != len(shape) or any(n is not None and n != m for n, m in zip(shape, array.shape, strict=True)):
        raise InvalidData(f"'{name}' in the file of {where} must have shape {shape}. Got {array.shape}.")
    return array
