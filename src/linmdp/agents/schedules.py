"""When to learn, and when to forget: all that sets the three algorithms apart.

A schedule is asked once an episode, before planning. Episodes count from 1, as in the paper.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from typing import ClassVar, NamedTuple

import numpy as np

from linmdp.agents.base import Component
from linmdp.agents.regression import downdate
from linmdp.errors import check_number
from linmdp.types import Array, BoolArray


class Power(NamedTuple):
    """A number of episodes that grows with K: floor(K^exponent), at least `least`.

    Where K is not known it is doubled whenever it is reached: K is the power of two from the episode of the moment on,
    so the number is at most 2^exponent times what it would be had the run been meant to end there.
    """

    exponent: float
    K: int | None
    least: int

    def at(self, k: int) -> int:
        """Its value in episode k."""
        K = self.K if self.K is not None else 1 << max(k - 1, SHORTEST - 1).bit_length()
        # 1000 is 1000, not 999.9999999999998, before it is rounded down
        return max(self.least, math.floor(round(math.pow(K, self.exponent), 9)))


SHORTEST = 16
"""The first K that is assumed where none is known."""


def episodes_at(number: int | Power, k: int) -> int:
    """A number of episodes that may grow, in episode k."""
    return number.at(k) if isinstance(number, Power) else number


class Decision(NamedTuple):
    """`learn` (H,): which steps are planned and store this episode's sample. `reset`: drop all samples first."""

    reset: bool
    learn: BoolArray


class Schedule(Component):
    """The base of all schedules; one that watches the samples overrides `watch` and `end_episode`."""

    def __init__(self, H: int) -> None:
        self._all, self._none = np.ones(H, dtype=np.bool_), np.zeros(H, dtype=np.bool_)

    @abstractmethod
    def begin_episode(self) -> Decision:
        """What to do in the episode that begins."""

    def watch(self, h: int, phi: Array) -> None:
        """phi(s_h, a_h) of this episode, learned or not."""

    def end_episode(self) -> None:
        """The episode is over."""

    @abstractmethod
    def most_samples(self, episodes: int) -> int:
        """The most samples that one step holds at once within that many episodes."""


class Always(Schedule):
    """Algorithm 1: learn in every episode, forget nothing."""

    def begin_episode(self) -> Decision:
        return Decision(reset=False, learn=self._all)

    def most_samples(self, episodes: int) -> int:
        return episodes


class FixedPhases(Schedule):
    """Algorithm 2: phases of `length` episodes; the last one of each only resets, and the old Q acts."""

    _counters: ClassVar = ("k", "K_0")

    def __init__(self, H: int, length: int | Power) -> None:
        super().__init__(H)
        self._length = length
        self.k = self.K_0 = 0  # line 4

    @property
    def length(self) -> int:
        """Episodes of the phase of the moment."""
        return episodes_at(self._length, max(self.k, 1))

    def begin_episode(self) -> Decision:
        self.k += 1
        if self.k < self.K_0 + self.length:  # line 6
            return Decision(reset=False, learn=self._all)
        self.K_0 = self.k  # lines 17 to 19
        return Decision(reset=True, learn=self._none)

    def most_samples(self, episodes: int) -> int:
        return min(episodes_at(self._length, episodes) - 1, episodes)


class AdaptiveIntervals(Schedule):
    """Algorithm 3: learn while the inverse of the proxy L still moves, within a budget.

    LEARN asks for the largest distance between two of L_{k-m}^-1, ..., L_k^-1. Each inverse is the one before less a
    rank-one matrix v v' (see `downdate`), so they only decrease, the farthest pair is the first and the last, and their
    difference is the sum of the last m of those v v'. Its Frobenius norm is that of the m x m Gram matrix of the v:
    m d numbers a step where the paper keeps m d^2, and no inverse is formed.

    Attributes
    ----------
    L_inv : (H, d, d)
    window : (H, m, d) the last m vectors v, as a ring
    learn_its : (H,) LearnIts; tot_its : TotIts, the same at every step because all steps reset together
    """

    _arrays: ClassVar = ("L_inv", "window", "learn_its", "_phi")
    _counters: ClassVar = ("tot_its", "seen", "resetting", "k")

    def __init__(
        self, H: int, d: int, *, lam: float, m: int, tau: float, budget: int | Power, length: float | Power, proxy: str
    ) -> None:
        super().__init__(H)
        self.lam, self.m, self.tau, self.budget, self.length, self.proxy = lam, m, tau, budget, length, proxy
        self.learn_its = np.zeros(H, dtype=np.int64)
        self._phi = np.zeros((H, d))
        self.window = np.zeros((H, m, d))
        self.L_inv = np.empty((H, d, d))
        self.tot_its = self.seen = self.resetting = self.k = 0
        self._restart_proxy()

    def begin_episode(self) -> Decision:
        self.k += 1
        length, budget = self._limits(self.k)
        self.resetting = int(self.tot_its >= length or bool((self.learn_its >= budget).any()))  # line 8
        if self.resetting:  # lines 22 and 23
            self.tot_its = 0
            self.learn_its[:] = 0
            if self.proxy == "phase":
                self._restart_proxy()
            return Decision(reset=True, learn=self._none)
        self.tot_its += 1  # line 9
        learn = self._learn()
        self.learn_its += learn  # line 11
        return Decision(reset=False, learn=learn)

    def _learn(self) -> BoolArray:
        """LEARN for every step, (H,): true while fewer than m+1 matrices are in the window."""
        if self.seen < self.m:
            return self._all
        gram = self.window @ self.window.transpose(0, 2, 1)
        moved: BoolArray = np.sqrt(np.einsum("hij,hij->h", gram, gram)) >= self.tau
        return moved

    def watch(self, h: int, phi: Array) -> None:
        if len(self._phi) == 1 and self._phi.any():  # one proxy for all steps of an episode: each moves it
            self.end_episode()
        self._phi[h] = phi

    def end_episode(self) -> None:
        if not (self.resetting and self.proxy == "phase"):  # the episode between two phases belongs to neither
            self.window[:, self.seen % self.m] = downdate(self.L_inv, self._phi)  # line 6
            self.seen += 1
        self._phi[:] = 0.0

    def _restart_proxy(self) -> None:
        self.seen = 0
        self.L_inv[:] = 0.0
        diagonal = np.arange(self.L_inv.shape[-1])
        self.L_inv[:, diagonal, diagonal] = 1 / self.lam

    def _limits(self, k: int) -> tuple[float, int]:
        """The longest phase and the budget, in episode k."""
        length = self.length.at(k) if isinstance(self.length, Power) else self.length
        return length, episodes_at(self.budget, k)

    def most_samples(self, episodes: int) -> int:
        length, budget = self._limits(episodes)
        return min(budget, math.ceil(length), episodes)


def largest_tau(m: int, d: int, lam: float) -> float:
    """No two inverses m episodes apart can differ by more: min(m, d) eigenvalues, each at most 1/lam."""
    return math.sqrt(min(m, d)) / lam


def check_exponent(owner: str, parameter: str, exponent: float) -> float:
    """An exponent of K, in (0, 1]."""
    return check_number(owner, parameter, exponent, low=0.0, high=1.0, open_low=True)
