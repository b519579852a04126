"""The linear MDP as data, and whether it is one. No Gymnasium here: planning and the batched engine need only this."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from linmdp.errors import InvalidData, check_choice, check_number
from linmdp.features.bilinear import BilinearFeatures
from linmdp.features.tabular import TableFeatures
from linmdp.types import Array, Fields, Task

STARTS = ("fixed", "uniform", "adversarial")


@dataclass(frozen=True, kw_only=True, eq=False)
class LinearModel:
    """P_h(s' | s, a) = <phi(s, a), mu_h(s')> and r_h(s, a) = <phi(s, a), theta_h>, on finite states.

    This is what an agent may NOT know. A model whose dynamics do not depend on h holds one theta and one mu,
    seen H times through a view.

    Attributes
    ----------
    features : phi, (S, A, d), as a table or, where actions are many, as a product
    theta : (H, d)
    mu : (H, d, S)
    noise : standard deviation of the Gaussian noise on each reward, which is then clipped to `reward_range`
    start : "fixed" (state 0), "uniform", or "adversarial" (the state where the current policy loses most)
    state_fields, action_names : what states and actions mean, as in `Task`
    S, A, d, H : numbers of states, actions, features and steps
    """

    name: str
    features: TableFeatures | BilinearFeatures
    theta: Array
    mu: Array
    noise: float = 0.0
    reward_range: tuple[float, float] = (0.0, 1.0)
    start: str = "fixed"
    state_fields: Fields = ()
    action_names: tuple[str, ...] = ()
    S: int = field(init=False, repr=False)
    A: int = field(init=False, repr=False)
    d: int = field(init=False, repr=False)
    H: int = field(init=False, repr=False)

    def __post_init__(self) -> None:
        H, d = self.theta.shape
        vars(self).update(S=int(self.features.S), A=int(self.features.A), d=int(self.features.d), H=int(H))
        if self.mu.shape != (H, d, self.S) or d != self.features.d:
            raise InvalidData(
                f"mu of {self.name} must have shape (H, d, S) = {(H, self.features.d, self.S)}. Got {self.mu.shape}."
            )
        if not (np.isfinite(self.theta).all() and np.isfinite(self.mu).all()):
            raise InvalidData(f"theta and mu of {self.name} must be finite.")
        check_number(self.name, "noise", self.noise, low=0.0)
        check_choice(self.name.partition(":")[0], "start", self.start, STARTS)

    @cached_property
    def task(self) -> Task:
        """What an agent may know of it."""
        return Task(
            S=self.S,
            A=self.A,
            d=self.d,
            H=self.H,
            reward_range=self.reward_range,
            features=self.features,
            stationary=self.mu.strides[0] == self.theta.strides[0] == 0,
            state_fields=self.state_fields,
            action_names=self.action_names,
        )

    @cached_property
    def mu_cdf(self) -> Array:
        """Sums of mu over the states, (H, d, S): the distribution function of s' is linear in phi, too."""
        if self.mu.strides[0] == 0:
            return np.broadcast_to(self.mu[0].cumsum(axis=-1), self.mu.shape)
        return np.cumsum(self.mu, axis=-1)

    @cached_property
    def _block(self) -> int:
        return math.isqrt(self.S - 1) + 1

    @cached_property
    def _outline(self) -> Array:
        """theta, and `mu_cdf` at the last state of each block of about sqrt(S), (H, d, 1 + blocks)."""
        last = np.minimum(np.arange(self._block - 1, self.S - 1 + self._block, self._block), self.S - 1)
        steps = 1 if self.mu.strides[0] == self.theta.strides[0] == 0 else self.H
        outline = np.concatenate((self.theta[:steps, :, None], self.mu_cdf[:steps][:, :, last]), axis=2)
        return np.broadcast_to(outline, (self.H, *outline.shape[1:]))

    def move(self, h: int, phi: Array, u: float) -> tuple[float, int]:
        """The mean reward of phi, and the next state: where its distribution function passes u, uniform in [0, 1).

        It is searched for in two stages, first among blocks and then within one, because a function of S values made
        of d others is as much memory to read as the rest of a step.
        """
        outline = phi @ self._outline[h]
        ends = outline[1:]
        level = u * ends[-1]
        first = min(int(ends.searchsorted(level, side="right")), len(ends) - 1) * self._block
        within = phi @ self.mu_cdf[h, :, first : first + self._block]
        return float(outline[0]), min(first + int(within.searchsorted(level, side="right")), self.S - 1)


def stationary_model(H: int, theta: Array, mu: Array, **others: Any) -> LinearModel:
    """A model of H equal steps, theta (d,) and mu (d, S), without a copy."""
    steps, measures = np.broadcast_to(theta, (H, *theta.shape)), np.broadcast_to(mu, (H, *mu.shape))
    return LinearModel(theta=steps, mu=measures, **others)


class Chance:
    """The randomness of an environment, one stream for each purpose.

    Each stream is consumed in the order of the episodes, so drawing many episodes at once gives the same numbers as
    drawing them one by one: a run in lockstep with others sees what it would see alone.
    """

    def __init__(self, generator: np.random.Generator) -> None:
        self._start, self._noise, self._move = generator.spawn(3)

    def state(self) -> list[Any]:
        """The state of the streams, as plain data."""
        return [stream.bit_generator.state for stream in (self._start, self._noise, self._move)]

    def restore(self, state: Sequence[Any]) -> None:
        """Continue from a saved `state`."""
        for stream, saved in zip((self._start, self._noise, self._move), state, strict=True):
            stream.bit_generator.state = saved

    def start(self, S: int) -> int:
        """A uniformly random state."""
        return int(self._start.integers(S))

    def episodes(self, n: int, H: int) -> tuple[Array, Array]:
        """Standard normal noise and uniform draws for the next n episodes, (n, H) each."""
        return self._noise.standard_normal((n, H)), self._move.random((n, H))


TOLERANCE = 1e-8


class Finding(NamedTuple):
    """One condition: whether it holds, and what was measured."""

    ok: bool
    text: str


def check_linear(model: LinearModel) -> list[Finding]:
    """Every condition of a linear MDP, in the order of the definition."""
    low, high = model.reward_range
    table = model.features.table()
    sums = np.einsum("sad,hd->hsa", table, model.mu.sum(axis=-1))
    off = float(np.abs(sums - 1).max())
    least = _least_probability(model)
    rewards = np.einsum("sad,hd->hsa", table, model.theta)
    norm_phi = float(np.linalg.norm(table, axis=-1).max())
    norm_theta = float(np.linalg.norm(model.theta, axis=-1).max())
    norm_mu = float(np.linalg.norm(np.abs(model.mu).sum(axis=-1), axis=-1).max())
    root_d = math.sqrt(model.d)
    slack = 1 + TOLERANCE
    most = root_d * slack
    r_ok = bool(rewards.min() >= low - TOLERANCE and rewards.max() <= high + TOLERANCE)
    return [
        Finding(
            off <= TOLERANCE, f"probabilities sum to 1 for all states, actions and steps (off by at most {off:.1e})"
        ),
        Finding(least >= -TOLERANCE, f"no probability is negative (the least is at least {least:.1e})"),
        Finding(r_ok, f"mean rewards lie in [{low:g}, {high:g}] (range: {rewards.min():.4g} to {rewards.max():.4g})"),
        Finding(norm_phi <= slack, f"features have norm at most 1 (largest: {norm_phi:.4g})"),
        Finding(norm_theta <= most, f"theta_h has norm at most sqrt(d) = {root_d:.4g} (largest: {norm_theta:.4g})"),
        Finding(norm_mu <= most, f"|mu_h|(S) has norm at most sqrt(d) = {root_d:.4g} (largest: {norm_mu:.4g})"),
    ]


def _least_probability(model: LinearModel) -> float:
    """The least P_h(s' | s, a); where phi and mu have no negative entry, a lower bound without the product."""
    if model.features.columns.min() >= 0 and model.mu.min() >= 0:
        return 0.0
    rows: Array = model.features.columns.T
    return min(
        float((chunk @ model.mu[h]).min())
        for h in range(model.H)
        for chunk in np.array_split(rows, max(1, len(rows) // 4096))
    )
