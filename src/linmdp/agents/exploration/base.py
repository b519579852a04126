"""What an exploration is: how rows of features become optimistic values, and nothing else."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np

from linmdp.agents.afresh import Afresh
from linmdp.agents.backend import NUMPY, Backend
from linmdp.agents.base import Component, tie_tolerance
from linmdp.agents.horizon import Horizon
from linmdp.agents.ridge import Ridge, quadratic_forms
from linmdp.types import Array, BoolArray

if TYPE_CHECKING:
    from linmdp.agents.memory.base import Sample


class Moments(NamedTuple):
    """The samples of a regression: how many, the sum of their targets, and that of their squares, (*batch) each."""

    n: Any
    total: Any
    squares: Any


class Exploration(Component):
    """The optimistic value of a row x at step h is min(`raised`, cap_h).

    A storage multiplies its rows by the `vectors` of a step and hands the products to `raised`, with the quadratic
    forms x' Lambda^-1 x of the rows where `keeps_forms`: the product is one pass over all rows, and the rest a few
    operations in place.

    Attributes
    ----------
    caps : (H,), or (H, *batch), the largest value of each planned step, the last ones of those of the episode
    beta : (H, *batch) the width of the exploration at each step
    terminal, ended_value : (H,) what an episode that ends is worth after each step, and in it
    per_step : vectors per step, without v
    keeps_forms : whether the quadratic forms of all rows are needed
    """

    keeps_forms: ClassVar[bool] = False
    plain: ClassVar[bool] = False
    """Whether its formula is that of `Bonus`: a GPU has it as a kernel, and forms may be kept times `scale`."""
    scaled: bool = False
    """Whether they are, and v likewise."""
    adaptive: ClassVar[bool] = False
    """Whether it chooses lam and its widths from the data (see `fitted`), and counts values from their caps."""
    incremental: ClassVar[bool] = True
    """Whether its forms follow rank-one updates of Lambda^-1; otherwise every planning has fresh inverses."""
    clipped: ClassVar[bool] = False
    """Whether no value is below the least that the steps left can pay."""
    inflate: float = 0.0
    """The share of the error of a bounded storage that widens the exploration: see `widen`."""
    offset: float = 0.0
    """What rewards are counted from, where values are counted from their caps."""
    batched: ClassVar[bool] = False
    """Whether it can serve B runs in lockstep, with arrays that have an axis for the runs."""
    on_gpu: ClassVar[bool] = False
    """Whether these runs may be on a GPU."""
    per_step: int = 1
    _derived: ClassVar[tuple[str, ...]] = ("caps", "beta", "terminal", "ended_value")

    def __init__(self, horizon: Horizon, caps: Array, beta: Any, backend: Backend = NUMPY) -> None:
        self.horizon, self.backend = horizon, backend
        caps = caps[-horizon.H :]
        self.caps = backend.array(caps)
        self.change_beta(beta)
        self.tie = tie_tolerance(caps)
        self.largest = np.maximum.reduce if backend.is_numpy else backend.xp.amax
        self.terminal: Array = np.zeros(horizon.H)
        self.ended_value: Array = np.zeros(horizon.H)

    def bind(self, ridge: Ridge | Afresh, w: Any) -> None:
        """Share the regressions and the weights w (levels, *batch, d) of a planner."""
        self.ridge, self.w = ridge, w

    def scale(self, h: int, runs: Any = ...) -> Any:
        """What the forms of step h are kept times, (*batch)."""
        return 1.0

    def seed(self, generators: Sequence[np.random.Generator]) -> None:
        """Take what randomness it needs from the generators of the runs, once, before the first episode."""

    def change_beta(self, beta: Any) -> None:
        """Another width, from the next planning on: a number or (H,), or (H, *batch) for several runs."""
        per_step = beta if np.ndim(beta) > 1 else np.broadcast_to(beta, (self.horizon.H,))
        self.beta = self.backend.array(np.array(per_step))

    def begin(self) -> None:
        """A planning begins; Lambda^-1 is up to date."""

    def planned(self, h: int, mask: BoolArray | None) -> None:
        """w[h] has just been solved, for the runs in `mask` (None: for all)."""

    def widen(self, h: int, error: float) -> None:
        """Add a share of the error of the regression of step h, which has just been solved, to its width."""
        raise NotImplementedError(f"{type(self).__name__} has no width.")

    @abstractmethod
    def vectors(self, h: int, v: Any = None) -> Any:
        """What rows are multiplied by, n times (*batch, d); v is that of `downdate`, if Lambda grew by one sample."""

    @abstractmethod
    def raised(self, h: int, products: Any, forms: Any) -> Any:
        """Optimistic values before the cap, from the products (n, *batch, rows), which are used up.

        `forms` (*batch, rows) are brought up to date in place where v was among the vectors.
        """

    def seen(self, g: int, sample: Sample) -> None:
        """A sample of regression g."""

    def seen_together(self, phi: Any, rewards: Any, store: Any) -> None:
        """An episode of B runs in lockstep: phi (H, B, d), rewards (H, B), and 1 where they are stored, (G, B)."""

    def fade(self, factor: float) -> None:
        """Every sample so far counts `factor` times as much."""

    def forget(self, runs: Any = ...) -> None:
        """All samples have been dropped; where it is adaptive, those of some runs in lockstep."""

    def renew(self) -> None:
        """Inverses have been made afresh."""

    def metric(self, g: int) -> Any:
        """The matrix of the quadratic forms of regression g, (*batch, d, d)."""
        return self.ridge.inverse(g)

    def ended_target(self, h: int) -> Any:
        """sum phi V over the terminal samples of step h, (d,), where it is adaptive."""

    def moments(self, h: int, total: Any, squares: Any) -> Moments:
        """What the regression of step h rests on, where it is adaptive; see `Storage.ahead`."""
        raise NotImplementedError

    def fitted(self, h: int, w: Any, moments: Moments, rss: Any, mask: Any) -> None:
        """Step h has just got weights w (*batch, d), where it is adaptive; `rss` (*batch): its squared residuals.

        `mask` (*batch): the runs for which that counts; None: all.
        """

    def end(self, runs: Any = True) -> None:
        """The planning (of those runs, (*batch)) is over, where it is adaptive."""

    @property
    def lam(self) -> Any:
        """The ridge parameter of the next planning, (*batch), where it is adaptive."""
        return self.ridge.lam

    def q(self, h: int, products: Any, forms: Any) -> Any:
        """Optimistic values."""
        q = self.raised(h, products, forms)
        return self.backend.xp.minimum(q, meeting(self.caps[h], q))

    def forms(self, h: int, rows: Array) -> Array:
        """The quadratic forms of rows (..., d) at step h, for one agent; none where they are not needed."""
        if not self.keeps_forms:
            return np.zeros(0)
        return quadratic_forms(rows, self.metric(self.horizon.group(h)))

    def q_of_rows(self, h: int, rows: Array, forms: Array | None = None) -> Array:
        """Optimistic values of rows (n, d) at step h, (n,), for one agent."""
        q: Array = self.q(h, stacked(self.vectors(h)) @ rows.T, self.forms(h, rows) if forms is None else forms)
        return q

    def best(self, q: Any, axis: int = 0) -> Any:
        """Which actions share the largest Q along `axis`."""
        return q >= self.largest(q, axis=axis, keepdims=True) - self.tie


def meeting(numbers: Any, values: Any) -> Any:
    """A number for all, or one for each run, (*batch), in a shape that meets values (*batch, ...)."""
    return numbers if numbers.ndim == 0 else numbers.reshape(numbers.shape + (1,) * (values.ndim - numbers.ndim))


def stacked(vectors: Sequence[Array], dtype: str = "float64") -> Array:
    """Arrays of one shape as rows of one array; faster than `np.stack`."""
    rows = np.empty((len(vectors), *vectors[0].shape), dtype=dtype)
    for i, vector in enumerate(vectors):
        rows[i] = vector
    return rows
