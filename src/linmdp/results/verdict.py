"""Has it learned anything? What an agent earns at the end of its runs, beside what random play earns, in one line."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from linmdp.results.curves import last_tenth, returns, spaced, spans
from linmdp.results.stats import Interval, mean_interval
from linmdp.results.summary import grouped
from linmdp.types import Array, RunResult

NOT_JUDGED = ("random", "constant", "optimal")
"""Policies that learn nothing, by name."""

LEARNED, NO_BETTER, TOO_FEW = "learned", "not better than random", "too few episodes to tell"
"""The three answers."""

FEW = 20
"""Episodes at the end that are looked at, at least, where returns are all that is known."""

ERRORS = 2.0
"""Standard errors by which a mean must lie above another."""

MANY = 50
"""From more returns than this on, on either side, standard errors are enough."""

CHANCE, SHUFFLES = 0.025, 2000
"""How often shuffled returns may differ as much, and how often they are shuffled."""

BLOCKS = 50
"""Means of neighbouring episodes that an interval is made of, at most: those of neighbours are not independent."""

NO_GAIN, MOST_OF_IT = 0.05, 0.5
"""Of exact values: the part of the way from random to optimal that is nothing yet, and that is learned."""

ROUNDING = 1e-9

MOSTLY = 0.5
"""From this fraction of the Q values, or of the states, on it is worth saying."""

UNPROVED, NOTHING = "not a proof", "nothing certified"
"""Kinds of what is certified, beside "certified (95%, if linear)"."""

USUAL = "auto"
"""The agent that chooses all of its parameters."""

TRY, COMPARE = "; try: ", "linmdp compare "
"""Between what was found and the command that may do better; how such a command begins."""


class Judgement(NamedTuple):
    """What runs earned in each of their last episodes, and which of the three answers that is."""

    earned: Interval
    answer: str


def judge(runs: Sequence[RunResult], constant: float | None = None) -> Judgement | None:
    """The runs of one agent, which differ in their seed alone, together; None where there is nothing to compare with.

    `constant` is what the best constant action earned beside them, where that was played. Where the values of policies
    are known they are compared as they are, else returns of the last episodes with those of random play.
    """
    first = runs[0]
    if not first.random_returns or first.agent.partition(":")[0] in NOT_JUDGED:
        return None
    exact = first.optimal_return is not None
    last = [last_tenth(_values(run)) if exact else returns(run)[-max(FEW, len(run.rewards) // 10) :] for run in runs]
    earned, values = _interval(last), np.concatenate(last)
    answer = _exact(first, earned.mean) if exact else _sampled(first, values)
    known = [floor for floor in (constant, first.constant_return) if floor is not None]
    if answer == LEARNED and known and earned.mean < max(known) - ROUNDING * max(1.0, abs(max(known))):
        answer = TOO_FEW
    return Judgement(earned, answer)


def _values(run: RunResult) -> Array:
    """V^pi of each episode, (n,), where V* is known; a stored curve has fewer points than episodes."""
    assert run.regret is not None
    assert run.optimal_return is not None
    gaps: Array = np.diff(run.regret, prepend=0.0) / spans(len(run.regret), run.episodes)
    return run.optimal_return - gaps


def _interval(last: Sequence[Array]) -> Interval:
    """The mean of all, (n,) of each run, with its interval."""
    blocks = max(1, BLOCKS // len(last))
    means = [part.mean() for each in last for part in np.array_split(each, min(blocks, len(each)))]
    found = mean_interval(np.array(means))
    return Interval(float(np.concatenate(last).mean()), found.low, found.high)


def _exact(run: RunResult, earned: float) -> str:
    """A policy of that value."""
    assert run.optimal_return is not None
    random, optimal = run.random_returns[0], run.optimal_return
    gap, gain = optimal - random, earned - random
    if gap <= ROUNDING * max(1.0, abs(optimal)):  # nothing can be learned, and nothing was missed
        return TOO_FEW if gain >= -ROUNDING * max(1.0, abs(optimal)) else NO_BETTER
    return LEARNED if gain >= MOST_OF_IT * gap else NO_BETTER if gain <= NO_GAIN * gap else TOO_FEW


def _sampled(run: RunResult, mine: Array) -> str:
    """Returns (n,) beside those of random play: above, below, or nobody can tell."""
    random = np.array(run.random_returns)
    if np.ptp(mine) == 0 and np.ptp(random) == 0 and mine[0] == random[0]:
        best = run.most_return is not None and mine[0] >= run.most_return
        return NO_BETTER if len(mine) >= FEW and not best else TOO_FEW
    return LEARNED if _above(mine, random) else NO_BETTER if _above(random, mine) else TOO_FEW


def _above(mine: Array, others: Array) -> bool:
    """Whether the mean is larger beyond doubt: by two standard errors, and seldom so in returns that are shuffled.

    The second tells that a few equal returns, which have no spread, are no proof.
    """
    gain = mine.mean() - others.mean()
    if gain <= ERRORS * float(np.sqrt(sum(side.var() / max(1, len(side) - 1) for side in (mine, others)))):
        return False
    if min(len(mine), len(others)) > MANY:
        return True
    mine, others = (side[spaced(len(side), 4 * MANY)] for side in (mine, others))
    n, together = len(mine), np.concatenate([mine, others])
    shuffled = np.random.default_rng(0).permuted(np.tile(together, (SHUFFLES, 1)), axis=1)
    gains = shuffled[:, :n].mean(axis=1) - shuffled[:, n:].mean(axis=1)
    return bool((gains >= mine.mean() - others.mean() - ROUNDING * np.abs(together).max()).mean() < CHANCE)


def verdict(runs: Sequence[RunResult], constant: float | None = None) -> str:
    """The line for the runs of one agent; empty where there is nothing to say."""
    found, first = judge(runs, constant), runs[0]
    if found is None or first.random_return is None:
        return ""
    words = f"{found.answer}: {found.earned.text(number)} an episode, random {_random(first)}"
    if first.optimal_return is not None:
        words += f", optimal {number(first.optimal_return)}"
    if found.answer == LEARNED:
        failed = sum(one is not None and one.answer != LEARNED for one in (judge([run], constant) for run in runs))
        words += f" ({failed} of {len(runs)} seeds have not)" if failed and len(runs) > 1 else ""
        return words + possible(runs)
    words += f", after {first.episodes:,} episodes{_reason(runs)}{possible(runs)}"
    tried = advice(first, found.answer)
    return words + (f"{TRY}{tried}" if tried else "")


def possible(runs: Sequence[RunResult]) -> str:
    """How much more an episode could earn, as far as a wider plan on the same data knows; empty where there is none."""
    found, kinds = [run.certified for run in runs if run.certified is not None], {run.certified_kind for run in runs}
    if len(found) < len(runs):
        return ""
    kind = kinds.pop() if len(kinds) == 1 else UNPROVED
    if kind not in (UNPROVED, NOTHING):
        return f"; {kind}: at most {number(max(found))} an episode better"
    if kind == NOTHING:
        return f"; {NOTHING}"
    more = (
        Interval(found[0], *(runs[0].certified_interval or found * 2))
        if len(runs) == 1
        else mean_interval(np.array(found))
    )
    if runs[0].optimal_return is not None:  # which stands in the same line
        left = runs[0].optimal_return - float(np.concatenate([last_tenth(_values(run)) for run in runs]).mean())
        more = Interval(*(min(value, left) for value in more)) if left > ROUNDING else Interval(0.0, 0.0, 0.0)
    much = f"perhaps {more.text(number)} more an episode is" if more.mean > 0 else "no more seems"
    return f"; {much} possible ({UNPROVED})"


def _random(run: RunResult) -> str:
    """What random play earns: one exact value, or a mean with its interval."""
    return mean_interval(np.array(run.random_returns)).text(number)


def _reason(runs: Sequence[RunResult]) -> str:
    """What was seen that stands in the way of learning."""
    if (capped := np.mean([run.saturated for run in runs])) > MOSTLY:
        return f", {capped:.0%} of Q at its cap"
    tied = np.mean([run.tied for run in runs])
    return f", {tied:.0%} of actions tied" if tied > MOSTLY else ""


def verdicts(results: Sequence[RunResult]) -> dict[str, str]:
    """The line of every agent that learns, over its seeds; the results are of one environment and one K."""
    groups = grouped(results, lambda r: r.agent)
    played = [runs for agent, runs in groups.items() if agent.partition(":")[0] == "constant"]
    constant = max((float(np.mean([returns(run).mean() for run in runs])) for runs in played), default=None)
    found = {agent: verdict(runs, constant) for agent, runs in groups.items()}
    if USUAL in found:  # a comparison with it is what was just done
        found = {agent: without_advice(words) if COMPARE in words else words for agent, words in found.items()}
    return {agent: words for agent, words in found.items() if words}


def advice(run: RunResult, answer: str) -> str:
    """A command that runs as it stands and harms nothing: it looks for something better, and keeps what there is.

    Empty where no command line knows the environment or the agent, or where nothing can be better.
    """
    nothing_left = run.optimal_return is not None and run.optimal_return <= run.random_returns[0]
    best = run.most_return is not None and min(run.random_returns) >= run.most_return
    if not run.rerun or nothing_left or best:
        return ""
    if answer == TOO_FEW:
        return f"linmdp run {run.rerun} --episodes {10 * run.episodes}"
    if "beta" in run.params and "beta=" not in run.rerun:  # a search leaves alone what is given
        return f"linmdp tune {run.rerun} --episodes {max(run.episodes, FEW)}"
    if run.agent.partition(":")[0] != USUAL:
        return f"{COMPARE}{run.rerun} {USUAL} --episodes {run.episodes}"
    return f"linmdp run {run.rerun} --episodes {10 * run.episodes}"


def without_advice(words: str) -> str:
    """A verdict without what to try next."""
    return words.partition(TRY)[0]


def number(value: float) -> str:
    """1234.5 as "1,234", 12.345 as "12.3", 0.01234 as "0.0123", a rounding error as "0"."""
    if abs(value) < ROUNDING:
        return "0"
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}"
