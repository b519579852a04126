"""What the paper's experiments come to in numbers: the tuned beta, fitted exponents, and the comparison in words."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from linmdp.experiments.paper import BETAS, BOUNDS, BOUNDS_K, SETTINGS, with_setting
from linmdp.io.units import human_bytes
from linmdp.report.style import setting_name
from linmdp.report.tables import markdown
from linmdp.results.stats import Interval, growth_exponent, paired_ratio
from linmdp.results.summary import Summary

Found = Mapping[tuple[str, int], Summary]
"""Summaries by agent and K."""


def choose_beta(found: Found, agents: Sequence[str], K: int) -> tuple[float, str]:
    """The beta with the least regret, averaged over the agents, and the table that shows it."""
    rows, totals = [], {}
    for beta in BETAS:
        regrets = [_end(found[with_setting(a, "learning", beta), K]).mean() for a in agents]
        totals[beta] = float(np.mean(regrets))
        rows.append((f"{beta:g}", *(f"{r:.1f}" for r in regrets), f"{totals[beta]:.1f}"))
    header = ("beta", *(setting_name(a) for a in agents), "mean")
    return min(BETAS, key=totals.__getitem__), markdown(header, rows)


def bounds_table(found: Found, beta: float) -> str:
    """The exponents of K that the paper proves, and those fitted to the runs: slope of log value over log K."""
    rows = []
    for bound in BOUNDS:
        stored = _series(found, with_setting(bound.agent, "learning", beta, "features"))
        regrets = [stored, _series(found, with_setting(bound.agent, "published", beta))]
        rows.append(_bound_row(setting_name(bound.agent), bound.time, bound.space, bound.regret, stored, regrets))
    counts = _series(found, with_setting(BOUNDS[0].agent, "learning", beta))
    rows.insert(1, _bound_row("LSVI-UCB, storage=counts (ours)", 1, 0, 0.5, counts, [counts]))
    header = (
        "agent",
        "time",
        "fitted",
        "space",
        "fitted",
        "regret",
        f"fitted, beta={beta:g}",
        "fitted, published beta",
    )
    return markdown(header, rows)


def _bound_row(
    name: str,
    time: float,
    space: float,
    regret: float | None,
    costs: Sequence[Summary],
    regrets: Sequence[Sequence[Summary]],
) -> tuple[str, ...]:
    seconds = _exponent(s.cpu_each for s in costs)
    held = _exponent(s.bytes_each for s in costs)
    fitted = [_fit(_exponent(_end(s) for s in series)) for series in regrets]
    proved = "-" if regret is None else f"K^{regret:g}"
    return name, f"K^{time:g}", _fit(seconds), f"K^{space:g}", _fit(held), proved, *fitted, *["-"] * (2 - len(fitted))


def _series(found: Found, agent: str) -> list[Summary]:
    return [found[agent, K] for K in BOUNDS_K]


def _exponent(values: Iterable[np.ndarray]) -> Interval:
    return growth_exponent(np.array(BOUNDS_K), np.stack(list(values), axis=1))


def _fit(p: Interval) -> str:
    return f"K^{p.mean:.2f} [{p.low:.2f}, {p.high:.2f}]"


def _end(s: Summary) -> np.ndarray:
    assert s.curve is not None
    return s.curve[:, -1]


def verdict(found: Found, agents: Sequence[str], K: int, setting: str, beta: float, storage: str) -> list[str]:
    """One sentence an agent: what it costs and loses against LSVI-UCB, and where the random policy stands."""
    mine = [found[with_setting(a, setting, beta, storage), K] for a in agents]
    costs = [found.get((with_setting(a, setting, beta, "features"), K), s) for a, s in zip(agents, mine, strict=True)]
    random = _end(found["random", K]).mean()
    base, cost = mine[0], costs[0]
    width = "the published beta" if setting == SETTINGS[0] else f"beta = {beta:g}"
    share = _end(base).mean() / random
    lines = [
        f"With {width}, {K:,} episodes: {setting_name(cost.agent)} has {share:.2f} of the random policy's regret, "
        f"in {human_bytes(cost.agent_bytes)} and {cost.cpu_seconds:.1f} CPU seconds."
    ]
    for s, own in zip(mine[1:], costs[1:], strict=True):
        ratio = paired_ratio(_end(s), _end(base))
        lines.append(
            f"{setting_name(own.agent)} uses {own.agent_bytes / cost.agent_bytes:.2f}x its memory and "
            f"{own.cpu_seconds / cost.cpu_seconds:.2f}x its time, and has {ratio.mean:.2f}x its regret (95% interval "
            f"{ratio.low:.2f} to {ratio.high:.2f}): {_end(s).mean() / random:.2f} of the random policy's."
        )
    return lines
