"""Upper confidence bounds: Q = min(phi'w + beta sqrt(phi' Lambda^-1 phi), cap_h)."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from linmdp.agents.backend import NUMPY, Backend
from linmdp.agents.exploration.base import Exploration, meeting
from linmdp.agents.horizon import Horizon
from linmdp.types import Array


class Bonus(Exploration):
    """The formula of line 10 of Algorithm 1; `kernels.py` has it a second time, for GPUs.

    The forms phi' Lambda^-1 phi are kept for every row; they fall by (phi'v)^2 when Lambda grows (see `downdate`).
    Where that is how they are kept up (`scaled`), they are kept times beta^2, and v times beta: one pass less.
    """

    keeps_forms: ClassVar = True
    plain: ClassVar = True
    batched: ClassVar = True
    on_gpu: ClassVar = True
    added: bool = True
    """False while someone asks what Q would be without the bonus."""

    def vectors(self, h: int, v: Any = None) -> Any:
        w = self.w[self.horizon.level(h)]
        return (w,) if v is None else (w, v)

    def scale(self, h: int, runs: Any = ...) -> Any:
        return self.beta[h][runs] ** 2 if self.scaled else 1.0

    def forms(self, h: int, rows: Array) -> Array:
        forms = super().forms(h, rows)
        return forms * self.beta[h] ** 2 if self.scaled else forms

    def q_of_rows(self, h: int, rows: Array, forms: Array | None = None) -> Array:
        if not (self.plain and self.added):
            return super().q_of_rows(h, rows, forms)
        mean, forms = rows @ self.w[self.horizon.level(h)], self.forms(h, rows) if forms is None else forms
        q: Array = optimistic(mean, forms, None if self.scaled else self.beta[h])
        np.minimum(q, self.caps[h], out=q)
        return q

    def raised(self, h: int, products: Any, forms: Any) -> Any:
        if not self.added:
            return products[0]
        change = None
        if len(products) > 1:
            change = products[1]
            change *= change
            forms -= change
            self.backend.xp.abs(forms, out=forms)  # at least 0; rounding may leave it slightly below
        if self.scaled:
            return optimistic(products[0], forms, None, self.backend, change)
        return optimistic(products[0], forms, meeting(self.beta[h], forms), self.backend, change)


class Inflated(Bonus):
    """A bonus with beta_h + inflate E_h for beta_h, clipped from below at what the steps left pay at least.

    Attributes
    ----------
    given : (H,) the widths without the errors E_h of a bounded storage
    """

    batched: ClassVar = False
    plain: ClassVar = False
    clipped: ClassVar = True
    _arrays: ClassVar = ("beta",)
    _derived: ClassVar = ("caps", "terminal", "ended_value", "lows", "given")

    def __init__(self, horizon: Horizon, caps: Array, beta: float, lows: Array, inflate: float) -> None:
        super().__init__(horizon, caps, beta)
        self.lows, self.inflate = lows, inflate

    def change_beta(self, beta: Any) -> None:
        super().change_beta(beta)
        self.given: Array = self.beta.copy()

    def widen(self, h: int, error: float) -> None:
        self.beta[h] = self.given[h] + self.inflate * error

    def raised(self, h: int, products: Any, forms: Any) -> Any:
        q = super().raised(h, products, forms)
        np.maximum(q, self.lows[h], out=q)
        return q


def optimistic(mean: Any, forms: Any, beta: Any, backend: Backend = NUMPY, out: Any = None) -> Any:
    """phi'w + beta sqrt(phi' Lambda^-1 phi), from mean = phi'w; in place of `out`, if that is given.

    beta is None where the forms are already times beta^2.
    """
    q = backend.xp.sqrt(forms, out=out)
    if beta is not None:
        q *= beta
    q += mean
    return q
