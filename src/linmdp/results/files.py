"""Writing results: a file is either the old one or the new one, never half of it."""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Iterable
from pathlib import Path

from linmdp.errors import OutputError
from linmdp.types import RunResult


def output_folder(path: Path) -> Path:
    """`path` as a folder that can be written to, made if it is missing."""
    try:
        path.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=path):
            return path
    except OSError as error:
        raise OutputError(f"The output folder '{path}' must be writable. {error.strerror}.") from error


def write_atomic(path: Path, data: bytes) -> None:
    """Write beside the file, then put it in place in one move."""
    try:
        handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
            os.chmod(temporary, 0o644)
            os.replace(temporary, path)
        except BaseException:
            Path(temporary).unlink(missing_ok=True)
            raise
    except OSError as error:
        raise OutputError(f"'{path}' could not be written. {error.strerror}.") from error


def write_results(path: Path, results: Iterable[RunResult]) -> None:
    """One JSON object a line, as `--json` prints them."""
    write_atomic(path, "".join(json.dumps(r.to_json()) + "\n" for r in results).encode())
