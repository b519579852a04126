"""What the arrays of a saved agent may hold, beside their shapes and types: a file may say anything."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

import numpy as np

from linmdp.errors import InvalidData

Limits = Mapping[str, tuple[float, float]]
"""The least and the largest number of each array or counter that has such."""

POSITIVE = float(np.nextafter(0.0, 1.0))
ROUNDING = 1e-3
"""By how much a matrix in single precision may miss what holds for a definite one."""


@contextmanager
def solvable(agent: str) -> Iterator[None]:
    """Regressions that have a solution: all do with lam > 0, but for rounding, and for what a file may say."""
    try:
        yield
    except np.linalg.LinAlgError as error:
        rule = "larger for such features, or dtype float64: a regression has no solution"
        raise InvalidData(f"The lam of {agent} must be {rule} ({error}).") from None


def check_range(name: str, held: object, low: float, high: float) -> None:
    """Raise unless all numbers are within these limits."""
    numbers = np.asarray(held, dtype=np.float64)  # limits of double precision are none of single
    if not ((numbers >= low) & (numbers <= high)).all():
        words = "positive" if low == POSITIVE else f"at least {low:g}" if high == np.inf else f"in [{low:g}, {high:g}]"
        raise InvalidData(f"'{name}' of a saved agent must be {words} everywhere.")


def check_gram(name: str, matrices: np.ndarray) -> None:
    """Raise unless matrices (..., d, d) can be sums of x x', or their inverses: |m_ij|^2 <= m_ii m_jj, m_ii > 0."""
    roots = np.diagonal(matrices, axis1=-2, axis2=-1).astype(np.float64)
    if not (roots > 0).all():
        raise InvalidData(f"'{name}' of a saved agent must be positive on its diagonal.")
    roots = np.sqrt(roots)
    if not (np.abs(matrices) <= (1 + ROUNDING) * roots[..., :, None] * roots[..., None, :]).all():
        raise InvalidData(f"'{name}' of a saved agent must be positive definite.")
