"""What the steps of an episode share: a regression each, one for all, or one discounted Q."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from linmdp.agents.ridge import at_least
from linmdp.types import Array

SWEEPS = 200
"""Backups of a discounted planning, at most, with most storages; it starts from the weights of the last one."""

TOLERANCE = 1e-4
"""A discounted planning ends when no weight moves by more than this fraction of the largest value."""

DIVERGING = 10.0
"""A backup that moves the weights this many times farther than an earlier one is not converging."""


@dataclass(frozen=True)
class Horizon:
    """The steps of an episode, and which of them share a regression (`groups`) and a Q (`levels`).

    Attributes
    ----------
    H : steps that are planned
    shared : one regression serves all steps, for tasks whose dynamics do not depend on the step
    discount : below 1 one Q serves all steps as well: the fixed point of w = Lambda^-1 (u + discount * z)
    stride : so many steps share the Q that is kept, that of the first of them; planning goes through all
    episode : steps of an episode; where they are more than H, all before the last H look H steps ahead
    """

    H: int
    shared: bool = False
    discount: float = 1.0
    stride: int = 1
    episode: int = 0

    @cached_property
    def groups(self) -> int:
        """Regressions."""
        return 1 if self.shared else self.H

    @cached_property
    def levels(self) -> int:
        """Different Q that are kept."""
        return 1 if self.discounted else -(-self.H // self.stride)

    @cached_property
    def discounted(self) -> bool:
        """Whether one Q serves all steps."""
        return self.discount < 1

    @cached_property
    def followed(self) -> int:
        """Regressions whose samples have a next step: of an undiscounted last step nothing follows."""
        return self.groups if self.discounted else min(self.groups, self.H - 1)

    @cached_property
    def samples_per_episode(self) -> int:
        """Samples that an episode can bring to one regression."""
        return max(self.H, self.episode) if self.shared else 1

    def planned(self, h: int) -> int:
        """The planned step that step h of an episode is."""
        return max(0, h - max(0, self.episode - self.H))

    def acting(self, h: int) -> int:
        """The planned step whose Q is kept and serves step h of an episode."""
        step = self.planned(h)
        return step - step % self.stride

    def group(self, h: int) -> int:
        """The regression of step h."""
        return 0 if self.shared else h

    def level(self, h: int) -> int:
        """The Q of step h."""
        return 0 if self.discounted else min(h, self.H - 1) // self.stride

    def leads_on(self, h: int) -> bool:
        """Whether the Q of step h depends on that of a following step."""
        return self.discounted or h < self.H - 1

    def caps(self, cap: str, r_max: float) -> Array:
        """The largest value of Q at each step, (H,): H r_max (the paper's) or what the remaining steps can pay.

        Never less than 0, which is the value of an episode that ends early: that matters where all rewards are
        negative. With a discount there is one Q for all steps, and one cap: what H discounted steps can pay.
        """
        best = max(r_max, 0.0)
        if self.discounted:
            return np.full(self.H, best * self.effective_steps)
        return np.full(self.H, self.H * best) if cap == "H" else best * np.arange(self.H, 0, -1.0)

    def lows(self, r_min: float) -> Array:
        """The least value of Q at each step, (H,), never more than 0."""
        steps = np.full(self.H, self.effective_steps) if self.discounted else np.arange(self.H, 0, -1.0)
        return np.asarray(min(r_min, 0.0) * steps)

    @cached_property
    def effective_steps(self) -> float:
        """The value of H steps that pay 1 each."""
        return float(self.H) if not self.discounted else (1 - self.discount**self.H) / (1 - self.discount)


def fixed_point(w: Any, backup: Callable[[Any, Any], Any], largest: Any, going: Any, sweeps: int, xp: Any = np) -> Any:
    """Where w = backup(w), from `w` (*batch, d) on, to TOLERANCE times the largest value (at least 1) of each run.

    Backups of fitted values need not converge: then the w whose backup moved it least. `going` (*batch): which runs
    move; `backup` gets those that still do, and what it says of others is not looked at.
    """

    def told(runs: Any, new: Any, old: Any) -> Any:
        """`new` for those runs, and `old` for the others."""
        if one:
            return new if runs else old
        return xp.where(runs if new.ndim == 1 else runs[:, None], new, old)

    one = w.ndim == 1
    best, least, tolerance = w, np.inf, TOLERANCE * at_least(largest, 1.0)
    for _ in range(sweeps):
        new = backup(w, going)
        moved = xp.amax(abs(new - w), -1) if w.shape[-1] else w.sum(-1)
        near = moved <= DIVERGING * least  # not true of NaN
        better, w = going & near & (moved < least), told(going, told(near, new, best), w)
        best, least = told(better, new, best), told(better, moved, least)
        going = going & near & (moved > tolerance)
        if not (going if one else going.any()):
            break
    return w
