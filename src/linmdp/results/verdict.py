"""Has it learned anything? What an agent earns at the end of its runs, beside what random play earns, in one line."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from linmdp.results.curves import last_tenth, returns, spans
from linmdp.types import Array, RunResult

NOT_JUDGED = ("random", "constant", "optimal")
"""Policies that learn nothing, by name."""

ERRORS = 2.0
"""Standard errors by which a mean must lie above another."""

LEAST_GAIN = 0.05
"""Of exact values: the part of the way from random to optimal that counts as more than none."""

MOSTLY = 0.5
"""From this fraction of the Q values, or of the states, on an advice is worth giving."""


class Judgement(NamedTuple):
    """What runs earned in each of their last episodes, on average, and whether that is more than random play earns."""

    earned: float
    learned: bool


def judge(runs: Sequence[RunResult]) -> Judgement | None:
    """The runs of one agent, which differ in their seed alone, together; None where there is nothing to compare with.

    Where the values are known they are compared as they are. Otherwise the difference of two means must be more than
    two standard errors, each side with one more episode that earned what the other earns on average: a few equal
    returns are no proof.
    """
    first = runs[0]
    if not first.random_returns or first.agent.partition(":")[0] in NOT_JUDGED:
        return None
    if first.optimal_return is not None:
        return _exact(first, float(np.mean([_last_gap(run) for run in runs])))
    last = np.concatenate([last_tenth(returns(run)) for run in runs])
    return _sampled(first, last[None])[0]


def _each(runs: Sequence[RunResult]) -> list[Judgement]:
    """Each run by itself, beside the random play of the first."""
    first = runs[0]
    if first.optimal_return is not None:
        return [_exact(first, _last_gap(run)) for run in runs]
    lasts = [last_tenth(returns(run)) for run in runs]
    together = [np.stack(lasts)] if len({len(last) for last in lasts}) == 1 else [last[None] for last in lasts]
    return [found for last in together for found in _sampled(first, last)]


def _exact(run: RunResult, gap: float) -> Judgement:
    """A policy that loses so much an episode, where the values are known."""
    assert run.optimal_return is not None
    earned, random = run.optimal_return - gap, run.random_returns[0]
    least = LEAST_GAIN * (run.optimal_return - random)
    return Judgement(earned, bool(least > 0 and earned - random > least))


def _sampled(run: RunResult, last: Array) -> list[Judgement]:
    """Each row of returns (n, episodes) beside those of random play."""
    random, earned = np.array(run.random_returns), last.mean(axis=1)
    mine = np.column_stack([last, np.full(len(last), random.mean())])
    others = np.column_stack([np.tile(random, (len(last), 1)), earned])
    error = np.sqrt(sum(side.var(axis=1, ddof=1) / side.shape[1] for side in (mine, others)))
    learned = mine.mean(axis=1) - others.mean(axis=1) > ERRORS * error
    return [Judgement(*pair) for pair in zip(earned.tolist(), learned.tolist(), strict=True)]


def _last_gap(run: RunResult) -> float:
    """V* - V^pi of an episode in the last tenth, on average; a stored curve has fewer points than episodes."""
    assert run.regret is not None
    points = len(run.regret)
    n = max(1, points // 10)
    before = float(run.regret[-n - 1]) if n < points else 0.0
    return (float(run.regret[-1]) - before) / float(spans(points, run.episodes)[-n:].sum())


def verdict(runs: Sequence[RunResult]) -> str:
    """The line for the runs of one agent; empty where there is nothing to say."""
    found, first = judge(runs), runs[0]
    if found is None or first.random_return is None:
        return ""
    figures = f"{number(found.earned)} an episode, random {number(first.random_return)}"
    if first.optimal_return is not None:
        figures += f", optimal {number(first.optimal_return)}"
    if not found.learned:
        if first.optimal_return is None and found.earned > first.random_return:
            figures += ", but too few or too uneven to be sure"
        return f"NOT better than random after {first.episodes} episodes: try {advice(runs)} ({figures})"
    failed = sum(not one.learned for one in _each(runs))
    return f"learned: {figures}" + (f" ({failed} of {len(runs)} seeds are not better than random)" if failed else "")


def verdicts(results: Sequence[RunResult]) -> dict[str, str]:
    """The line of every agent that learns, over its seeds; the results are of one environment and one K."""
    groups: dict[str, list[RunResult]] = {}
    for result in results:
        groups.setdefault(result.agent, []).append(result)
    found = {agent: verdict(runs) for agent, runs in groups.items()}
    return {agent: words for agent, words in found.items() if words}


def advice(runs: Sequence[RunResult]) -> str:
    """What to try next, by what is known of the runs."""
    first = runs[0]
    env = f"gym:{first.env}" if re.fullmatch(r"[\w/-]+-v\d+", first.env) else first.env  # of an object: its id
    gym = env.startswith("gym:")
    mapped = gym and first.chosen.get("features") != "onehot"
    beta = first.params.get("beta")
    found = [f"more episodes (--episodes {10 * first.episodes})"]
    if beta is not None and np.mean([run.saturated for run in runs]) > MOSTLY:
        given = "a number for beta, as in beta=0.1" if beta == "auto" else f"a smaller beta (it is {beta})"
        found.insert(0, f"{given}, since Q is at its cap")
    elif mapped and np.mean([run.tied for run in runs]) > MOSTLY:
        found.insert(0, "features that tell actions apart, since most are tied")
    if mapped:
        found.append("another feature map (features=rff, rbf, fourier or tiles)")
    if gym and "H=" not in env:
        found.append("a smaller H")
    if beta is not None:
        found.append(f"linmdp tune {env} {first.agent.partition(':')[0]}")
    return ", ".join(found[:-1]) + " or " * (len(found) > 1) + found[-1]


def number(value: float) -> str:
    """A return as people write it."""
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}"
