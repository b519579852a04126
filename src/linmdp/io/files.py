"""Writing files: a file is either the old one or the new one, never half of it."""

from __future__ import annotations

import os
import secrets
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from linmdp.errors import InvalidData, OutputError


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
    with atomic_file(path) as file:
        file.write(data)


def own(path: Path) -> Path:
    """`path`, which must be no symbolic link: nothing in a folder of runs leads out of it."""
    if path.is_symlink():
        raise InvalidData(f"'{path}' must lie in its own folder. It is a symbolic link: not followed.")
    return path


@contextmanager
def atomic_file(path: Path) -> Iterator[IO[bytes]]:
    """A file to write to that takes the place of `path` in one move at the end, or not at all."""
    try:
        temporary = path.parent / f".{path.name}.{secrets.token_hex(4)}"
        try:
            with temporary.open("xb") as file:  # who may read it is for the umask to say
                yield file
                file.flush()
                os.fsync(file.fileno())
            os.replace(temporary, path)
        except BaseException:
            temporary.unlink(missing_ok=True)
            raise
    except OSError as error:
        raise OutputError(f"'{path}' could not be written. {error.strerror}.") from error
