"""Widths of the bonus that are formulas, with a proof or as published. Docs: bounded memory, and insured.

The width that follows from the data is in `exploration/evidence.py`.
"""

from __future__ import annotations

import math

from linmdp.errors import check_number, invalid
from linmdp.types import Array


def confidence_width(owner: str, beta: float | str, *, d: int, H: int, K: int | None) -> float:
    """beta as a number: itself, or the width of the theory, or the one that was published with the paper's program."""
    if not isinstance(beta, str):
        return check_number(owner, "beta", beta, low=0.0)
    if beta not in ("theory", "published"):
        invalid(owner, "beta", "a finite number >= 0, 'auto', 'theory' or 'published'", beta)
    if K is None:
        invalid(owner, "episodes", f"given when beta is {beta!r}, which depends on it", None)
    if beta == "theory":
        p = 0.1
        return d * H * math.sqrt(math.log(2 * d * (K * H) / p))
    return 1e-4 * d * H * math.sqrt(math.log(3 * d * H * K))


def theorem_width(*, d: int, H: int, K: int, lam: float, p: float, more: float = 0.0) -> float:
    """beta_0 = B_0 + H sqrt(d lam) for rewards in [0, 1]; B_0 depends on beta_0 through a logarithm, so iterate.

    `more` is what the width that is used has on top of it, beside the errors of a bounded memory.
    """
    g, beta = d * math.log1p(K / (lam * d)), 0.0
    for _ in range(100):
        net = d * math.log1p(4 * K / math.sqrt(lam))
        net += d * d * math.log1p(8 * math.sqrt(d) * K * (beta + more + H * math.sqrt(K)) ** 2 / (lam * H * H))
        noise = H / 2 * math.sqrt(g + 2 * (math.log(2 * H / p) + net)) + math.sqrt(g + 2 * math.log(2 * H / p)) / 2
        beta = noise + 2 * H + H * math.sqrt(d * lam)
    return beta


def table_width(caps: Array, *, d: int, K: int, lam: float, p: float) -> Array:
    """Width of each step for unit vectors, (H,): optimism by Hoeffding for every step, vector and number of visits.

    `caps` (H,) are the ranges of the values of each step. Their largest one is beta_1 of the page.
    """
    return caps * (math.sqrt(math.log(len(caps) * d * K / p) / 2) + math.sqrt(lam))


def log_term(n: int, p: float) -> float:
    """l_n = ln(n (n + 1) / p): the price of a bound that holds for all n at once."""
    return math.log(n * (n + 1) / p)
