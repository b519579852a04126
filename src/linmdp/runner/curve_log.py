"""What the episodes of a run earned and lost, in memory that does not grow with their number."""

from __future__ import annotations

from collections import deque

import numpy as np

from linmdp.results.curves import is_long, thinned
from linmdp.runner.progress import RECENT
from linmdp.types import Array, IntArray


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
