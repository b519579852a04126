"""Amounts of memory as people write them."""

from __future__ import annotations

UNITS = (("GiB", 2**30), ("MiB", 2**20), ("KiB", 2**10), ("bytes", 1))


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
