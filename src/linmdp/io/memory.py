"""How much memory this machine has, and how much of it a command may take."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path

memory_limit: ContextVar[int | None] = ContextVar("memory_limit", default=None)
"""Bytes that a command may take; in Python there is no limit but the machine."""


def available_memory() -> int | None:
    """Bytes that this program may still take, or None where the system does not say."""
    found = (memory_limit.get(), _meminfo("MemAvailable", "SC_AVPHYS_PAGES"), _container_limit())
    return min((size for size in found if size is not None), default=None)


def machine_memory() -> int | None:
    """Bytes of this machine, or of the container; None where the system does not say."""
    found = (_meminfo("MemTotal", "SC_PHYS_PAGES"), _container_limit())
    return min((size for size in found if size is not None), default=None)


@contextmanager
def memory_kept() -> Iterator[None]:
    """What `limit_memory` sets is over in the end."""
    token, soft = memory_limit.set(None), _data_limit()
    try:
        yield
    finally:
        memory_limit.reset(token)
        if soft is not None:
            _set_data_limit(soft)


def limit_memory(most: int | None, *, enforced: bool = True) -> None:
    """From here on no more than so many bytes; by default a quarter of the machine's.

    Forecasts refuse what needs more. Where the system can, it also refuses this process (`enforced`): what no forecast
    knew then ends with a line, and not with a machine that stands still.
    """
    machine = machine_memory()
    most = most if most is not None or machine is None else machine // 4
    memory_limit.set(most)
    if enforced and most is not None and _data_limit() is not None:
        _set_data_limit(_data_used() + most)


def _data_limit() -> int | None:
    """The soft limit of private memory; None where there is no such limit."""
    try:
        import resource

        return resource.getrlimit(resource.RLIMIT_DATA)[0] if sys.platform == "linux" else None
    except (ImportError, OSError, ValueError):
        return None


def _set_data_limit(soft: int) -> None:
    import resource

    hard = resource.getrlimit(resource.RLIMIT_DATA)[1]
    resource.setrlimit(resource.RLIMIT_DATA, (soft if hard == resource.RLIM_INFINITY else min(soft, hard), hard))


def _data_used() -> int:
    lines = Path("/proc/self/status").read_text().splitlines()
    return next((int(line.split()[1]) * 1024 for line in lines if line.startswith("VmData:")), 0)


def _meminfo(name: str, pages: str) -> int | None:
    try:
        lines = Path("/proc/meminfo").read_text().splitlines()
        return next(int(line.split()[1]) * 1024 for line in lines if line.startswith(f"{name}:"))
    except (OSError, StopIteration, ValueError):
        pass
    try:
        return os.sysconf(pages) * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, OSError, ValueError):
        return None


def _container_limit() -> int | None:
    try:
        return int(Path("/sys/fs/cgroup/memory.max").read_text())
    except (OSError, ValueError):  # no container, or one without a limit ("max")
        return None
