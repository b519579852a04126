"""The paper's claims, each with what was measured in both settings, and a verdict by a rule that is written down."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import NamedTuple

from linmdp.experiments import paper
from linmdp.experiments.paper import FIGURES, SETTINGS, with_setting
from linmdp.experiments.paper_findings import Runs, end
from linmdp.io.units import human_bytes
from linmdp.report.plots import setting_name
from linmdp.report.tables import markdown
from linmdp.results.stats import Interval, paired_ratio

HOLDS, FAILS, OPEN = "holds", "does not hold", "cannot be told"
SAME = 0.05
"""Regrets that differ by less than this share are indistinguishable, and an exponent may exceed its bound by it."""

RIGHT = "as at the right"
MUCH = 0.5
"""At most this share of the space is "much more efficient"."""

RULES = (
    f"Two regrets count as indistinguishable where the 95% interval of their ratio, seed by seed, stays within "
    f"{SAME:.0%} of 1, and as different where it stays outside; much less space is at most {MUCH:g} of it. An exponent "
    f"agrees with its bound where it is at most {SAME:g} above it. A larger one refutes nothing: the bounds are proved "
    "for another beta, up to constants and logarithms."
)


class Claim(NamedTuple):
    """A row of the page: who says what, what was found in either setting, and the verdict."""

    source: str
    words: str
    published: str
    learning: str
    verdict: str


def claims_table(runs: Runs) -> str:
    """All claims about the synthetic MDP, the bounds first."""
    found = [_cost_bound(runs, source) for source in dict.fromkeys(b.source for b in paper.BOUNDS)]
    found += [_regret_bound(runs, source) for source in dict.fromkeys(b.source for b in paper.BOUNDS if b.regret)]
    found += [judge(runs, item) for item in FIGURES for judge in JUDGES[item]]
    K = runs.scale.K[-1]
    header = ("where", "the paper says", f"published setting, K = {K:,}", f"learning setting, K = {K:,}", "verdict")
    return f"## claims\n\n{RULES}\n\n" + markdown(header, found)


def _cost_bound(runs: Runs, source: str) -> Claim:
    """Upper bounds of time and space against the exponents that were fitted."""
    words, found, agrees = [], [], True
    for bound in (b for b in paper.BOUNDS if b.source == source):
        name, (time, space) = setting_name(bound.agent), runs.cost_growth(bound.agent)
        words.append(f"{name}: time K^{bound.time:g}, space K^{bound.space:g}")
        found.append(f"{name}: time K^{time.mean:.2f}, space K^{space.mean:.2f}")
        agrees &= time.high <= bound.time + SAME and space.high <= bound.space + SAME
    return Claim(source, "; ".join(words), RIGHT, "; ".join(found), HOLDS if agrees else OPEN)


def _regret_bound(runs: Runs, source: str) -> Claim:
    """The same for regret, in both settings."""
    words, cells, agrees = [], {setting: list[str]() for setting in SETTINGS}, True
    for bound in (b for b in paper.BOUNDS if b.source == source and b.regret is not None):
        assert bound.regret is not None
        name = setting_name(bound.agent)
        words.append(f"{name}: regret K^{bound.regret:g}")
        for setting, found in cells.items():
            grown = runs.regret_growth(bound.agent, setting)
            found.append(f"{name}: K^{grown.mean:.2f} [{grown.low:.2f}, {grown.high:.2f}]")
            agrees &= grown.high <= bound.regret + SAME
    published, learning = ("; ".join(found) for found in cells.values())
    return Claim(source, "; ".join(words), published, learning, HOLDS if agrees else OPEN)


def _same_regret(runs: Runs, item: str) -> Claim:
    """Regret against that of LSVI-UCB, or of the worst parameters against the best."""
    agents, cells, verdicts = paper.agents(FIGURES[item].family, runs.scale), [], []
    for setting in SETTINGS:
        regret = {a: end(runs.regret(a, setting)) for a in (*agents, "random")}
        share = {a: sum(regret[a]) / sum(regret["random"]) for a in agents}
        if FIGURES[item].family == "algorithms":
            pairs, best = [(a, agents[0]) for a in agents[1:]], agents[0]
        else:
            best = min(agents, key=share.__getitem__)
            pairs = [(max(agents, key=share.__getitem__), best)]
        ratios = {a: paired_ratio(regret[a], regret[base]) for a, base in pairs}
        told = [f"{_name(a, item)} {r.mean:.2f}x [{r.low:.2f}, {r.high:.2f}]" for a, r in ratios.items()]
        cells.append(f"of the regret of {_name(best, item)} ({share[best]:.2f} of random): {'; '.join(told)}")
        verdicts.append(_indistinguishable(list(ratios.values())))
    verdict = verdicts[0] if len(set(verdicts)) == 1 else f"published: {verdicts[0]}; learning: {verdicts[1]}"
    return Claim(item, FIGURES[item].claim, cells[0], cells[1], verdict)


def _indistinguishable(ratios: Sequence[Interval]) -> str:
    if all(r.low >= 1 - SAME and r.high <= 1 + SAME for r in ratios):
        return HOLDS
    return FAILS if any(r.low > 1 + SAME or r.high < 1 - SAME for r in ratios) else OPEN


def _less(runs: Runs, item: str) -> Claim:
    """Fixed and Adaptive against LSVI-UCB: their space at the largest K, where what it holds is known without a run.

    Or their time, at the largest K at which all of them ran.
    """
    base, *others = paper.agents("algorithms", runs.scale)
    if (metric := FIGURES[item].metric) == "space":
        K, most, place = runs.scale.K[-1], MUCH, ""
        taken = float(paper.bytes_of(with_setting(base, "learning", runs.beta, "features"), K))
    else:
        K, most = runs.scale.stored_to, 1.0
        taken, place = _cost(runs, base, "time", K), f"at K = {K:,}, "
    share = {a: _cost(runs, a, metric, K) / taken for a in others}
    told = "; ".join(f"{_name(a, item)} {x:.2f}x" for a, x in share.items())
    cell = f"{place}of LSVI-UCB's {_amount(taken, metric)}: {told}"
    return Claim(item, FIGURES[item].claim, RIGHT, cell, HOLDS if max(share.values()) <= most else FAILS)


def _grows(runs: Runs, item: str) -> Claim:
    """Space or time by rho or by the budget, at the largest K, for each m on its own."""
    metric, family = FIGURES[item].metric, FIGURES[item].family
    by_size: dict[str, dict[float, list[float]]] = {}
    for agent in paper.agents(family, runs.scale):
        given = dict(p.split("=") for p in agent.partition(":")[2].split(","))
        m, size = given.get("m", ""), float(given["budget" if family == "adaptive" else "rho"])
        by_size.setdefault(m, {}).setdefault(size, []).append(_cost(runs, agent, metric, runs.scale.K[-1]))
    told, holds = [], True
    for m, costs in by_size.items():
        sizes = sorted(costs)
        held = ", ".join(f"{_range(costs[s], metric)} at {s:g}" for s in sizes)
        told.append((f"m={m}: " if m else "") + held)
        if item == "fig-time-adaptive":
            holds &= all(max(costs[sizes[0]]) <= min(costs[s]) for s in sizes[1:])
        else:
            holds &= all(max(costs[small]) < min(costs[large]) for small, large in pairwise(sizes))
    words = "a budget of sqrt(K) is the best for time" if item == "fig-time-adaptive" else FIGURES[item].claim
    exponents = "the exponent of the budget" if family == "adaptive" else "rho"
    return Claim(item, words, RIGHT, f"by {exponents}: {'; '.join(told)}", HOLDS if holds else FAILS)


def _cost(runs: Runs, agent: str, metric: str, K: int) -> float:
    """Bytes or CPU seconds of an agent that stores its samples as the paper does."""
    s = runs.costs[with_setting(agent, "learning", runs.beta, "features"), K]
    return float(s.agent_bytes if metric == "space" else s.cpu_seconds)


def _stable_in_tau(runs: Runs, item: str) -> Claim:
    found = "not measured: the paper names no threshold for its figures, and tau_c = 0.1 is out of reach here"
    return Claim(item, "the time is stable in tau", found, found, OPEN)


JUDGES: dict[str, tuple[Callable[[Runs, str], Claim], ...]] = {
    "fig-regret": (_same_regret,),
    "fig-space": (_less,),
    "fig-time": (_less,),
    "fig-regret-fixed": (_same_regret,),
    "fig-space-fixed": (_grows,),
    "fig-time-fixed": (_grows,),
    "fig-regret-adaptive": (_same_regret,),
    "fig-space-adaptive": (_grows,),
    "fig-time-adaptive": (_grows, _stable_in_tau),
}


def _name(agent: str, item: str) -> str:
    """Without its parameters where the algorithms are compared."""
    name = setting_name(agent)
    return name.partition(" (")[0] if FIGURES[item].family == "algorithms" else name


def _amount(value: float, metric: str) -> str:
    return human_bytes(int(value)) if metric == "space" else f"{value:.0f} CPU s"


def _range(values: Sequence[float], metric: str) -> str:
    low, high = _amount(min(values), metric), _amount(max(values), metric)
    return low if low == high else f"{low} to {high}"
