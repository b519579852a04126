"""`results.jsonl` in a folder: one JSON object per line."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from linmdp.errors import OutputError
from linmdp.io.files import output_folder, write_atomic
from linmdp.types import RunResult


class ResultFile:
    """`results.jsonl` in a folder: one JSON object a line, as `--json` prints them, each when its run is finished.

    Lines of other runs that are there already stay; those of the runs to come are replaced. A folder that was made for
    it and stays empty is taken away again. Without a folder nothing is written.
    """

    def __init__(self, folder: Path | None, runs: Sequence[tuple[str, str, int, int]]) -> None:
        self._new = folder is not None and not os.path.exists(folder)  # a name that is too long is not there, either
        self.path = output_folder(folder) / "results.jsonl" if folder else None
        self._runs = set(runs)

    def __enter__(self) -> ResultFile:
        return self

    def __exit__(self, *error: object) -> None:
        if self.path and self._new and not any(self.path.parent.iterdir()):
            self.path.parent.rmdir()

    def add(self, result: RunResult) -> None:
        """Append one line; the first time, drop what is run again."""
        if self.path is None:
            return
        if self._runs:
            kept = [line for line in _lines(self.path) if _run_of(line) not in self._runs]
            write_atomic(self.path, b"".join(kept))
            self._runs.clear()
        try:
            with self.path.open("ab") as file:
                file.write(json.dumps(result.to_json()).encode() + b"\n")
                file.flush()
                os.fsync(file.fileno())
        except OSError as error:
            raise OutputError(f"'{self.path}' could not be written. {error.strerror}.") from error


def _lines(path: Path) -> list[bytes]:
    """The whole lines of a file; a torn last one is left out."""
    return (
        [line for line in path.read_bytes().splitlines(keepends=True) if line.endswith(b"\n")] if path.exists() else []
    )


def _run_of(line: bytes) -> tuple[Any, ...]:
    try:
        record = json.loads(line)
        return tuple(record[name] for name in ("env", "agent", "episodes", "seed"))
    except (ValueError, KeyError, TypeError):
        return ()
