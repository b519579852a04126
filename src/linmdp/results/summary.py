"""Several runs of one agent, summed up."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple, TypeVar

import numpy as np

from linmdp.results.curves import late_return
from linmdp.results.stats import Interval, mean_interval
from linmdp.types import Array, RunResult

T = TypeVar("T")
Key = TypeVar("Key", bound=Hashable)

NO_PARAMETERS = ("bytes", "reason")
"""What an agent chose that is no parameter of it."""

MEANS = ("cpu_seconds", "updates", "resets", "saturated")


class Summary(NamedTuple):
    """One agent over its n seeds.

    `scores` are one for each seed, (n,): more is better. `reward` is that of an episode, `end` that of one in the last
    tenth. `curve` is the regret of every seed, (n, K), or None where V* is unknown; `bytes_each` and `cpu_each` are
    (n,); `chosen` says what was chosen for parameters that were left open; `certificate`, `certified` and
    `interactions` (steps of the environment) are means, where there are any.
    """

    env: str
    agent: str
    seeds: int
    episodes: int
    regret: Interval | None
    reward: Interval
    scores: Array
    end: Interval
    agent_bytes: int
    planning_bytes: int | None
    cpu_seconds: float
    updates: float
    resets: float
    saturated: float
    curve: Array | None
    bytes_each: Array
    cpu_each: Array
    chosen: str
    certificate: float | None
    certified: float | None
    certified_kind: str | None
    interactions: float | None


def summarize(results: Sequence[RunResult]) -> Summary:
    """The runs of one agent that differ in their seed alone."""
    first = results[0]
    curves = [r.regret for r in results if r.regret is not None]
    curve = np.stack(curves) if len(curves) == len(results) else None
    return Summary(
        env=first.env,
        agent=first.agent,
        seeds=len(results),
        episodes=first.episodes,
        regret=None if curve is None else mean_interval(curve[:, -1]),
        reward=mean_interval(np.array([r.reward / r.episodes for r in results])),
        scores=np.array([score(r) for r in results]),
        end=mean_interval(np.array([late_return(r) for r in results])),
        agent_bytes=max(r.peak_bytes for r in results),
        planning_bytes=most(r.planning_bytes for r in results),
        **{name: float(np.mean([getattr(r, name) for r in results])) for name in MEANS},
        curve=curve,
        bytes_each=np.array([float(r.peak_bytes) for r in results]),
        cpu_each=np.array([r.cpu_seconds for r in results]),
        chosen=chosen_words([r.chosen for r in results]),
        certificate=_mean([r.certificate for r in results]),
        certified=_mean([r.certified for r in results]),
        certified_kind=first.certified_kind,
        interactions=_mean([r.interactions for r in results]),
    )


def score(run: RunResult) -> float:
    """What a run is compared by, more is better: regret below 0 or, where that is unknown, the return of an episode."""
    return run.reward / run.episodes if run.regret is None else -float(run.regret[-1])


def most(values: Iterable[int | None]) -> int | None:
    """The largest of those that are known; None where none is."""
    return max((value for value in values if value is not None), default=None)


def _mean(values: Sequence[float | None]) -> float | None:
    """None where any is missing."""
    there = [value for value in values if value is not None]
    return float(np.mean(there)) if len(there) == len(values) else None


def chosen_words(chosen: Sequence[Mapping[str, Any]]) -> str:
    """What several runs chose, as "lam=0.01, storage=merged"; numbers that differ as a range."""
    if all(one == chosen[0] for one in chosen):
        chosen = chosen[:1]
    names = dict.fromkeys(name for one in chosen for name in one if name not in NO_PARAMETERS)
    return ", ".join(f"{name}={_values([one[name] for one in chosen if name in one])}" for name in names)


def _values(values: Sequence[Any]) -> str:
    numbers = all(isinstance(value, int | float) and not isinstance(value, bool) for value in values)
    shown = (min(values), max(values)) if numbers else values
    words = (
        f"{v + 0.0:.3g}" if isinstance(v, float) else str(v).lower() if isinstance(v, bool) else str(v) for v in shown
    )
    return (" to " if numbers else " or ").join(dict.fromkeys(words))


def grouped(items: Iterable[T], key: Callable[[T], Key]) -> dict[Key, list[T]]:
    """The items of each key, in the order in which they first appear."""
    groups: dict[Key, list[T]] = {}
    for item in items:
        groups.setdefault(key(item), []).append(item)
    return groups


def by_agent(results: Iterable[RunResult]) -> list[Summary]:
    """One summary for each agent, environment and K, in the order in which they first appear; seeds in order."""
    return [summarize(runs) for runs in by_setting(results)]


def by_setting(results: Iterable[RunResult]) -> list[list[RunResult]]:
    """The runs of each agent, environment and K, in the order in which they first appear; seeds in order."""
    groups = grouped(results, lambda r: (r.env, r.agent, r.episodes))
    return [sorted(group, key=lambda r: r.seed) for group in groups.values()]
