"""One BLAS thread while runs compute: the last bits of a product depend on how many there are."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

_lock = threading.Lock()
_limits: list[Any] = []
_inside = 0


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """The number is that of the whole process: the first to enter sets it, and the last to leave gives it back."""
    global _inside
    from threadpoolctl import threadpool_limits

    with _lock:
        if not _inside:
            _limits.append(threadpool_limits(1, user_api="blas"))
        _inside += 1
    try:
        yield
    finally:
        with _lock:
            _inside -= 1
            if not _inside:
                _limits.pop().restore_original_limits()
