"""When to plan, when to store, when to forget: a schedule is asked once per episode, before planning.

Episodes count from 1, as in the paper.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Iterable, Sequence
from typing import Any, ClassVar, NamedTuple

import numpy as np

from linmdp.agents.afresh import Afresh
from linmdp.agents.backend import NUMPY, Backend, imagining
from linmdp.agents.base import Component
from linmdp.agents.ridge import Ridge, downdate
from linmdp.errors import check_number
from linmdp.types import Array, BoolArray, State


class Power(NamedTuple):
    """A number of episodes that grows with K: floor(scale K^exponent), at least `least`.

    Where K is not known it is doubled whenever it is reached: K is the power of two from the current episode on,
    so the number is at most 2^exponent times what it would be had the run been meant to end there.
    """

    exponent: float
    K: int | None
    least: int
    scale: float = 1.0

    def at(self, k: int) -> int:
        """Its value in episode k."""
        K = self.K if self.K is not None else 1 << max(k - 1, SHORTEST - 1).bit_length()
        # 1000 is 1000, not 999.9999999999998, before it is rounded down
        return max(self.least, math.floor(round(self.scale * math.pow(K, self.exponent), 9)))


SHORTEST = 16
"""The first K that is assumed where none is known."""


def episodes_at(number: int | Power, k: int) -> int:
    """A number of episodes that may grow, in episode k."""
    return number.at(k) if isinstance(number, Power) else number


class Decision(NamedTuple):
    """`reset`: drop all samples first. `plan`, `store` (G,): which regressions are planned, and which get samples.

    That of a schedule which serves several runs has an axis for them: (B,) and (G, B).
    """

    reset: Any
    plan: BoolArray
    store: BoolArray


class Step(NamedTuple):
    """A transition as an agent has seen it, `times` over."""

    h: int
    state: State
    action: int
    reward: float
    next_state: State
    terminated: bool
    times: float = 1.0


class Schedule(Component):
    """The base of all schedules; one that watches the samples overrides `watch` and `end_episode`."""

    eager: bool = False
    """Whether it delays planning only to save time, so that planning before its turn does no harm."""
    reads_features: ClassVar[bool] = True
    """Whether `watch` looks at phi; else it may be None."""
    batched: ClassVar[bool] = True
    """Whether runs in lockstep can follow it: it looks at no single step (`saw`), and stores all or none (`admits`)."""
    by_growth: ClassVar[bool] = False
    """Whether it stores always, and plans all steps of a run where some `grown` is over `log_eta`: then a GPU can tell
    by itself how long each run plays on."""
    joins: ClassVar[bool] = False
    """Whether there is one for B runs in lockstep, see `joined`; otherwise each run has its own."""
    _derived: ClassVar[tuple[str, ...]] = ("_all", "_none")

    def __init__(self, G: int) -> None:
        self._all, self._none = np.ones(G, dtype=np.bool_), np.zeros(G, dtype=np.bool_)
        self._learn_all = Decision(reset=False, plan=self._all, store=self._all)

    @classmethod
    def joined(cls, schedules: Sequence[Any], backend: Backend) -> Any:
        """One schedule for B runs, with arrays that have an axis for the runs.

        Its decisions have that axis, too; `planned` gets the runs, and `moved` what all of them saw.
        """
        raise NotImplementedError

    def seed(self, rng: np.random.Generator) -> None:
        """Take what randomness it needs from the generator of the run; called until the first planning is over."""

    @abstractmethod
    def begin_episode(self) -> Decision:
        """What to do in the episode that begins."""

    def learn(self, which: BoolArray) -> Decision:
        """Plan these regressions, and store their samples."""
        if which is self._all:
            return self._learn_all
        return Decision(reset=False, plan=which, store=which)

    def planned(self) -> None:
        """Everything has just been planned, whether it was asked for or not."""

    def watch(self, g: int, phi: Any) -> None:
        """phi(s, a) of a step of this episode that belongs to regression g, stored or not."""

    def saw(self, g: int, step: Step) -> None:
        """A step of this episode that belongs to regression g, stored or not."""

    def recalled(self) -> Iterable[Step]:
        """Steps that are stored again after a reset, of one agent."""
        return ()

    def watch_all(self, phi: Array) -> None:
        """The same of all steps of an episode, (H, d)."""
        for h in range(len(phi)):
            self.watch(h if len(self._all) > 1 else 0, phi[h])

    def bind(self, ridge: Ridge | Afresh) -> None:
        """Share the regressions of a planner."""

    def admits(self, g: int, phi: Any) -> bool:
        """Whether a sample of regression g of which only phi is known may be stored, where `store` says that it is."""
        return True

    def diagnostics(self) -> dict[str, float]:
        """What it has to tell of the run so far."""
        return {}

    def end_episode(self, earned: float = 0.0) -> None:
        """The episode is over, and has earned that much reward."""

    def most_samples(self, episodes: int) -> int:
        """The most samples that one step holds at once within that many episodes; all, where none is forgotten."""
        return episodes

    def most_held(self, episodes: int, per_episode: int) -> int:
        """The same of a regression that an episode brings `per_episode` samples, at most."""
        return self.most_samples(episodes) * per_episode

    def plannings(self, episodes: int) -> int:
        """How often it plans within that many episodes, about."""
        return episodes


class Always(Schedule):
    """Algorithm 1: learn in every episode, forget nothing."""

    reads_features: ClassVar = False

    def begin_episode(self) -> Decision:
        return self.learn(self._all)


class Growing(Schedule):
    """Plan when the number of episodes, or that of their steps, has grown by a fraction; store always."""

    eager = joins = True
    reads_features: ClassVar = False
    _counters: ClassVar[tuple[str, ...]] = ("k", "due", "steps")

    def __init__(self, G: int, fraction: float, *, by_steps: bool = False) -> None:
        super().__init__(G)
        self.fraction, self.by_steps, self.k, self.due, self.steps = fraction, by_steps, 0, 0, 0

    @classmethod
    def joined(cls, schedules: Sequence[Any], backend: Backend) -> Any:
        return GrowingTogether(schedules, backend)

    def take_run(self, batched: Any, i: int) -> None:
        self.k, self.due, self.steps = batched.k, int(batched.dues[i]), batched.k * len(self._all)

    def begin_episode(self) -> Decision:
        self.k += 1
        now = self.steps + 1 if self.by_steps else self.k
        return Decision(reset=False, plan=self._all if now > self.due else self._none, store=self._all)

    def watch(self, g: int, phi: Any) -> None:
        self.steps += 1

    def watch_all(self, phi: Array) -> None:
        self.steps += len(phi)

    def planned(self) -> None:
        before = self.steps if self.by_steps else self.k - 1
        self.due = before + max(1, int(self.fraction * before))

    def plannings(self, episodes: int) -> int:
        count = k = 0
        while k < episodes:
            count, k = count + 1, k + max(1, int(self.fraction * k))
        return count


class GrowingTogether(Growing):
    """`Growing` for several runs in lockstep with a regression per step, each with a fraction and a turn of its own.

    Attributes
    ----------
    fractions, lengths, dues : (B,) of each run; what an episode adds to the count of episodes, or of their steps
    """

    def __init__(self, schedules: Sequence[Growing], backend: Backend) -> None:
        super().__init__(len(schedules[0]._all), 0.0)
        self.backend, self.fractions = backend, np.array([s.fraction for s in schedules])
        self.lengths = np.array([len(s._all) if s.by_steps else 1 for s in schedules])
        self.dues = np.zeros(len(schedules), dtype=np.int64)

    def begin_episode(self) -> Decision:
        self.k += 1
        plan = np.tile((self.k - 1) * self.lengths + 1 > self.dues, (len(self._all), 1))
        return Decision(reset=np.zeros_like(plan[0]), plan=plan, store=np.ones_like(plan))

    def planned(self, runs: Any = ...) -> None:
        runs = self.backend.host(runs)
        before = (self.k - 1) * self.lengths[runs]
        self.dues[runs] = before + np.maximum(1, (self.fractions[runs] * before).astype(np.int64))

    def moved(self, phi: Any) -> None:
        """It does not look at features."""


class Alert(Growing):
    """Restart when the task seems to have changed, and plan at once; else plan as `Growing`, or always (fraction 0)."""

    joins: ClassVar = False

    def __init__(self, G: int, fraction: float, *, by_steps: bool = False) -> None:
        super().__init__(G, fraction, by_steps=by_steps)
        self.eager = fraction > 0

    def begin_episode(self) -> Decision:
        kept = self.kept_steps()
        if kept is not None:
            self.k, self.due, self.steps = 0, 0, kept
        return super().begin_episode()._replace(reset=kept is not None)

    def kept_steps(self) -> int | None:
        """Where the task has changed, how many steps are stored again (`recalled`); else None."""
        return None

    @abstractmethod
    def forget(self) -> None:
        """Begin anew with this episode, whatever the steps say."""


class Proxy(Schedule):
    """A schedule that follows the matrix of all data, L = lam I + sum phi phi', learned or not.

    Attributes
    ----------
    L_inv : (G, *batch, d, d); `batch` is that of several runs in lockstep, see `joined`
    """

    _arrays: ClassVar[tuple[str, ...]] = ("L_inv", "_phi")
    _derived: ClassVar[tuple[str, ...]] = (*Schedule._derived, "lam")

    def __init__(self, G: int, d: int, lam: Any, *, batch: tuple[int, ...] = (), backend: Backend = NUMPY) -> None:
        super().__init__(G)
        self.lam, self.backend = backend.array(np.broadcast_to(lam, batch)), backend
        self.L_inv, self._phi = backend.zeros((G, *batch, d, d)), backend.zeros((G, *batch, d))
        if not imagining():
            self.restart_proxy()

    def restart_proxy(self) -> None:
        """Let L start from lam I."""
        self.L_inv[:] = self.backend.array(np.eye(self.L_inv.shape[-1])) / self.lam[..., None, None]

    def watch(self, g: int, phi: Array) -> None:
        if len(self._phi) == 1 and self._phi.any():  # one proxy for all steps of an episode: each moves it
            self._move()
        self._phi[g] = phi

    def watch_all(self, phi: Array) -> None:
        if len(self._phi) == 1:
            super().watch_all(phi)
        else:
            self._phi[:] = phi

    def end_episode(self, earned: float = 0.0) -> None:
        self._move()

    def _move(self) -> None:
        self.moved(self._phi)
        self._phi[:] = 0.0

    def working_bytes(self, samples: int) -> int:
        return int(self.L_inv.nbytes + 3 * self._phi.nbytes + self._phi[0].nbytes)

    def moved(self, phi: Any) -> None:
        """L grows by phi phi', (G, *batch, d); see `downdate`."""
        downdate(self.L_inv, phi)


def check_exponent(owner: str, parameter: str, exponent: float) -> float:
    """An exponent of K, in (0, 1]."""
    return check_number(owner, parameter, exponent, low=0.0, high=1.0, open_low=True)
