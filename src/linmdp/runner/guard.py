"""A run that stops before its end, with what it has done."""

from __future__ import annotations

from linmdp.errors import InvalidData
from linmdp.types import RunResult


class RunStopped(InvalidData):
    """A run that its environment (or a Q that is NaN) has stopped; `result` holds the episodes before that."""

    def __init__(self, words: str, result: RunResult | None = None) -> None:
        super().__init__(words)
        self.result = result
