"""The C files that are copied as they are."""

from __future__ import annotations

from pathlib import Path

FOLDER = Path(__file__).parent / "c"


def template(name: str) -> str:
    """The text of one of them."""
    return (FOLDER / name).read_text()
