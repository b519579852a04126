"""The parameters that every LSVI agent takes, and the values that they may have."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING

from linmdp.errors import LinMDPWarning, check_choice, check_number, invalid

if TYPE_CHECKING:
    from linmdp.agents.lsvi import LSVIAgent

USUAL_LAM = 0.1
LEAST_LAM_SINGLE = 1e-5
"""A lam below this share of |phi|^2 <= 1 leaves no digit of an inverse in single precision."""

LARGEST_BONUS = 1e100
"""Bound on the first squared bonus: far beyond any use, and far below what a float can hold."""


def check_common(agent: LSVIAgent) -> None:
    """Refuse values that no LSVI agent takes."""
    check_choice(agent.name, "cap", agent.cap, ("H", "remaining"))
    check_choice(agent.name, "ties", agent.ties, ("random", "first"))
    check_choice(agent.name, "dtype", agent.dtype, ("float64", "float32"))
    if agent.lam != "auto" and check_number(agent.name, "lam", agent.lam, low=0.0, open_low=True) < 1 / LARGEST_BONUS:
        invalid(agent.name, "lam", f"at least {1 / LARGEST_BONUS:g}, or 'auto'", agent.lam)
    if agent.dtype == "float32" and not isinstance(agent.lam, str) and agent.lam < LEAST_LAM_SINGLE:
        words = f"lam={agent.lam:g} is lost in single precision, which has 7 digits: Q can be off by its whole range"
        warnings.warn(f"{agent.name}: {words}. Use dtype=float64, or lam >= {LEAST_LAM_SINGLE:g}.", LinMDPWarning)
    if agent.stationary != "auto" and not isinstance(agent.stationary, bool):
        invalid(agent.name, "stationary", "true, false or 'auto'", agent.stationary)
    if agent.discount != "auto":
        check_number(agent.name, "discount", agent.discount, low=0.0, high=1.0, open_low=True)
    check_number(agent.name, "inflate", agent.inflate, low=0.0, high=1.0)
