"""What a storage is: it holds samples, and sums the values of what followed them.

`RowStorage` is what those share that make the features they need from states.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np

from linmdp.agents.base import Component
from linmdp.agents.exploration.base import Exploration, Moments, stacked
from linmdp.agents.horizon import Horizon
from linmdp.agents.ridge import Ridge, quadratic_forms
from linmdp.errors import InvalidData, InvalidParameter
from linmdp.features.base import CheckedFeatures, FeatureMap
from linmdp.features.basis import BlockFeatures
from linmdp.types import Array, BoolArray, State, all_finite

FADED = 1e-10
"""The weight below which a sample that fades is dropped."""


BUFFERS = 8 * 8192
"""Bytes of NumPy's own for products that do not lie in one piece."""


class Parts(NamedTuple):
    """What a storage shares with its planner: w is (levels, *batch, d)."""

    horizon: Horizon
    ridge: Ridge
    w: Any
    exploration: Exploration


@dataclass(slots=True)
class Sample:
    """One transition: phi is phi(state, action), and `weight` says how much it counts.

    For unit vectors `cell` says which entry of phi is 1, and `to` which state followed.
    """

    phi: Any
    state: State
    action: int
    next_state: State
    terminated: bool = False
    weight: float = 1.0
    reward: float = 0.0
    cell: int = -1
    to: int = -1


class Storage(Component):
    """The samples of one agent, or of B runs in lockstep."""

    keeps_samples = True
    """Whether every sample is held, so that Lambda can be made again from them."""
    incremental = True
    """Whether it follows rank-one updates of Lambda^-1; otherwise every planning has fresh inverses."""
    compact = False
    """Whether it makes the features that it needs from the states: samples then come without phi, `target` and `ahead`
    count those that ended an episode, and the regressions are made afresh from what it holds."""
    errors: Array
    """(H,) how far the targets of each step can be from those of all samples."""
    certificate: Any = None
    """What these errors add up to over the steps played, ()."""
    spans: Array
    """(H,) the largest difference of two values of a step, where there is either."""
    kernels: Any = None
    """Planning as kernels of a GPU, where there are any: see `agents/kernels.py`."""
    inverting: Any = None
    """The same of fresh inverses and what follows from them."""

    def __init__(self, parts: Parts) -> None:
        self.horizon, self.ridge, self.w, self.exploration = parts

    @abstractmethod
    def add(self, h: int, sample: Sample) -> None:
        """One sample of step h."""

    @abstractmethod
    def clear(self, runs: Any = ...) -> None:
        """Drop all samples. Q stays as it is: it goes on acting until its step is planned again."""

    @abstractmethod
    def target(self, h: int) -> Any:
        """z_h = sum_i phi_i max_a Q(s'_i, a) with the Q that follows step h, (*batch, d)."""

    @abstractmethod
    def greedy_target(self, h: int, w: Any) -> Any:
        """The same with Q = min(phi'w, cap), for one agent: weights w (d,) of the following step, no exploration."""

    def ahead(self, h: int) -> tuple[Any, Any]:
        """sum discount V and sum (discount V)^2 + 2 r discount V over the samples of step h that `target` counts."""
        raise InvalidParameter(f"lam='auto' does not work with {type(self).__name__.lower()} as storage.")

    def moments(self, h: int) -> Moments:
        """What the regression of step h rests on."""
        return self.exploration.moments(h, *(self.ahead(h) if self.horizon.leads_on(h) else (0.0, 0.0)))

    def bytes_after(self, samples: int) -> int:
        """Bytes once that many samples per regression are held."""
        return self.nbytes

    def fade(self, factor: float) -> None:
        """Let every sample so far count `factor` times as much, for one agent."""
        raise InvalidParameter(f"The samples of {type(self).__name__.lower()} as storage cannot fade.")

    def restart(self, mask: BoolArray) -> None:
        """The regressions in `mask` start from nothing: what was derived from their inverses must follow."""
        self.refresh(mask)

    def refresh(self, mask: BoolArray) -> None:
        """The inverses in `mask` have been made afresh: what was derived from them must follow."""

    def rescale(self, factors: Array) -> None:
        """The forms of every step, where they are kept, are to be kept times these factors, (H,)."""

    def begin(self) -> None:
        """A planning begins; Lambda and its inverse are up to date."""

    def sweep(self, h: int, v: Any) -> None:
        """Renew the values of Q_h after w_h and Lambda changed; v is that of `downdate`, None after fresh inverses."""

    def forget(self) -> None:
        """The planning is over: drop what is only kept meanwhile."""

    def best_actions(self, h: int, state: State) -> Any:
        """Which actions share the largest Q_h in `state`, (A,)."""
        return self.exploration.best(self.q_values(h, state))

    def played(self, h: int, state: State, action: int) -> None:
        """An action was played with Q_h."""

    def off(self, h: int, form: float) -> float:
        """What the error of a step does to its value: 2 E_h |phi| in the norm of Lambda^-1, or all it can be worth."""
        found: float = 2 * float(self.errors[0 if self.horizon.discounted else h]) * form**0.5
        return min(found, float(self.spans[h]))

    def diagnostics(self) -> dict[str, float]:
        """What it has to tell of the run so far."""
        return {}

    @abstractmethod
    def q_values(self, h: int, state: State) -> Any:
        """Q_h(state, .), (*batch, A)."""

    @abstractmethod
    def best_table(self, h: int) -> Any:
        """Which actions share the largest Q_h in every state, (*batch, A, S)."""

    def prepare(self, sample: Sample) -> None:
        """Before anyone looks at a sample: phi in the precision in which it is kept, or what stands for it."""

    def gram(self, g: int) -> Array:
        """sum phi phi' over all samples of regression g, (d, d) or in blocks, where Lambda is made from it."""
        raise NotImplementedError(f"{type(self).__name__} does not hold its samples.")


class RowStorage(Storage):
    """Rows of features: psi(s), (p,), where phi(s, a) is psi(s) in the block of action a, else phi(s, .), (A, d)."""

    keeps_samples = incremental = False
    compact = True
    _passing: ClassVar = ("_acted",)

    def __init__(self, parts: Parts, features: FeatureMap) -> None:
        super().__init__(parts)
        self.features, self.blocks, self.A = features, block_features(features), features.A
        self._acted: tuple[Any, Array] = None, np.zeros(0)  # the last state that Q was asked for, and its row

    def rows(self, states: Any) -> Array:
        """What is computed once for each state, (n, p) or (n, A, d)."""
        return self.blocks.psi(states) if self.blocks else self.features.batch(states)

    def products(self, rows: Array, vector: Array) -> Array:
        """phi(s, a)'x for every row and action, (n, A)."""
        return rows @ vector.reshape(self.A, -1).T if self.blocks else rows @ vector

    def forms(self, rows: Array, inverse: Array) -> Array:
        """phi(s, a)' Lambda^-1 phi(s, a) for every row and action, (n, A), with Lambda^-1 in blocks (blocks, p, p)."""
        if not self.blocks:
            return quadratic_forms(rows, inverse[0])
        if len(rows) == 1:  # one state to act in: one product for all actions
            return np.asarray(np.abs(inverse @ rows[0] @ rows[0]))[None]
        found = np.empty((len(rows), self.A))
        for a, block in enumerate(inverse):
            np.einsum("np,np->n", rows @ block, rows, out=found[:, a])
        np.abs(found, out=found)
        return found

    def prepare(self, sample: Sample) -> None:
        acted, rows = self._acted
        if acted is not sample.state:
            rows = self.rows(np.asarray(sample.state)[None])
        rows = rows[0]
        sample.phi = rows if self.blocks else rows[sample.action]
        if not all_finite(sample.phi):
            raise InvalidData(f"Features of state {sample.state!r} must be finite.")

    def q_of(self, h: int, rows: Array) -> Array:
        """Q_h of every row and action, (n, A)."""
        explore = self.exploration
        products = stacked([self.products(rows, vector) for vector in explore.vectors(h)])
        inverse = self.ridge.Lambda_inv[self.horizon.group(h)]
        q: Array = explore.q(h, products, self.forms(rows, inverse) if explore.keeps_forms else np.zeros(0))
        return q

    def q_values(self, h: int, state: State) -> Array:
        rows = self.rows(np.asarray(state)[None])
        self._acted = state, rows
        q: Array = self.q_of(h, rows)[0]
        return q

    def best_table(self, h: int) -> BoolArray:
        S = getattr(self.features, "S", None)
        if S is None:
            raise InvalidData("A policy for all states needs finite states.")
        best: BoolArray = self.exploration.best(self.q_of(h, self.rows(np.arange(S))), axis=-1)
        return np.ascontiguousarray(best.T)


def block_features(features: FeatureMap) -> BlockFeatures | None:
    """The map itself, where phi(s, a) is psi(s) in the block of action a."""
    inner = features.inner if isinstance(features, CheckedFeatures) else features
    return inner if isinstance(inner, BlockFeatures) else None


def group_blocks(features: FeatureMap) -> int:
    """Blocks of Lambda."""
    return features.A if block_features(features) else 1
