"""Amounts of memory as people write them."""

from __future__ import annotations

import re
from numbers import Integral
from typing import Any

from linmdp.errors import invalid

UNITS = (("GiB", 2**30), ("MiB", 2**20), ("KiB", 2**10), ("bytes", 1))
READ = {"": 1, "B": 1, "KB": 10**3, "MB": 10**6, "GB": 10**9, "KIB": 2**10, "MIB": 2**20, "GIB": 2**30}
"""What may be read, by how it ends, in capitals."""


def memory_unit(largest: float) -> tuple[str, int]:
    """The unit in which to show amounts up to `largest` bytes, and its size in bytes."""
    return next(((unit, size) for unit, size in UNITS if largest >= size), UNITS[-1])


def human_bytes(count: float | None) -> str:
    """1536 as "1.5 KiB", and a dash where there is no figure."""
    if count is None:
        return "-"
    if count < 1024:
        return f"{count:.0f} B"
    unit, size = memory_unit(count)
    amount = count / size
    return f"{amount:.0f} {unit}" if amount >= 999.5 else f"{amount:.3g} {unit}"


def parse_bytes(owner: str, value: Any, parameter: str = "max_bytes") -> int:
    """A number of bytes, or text such as "256KiB" or "2 MB"."""
    found = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([A-Za-z]*)\s*", value) if isinstance(value, str) else None
    if found and len(found[1]) < 30 and found[2].upper() in READ:
        value = int(float(found[1]) * READ[found[2].upper()])
    if not isinstance(value, Integral) or isinstance(value, bool) or value < 1:
        invalid(owner, parameter, "a whole number of bytes, or text such as 256KiB or 2MiB", value)
    return int(value)
