"""CPU and wall time, with pauses."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager


class Stopwatch:
    """CPU and wall time of what runs inside `with`, less what runs inside `paused()`."""

    def __init__(self) -> None:
        self.cpu = self.wall = 0.0

    def __enter__(self) -> None:
        self.cpu -= time.process_time()
        self.wall -= time.perf_counter()

    def __exit__(self, *error: object) -> None:
        self.cpu += time.process_time()
        self.wall += time.perf_counter()

    @property
    def cpu_so_far(self) -> float:
        """CPU time until now, while it runs."""
        return self.cpu + time.process_time()

    @contextmanager
    def paused(self) -> Iterator[None]:
        """Stop the watch inside `with`."""
        self.__exit__()
        try:
            yield
        finally:
            self.__enter__()
