"""What is measured of a run: time, on one BLAS thread, curves, diagnostics; and its result, if it was stopped, too."""

from __future__ import annotations

import math
import threading
import time
from collections import deque
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import numpy as np

from linmdp.agents.base import Agent, tie_tolerance
from linmdp.errors import InvalidData
from linmdp.results.curves import is_long, thinned
from linmdp.results.stats import mean_interval
from linmdp.results.verdict import NOTHING, UNPROVED
from linmdp.runner.progress import RECENT
from linmdp.types import Array, IntArray, MorePossible, RunResult

_lock = threading.Lock()
_limits: list[Any] = []
_inside = 0


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """The number is that of the whole process: the first to enter sets it, and the last to leave gives it back."""
    global _inside
    from threadpoolctl import threadpool_limits

    with _lock:
        if not _inside:
            _limits.append(threadpool_limits(1, user_api="blas"))
        _inside += 1
    try:
        yield
    finally:
        with _lock:
            _inside -= 1
            if not _inside:
                _limits.pop().restore_original_limits()


class Stopwatch:
    """CPU and wall time of what runs inside `with`, less what runs inside `paused()`."""

    def __init__(self) -> None:
        self.cpu = self.wall = 0.0

    def __enter__(self) -> None:
        self.cpu -= time.process_time()
        self.wall -= time.perf_counter()

    def __exit__(self, *error: object) -> None:
        self.cpu += time.process_time()
        self.wall += time.perf_counter()

    @property
    def cpu_so_far(self) -> float:
        """CPU time until now, while it runs."""
        return self.cpu + time.process_time()

    @contextmanager
    def paused(self) -> Iterator[None]:
        """Stop the watch inside `with`."""
        self.__exit__()
        try:
            yield
        finally:
            self.__enter__()


class CurveLog:
    """Rewards and gaps (V* - V^pi) of up to K episodes: of each, or beyond `LONG` episodes their sums between points.

    Attributes
    ----------
    rewards, gaps : (points, *shape) sums over the episodes after the point before, up to that point; zero beyond
    at : (points,) the last episode of each point, those of `thinned`; None where every episode is a point
    k : episodes so far
    recent : (reward, gap) of the last of them; fewer where a run was resumed
    """

    def __init__(self, episodes: int, shape: tuple[int, ...] = ()) -> None:
        self.at: IntArray | None = thinned(episodes) if is_long(episodes) else None
        points = episodes if self.at is None else len(self.at)
        self.rewards, self.gaps = np.zeros((points, *shape)), np.zeros((points, *shape))
        self.episodes, self.k = episodes, 0
        self.recent: deque[tuple[float | Array, float | Array]] = deque(maxlen=RECENT)

    @property
    def nbytes(self) -> int:
        """Bytes of the curves."""
        return self.rewards.nbytes + self.gaps.nbytes

    def add(self, reward: float | Array, gap: float | Array) -> None:
        """The next episode, of shape `shape` each."""
        place = self.k if self.at is None else self.at.searchsorted(self.k)
        self.rewards[place] += reward
        self.gaps[place] += gap
        self.recent.append((reward, gap))
        self.k += 1

    def last(self) -> tuple[Array, Array]:
        """Rewards and gaps of the last episodes, (n, *shape) each."""
        rewards, gaps = zip(*self.recent, strict=True) if self.recent else ((), ())
        return np.array(rewards), np.array(gaps)

    def points(self, k: int) -> int:
        """How many points k episodes have, the last of them perhaps still open."""
        return k if self.at is None or k == 0 else int(np.searchsorted(self.at, k - 1)) + 1

    def curves(self) -> tuple[Array, Array]:
        """Rewards and gaps of the k episodes, as their result holds them.

        A long run that was stopped has its points elsewhere than one that was meant to be that long: straight lines
        lie between them.
        """
        n = self.points(self.k)
        found = self.rewards[:n].copy(), self.gaps[:n].copy()
        if self.at is None or self.k == self.episodes:
            return found
        there, wanted = np.minimum(self.at[:n], self.k - 1), thinned(self.k)
        sums = (np.interp(wanted, there, np.cumsum(each)) for each in found)
        rewards, gaps = (np.diff(each, prepend=0.0) for each in sums)
        return rewards, gaps


MOST_EPISODES = 10**9
"""More than anyone runs."""

MANY = 10_000
"""With more actions than this only the first step of an episode is looked at: it takes the Q of all of them."""

SATURATED = 0.5
"""Above this fraction of Q values at the cap the run is called saturated."""


def probe_from(episodes: int) -> int:
    """The first episode that the probe looks at."""
    return episodes - max(1, episodes // 10)


class Probe:
    """Counts Q values at their cap, tied argmaxes and the actions played, for an agent that estimates Q."""

    def __init__(self, agent: Agent) -> None:
        self._agent = agent
        self._slack = 0.0 if agent.caps is None else tie_tolerance(agent.caps)
        self._acts = self._values = self._capped = self._ties = 0
        self._before = (0, 0)
        self._played = np.zeros(agent.task.A, dtype=np.int64)

    def begin(self) -> None:
        """The last tenth of the run begins."""
        self._before = (self._agent.updates, self._agent.resets)

    def count(self, h: int, state: Any, action: int) -> None:
        """One state on the way."""
        A = self._agent.task.A
        if self._agent.caps is None or A == 1 or (A > MANY and h):  # nothing believed, nothing to choose, too much
            return
        q, slack = self._agent.q_values(h, state), self._slack
        self._acts += 1
        self._values += len(q)
        self._capped += int((q >= self._agent.caps[h] - slack).sum())
        self._ties += int((q >= q.max() - slack).sum() > 1)
        self._played[action] += 1

    def state(self) -> dict[str, list[int]]:
        """What was counted so far, as plain data."""
        counts = [self._acts, self._values, self._capped, self._ties]
        return {"counts": counts, "before": list(self._before), "played": self._played.tolist()}

    def restore(self, state: dict[str, list[int]]) -> None:
        """Go on counting from there."""
        self._acts, self._values, self._capped, self._ties = map(int, state["counts"])
        updates, resets = map(int, state["before"])
        self._before = (updates, resets)
        self._played[:] = state["played"]

    @property
    def saturated(self) -> float:
        """Fraction of Q values at their cap."""
        return self._capped / self._values if self._values else 0.0

    @property
    def tied(self) -> float:
        """Fraction of states where several actions share the largest Q."""
        return self._ties / self._acts if self._acts else 0.0

    def findings(self, episodes: int) -> list[str]:
        """What a user should hear of it, in words."""
        played = np.flatnonzero(self._played)
        constant = int(played[0]) if len(played) == 1 and len(self._played) > 1 else None
        beta = getattr(self._agent, "beta_value", math.nan)
        updates, resets = self._agent.updates - self._before[0], self._agent.resets - self._before[1]
        idle = self._agent.may_stop_learning and updates == 0 and resets < episodes - probe_from(episodes)
        saturated = 0.0 if self._agent.at_best else self.saturated  # the best possible play is worth the cap
        return diagnosed(self._agent.name, beta, episodes, saturated, self.tied, constant, self._acts, idle)


def diagnosed(
    name: str, beta: float, episodes: int, saturated: float, tied: float, constant: int | None, acts: int, idle: bool
) -> list[str]:
    """What was seen in the last tenth, in words; `constant` is the only action played, or None.

    `idle`: it could have learned (not every episode was a reset) and never did.
    """
    found = []
    remedy = "" if math.isnan(beta) else f": use a smaller beta (it is {beta:.4g}; 'linmdp check' says what works)"
    if idle and acts:
        last = episodes - probe_from(episodes)
        found.append(
            f"{name}: it has stopped learning: not one regression was solved in the last {last} episodes. If it plays "
            f"badly, that will not change; a smaller tau makes it learn for longer."
        )
    if saturated > SATURATED:
        found.append(
            f"{name}: after {episodes} episodes {saturated:.0%} of its Q values still sit at the largest possible "
            f"value: there it cannot tell good actions from bad ones. The exploration bonus is wide{remedy}."
        )
    if tied > SATURATED and constant is not None:
        found.append(
            f"{name}: the policy is constant: most actions tie, and it played action {constant} in all of its last "
            f"{acts} steps. That is no preference, only the first of equals."
        )
    return found


class RunStopped(InvalidData):
    """A run that its environment (or a Q that is NaN) has stopped; `result` holds the episodes before that."""

    def __init__(self, words: str, result: RunResult | None = None) -> None:
        super().__init__(words)
        self.result = result


def build_result(
    *,
    gaps: Array | None,
    clock: Stopwatch,
    runs: int = 1,
    chosen: Mapping[str, Any],
    possible: MorePossible | None = None,
    **measured: Any,
) -> RunResult:
    """The result of one of `runs` runs that share the clock equally.

    `gaps` are V* - V^pi, summed up between the points of its curves, or None where V* is unknown; `possible` is what
    `Agent.more_possible` says; `measured` are the other fields of a `RunResult` by name.
    """
    return RunResult(
        **certified(possible),
        regret=None if gaps is None else np.cumsum(gaps),
        cpu_seconds=clock.cpu / runs,
        wall_seconds=clock.wall / runs,
        chosen={name: value.item() if isinstance(value, np.generic) else value for name, value in chosen.items()},
        **measured,
    )


def certified(possible: MorePossible | None) -> dict[str, Any]:
    """The fields of a `RunResult` that say how much more was possible."""
    if possible is None:
        return {}
    mean, low, high = mean_interval(possible.gaps)
    kind = f"certified ({possible.level:.0%}, if linear)" if possible.level else UNPROVED
    kind = NOTHING if possible.nothing else kind
    return {"certified": mean, "certified_interval": [low, high], "certified_kind": kind}
