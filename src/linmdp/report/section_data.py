"""What the page of `html.py` shows: a `Section` of each environment and K, and what all runs have in common."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby
from typing import Any

import numpy as np

from linmdp.io.units import human_bytes, memory_unit
from linmdp.report.plots import MARKERS, Curve, LineStyle, is_baseline, mean_curve
from linmdp.results.curves import curve_at, returns
from linmdp.results.run_folder import Ran, Reader
from linmdp.results.stats import FEW, Interval, profile
from linmdp.results.summary import Summary, grouped, summarize
from linmdp.results.verdict import verdict, without_advice
from linmdp.types import RunResult

MOST_AGENTS = 40
MAIN = 8
"""So many learners are all shown at once; of more, the best setting of each algorithm comes first."""
GROUPS = 60
"""Groups of episodes whose mean return is a point of a curve."""
YS = {"regret": "cumulative exact regret", "reward": "cumulative reward"}
ENDS = {"regret": "regret at the end", "reward": "reward per episode"}
WIDE = 20
"""Memory that differs by more than this factor is drawn on a logarithmic axis."""


def memory_is_wide(amounts: Sequence[float]) -> bool:
    """Whether memory needs a logarithmic axis."""
    return len(amounts) > 1 and min(amounts) > 0 and max(amounts) > WIDE * min(amounts)


@dataclass(frozen=True, kw_only=True)
class Section:
    """One environment and K.

    Attributes
    ----------
    measure : "regret" or, where V* is unknown for any of the runs, "reward"
    runs, summaries : of the agents that are shown, the best `MOST_AGENTS`
    curves : cumulative `measure` of each agent
    returns : reward of an episode, of each agent
    verdicts : whether each agent has learned, without what to try next; of policies that do not learn nothing
    read : reads runs again, with their curves; the summaries have the ends of theirs alone
    left_out : how many agents are not shown
    """

    env: str
    episodes: int
    measure: str
    summaries: list[Summary]
    curves: dict[str, Curve]
    runs: list[Ran] = field(default_factory=list)
    verdicts: dict[str, str] = field(default_factory=dict)
    read: Reader = lambda _: []
    returns: dict[str, Curve] = field(default_factory=dict)
    number: int = 1
    left_out: int = 0

    @property
    def seeds(self) -> int:
        """The largest number of seeds of an agent."""
        return max(s.seeds for s in self.summaries)

    def level(self, s: Summary) -> Interval:
        """What the trade-off shows of an agent: regret at the end, or reward per episode."""
        return s.regret if self.measure == "regret" and s.regret is not None else s.reward

    def loss(self, s: Summary) -> float:
        """The mean of `level`, such that less is better."""
        return self.level(s).mean * (1 if self.measure == "regret" else -1)

    @property
    def learners(self) -> list[Summary]:
        """The agents that learn."""
        return [s for s in self.summaries if not is_baseline(s.agent)]

    @property
    def profiles(self) -> dict[str, Curve]:
        """The share of the runs of each learner that are better than each value of `level`, if they are enough."""
        sign = -1 if self.measure == "regret" else 1
        scores = {s.agent: s.scores for s in self.learners if len(s.scores) >= FEW}
        ends = [end for x in scores.values() for end in (x.min(), x.max())]
        if not ends or min(ends) == max(ends):
            return {}
        taus = np.linspace(min(ends), max(ends), GROUPS)
        return {agent: Curve(sign * taus, *profile(x[:, None], taus)) for agent, x in scores.items()}

    @property
    def main(self) -> list[str]:
        """Who is shown first: all, if they are few; else the best setting of each algorithm, and the baselines."""
        if len(self.learners) <= MAIN:
            return [s.agent for s in self.summaries]
        best: dict[str, Summary] = {}
        for s in sorted(self.learners, key=self.loss):
            best.setdefault(s.agent.partition(":")[0], s)
        kept = {s.agent for s in best.values()}
        return [s.agent for s in self.summaries if s.agent in kept or is_baseline(s.agent)]

    def focused(self) -> Section:
        """The same with the main comparison alone."""
        kept = set(self.main)
        curves, earned = ({a: c for a, c in found.items() if a in kept} for found in (self.curves, self.returns))
        return replace(self, summaries=[s for s in self.summaries if s.agent in kept], curves=curves, returns=earned)

    @property
    def front(self) -> list[Summary]:
        """The Pareto front: learners that none is better than in memory or `measure` and no worse in the other."""
        front, last = list[Summary](), (0.0, np.inf)
        for cost, s in sorted((((s.agent_bytes, self.loss(s)), s) for s in self.learners), key=lambda pair: pair[0]):
            if cost[1] < last[1] or cost == last:
                front.append(s)
                last = cost
        return front


def sections_of(results: Sequence[Ran], read: Reader, most: int | None = None) -> list[Section]:
    """One section for each environment and K, or for `most` of them; environments in order, the largest K first."""
    groups = grouped(results, lambda r: (r.env, r.episodes))
    envs = list(dict.fromkeys(env for env, _ in groups))
    keys = sorted(groups, key=lambda key: (envs.index(key[0]), -key[1]))[:most]
    return [_section(number, env, K, groups[env, K], read) for number, (env, K) in enumerate(keys, start=1)]


def _section(number: int, env: str, episodes: int, runs: list[Ran], read: Reader) -> Section:
    """At most `MOST_AGENTS`, the baselines among them, in the order in which they come; the curves of one at a time."""
    own = {agent: sorted(some, key=lambda r: r.seed) for agent, some in grouped(runs, lambda r: r.agent).items()}
    measure = "regret" if all(r.final_regret is not None for r in runs) else "reward"
    best = sorted(own, key=lambda agent: (not is_baseline(agent), _loss(own[agent], measure)))[:MOST_AGENTS]
    names = set(best)
    summaries, curves, earned, said = list[Summary](), dict[str, Curve](), dict[str, Curve](), dict[str, str]()
    for agent in (agent for agent in own if agent in names):
        whole = read(own[agent])
        s = summarize(whole)
        said[agent] = without_advice(verdict(whole))
        if curve := _curve(s, whole, measure):
            curves[agent] = curve
        if curve := returns_curve(whole):
            earned[agent] = curve
        summaries.append(s._replace(curve=None if s.curve is None else s.curve[:, -1:].copy()))
    return Section(
        env=env,
        episodes=episodes,
        measure=measure,
        summaries=summaries,
        curves=curves,
        runs=[r for r in runs if r.agent in names],
        verdicts=said,
        read=read,
        returns=earned,
        number=number,
        left_out=len(own) - len(summaries),
    )


def _loss(runs: Sequence[Ran], measure: str) -> float:
    """`Section.loss` of the runs of one agent, without its interval."""
    if measure == "regret":
        return float(np.mean([r.final_regret for r in runs if r.final_regret is not None]))
    return -float(np.mean([r.reward / r.episodes for r in runs]))


def _curve(s: Summary, runs: Sequence[RunResult], measure: str) -> Curve | None:
    """None where regret is unknown."""
    values = s.curve if measure == "regret" else np.stack([np.cumsum(r.rewards) for r in runs])
    return None if values is None else mean_curve(values, curve_at(s.episodes) + 1.0)


def returns_curve(runs: Sequence[RunResult]) -> Curve | None:
    """Mean returns of groups of episodes that follow each other, as many as a figure can show; None of one group."""
    rewards, episodes = np.stack([returns(r) for r in runs]), runs[0].episodes
    points = min(GROUPS, rewards.shape[1])
    if points < 2:
        return None
    values = np.stack([part.mean(axis=1) for part in np.array_split(rewards, points, axis=1)], axis=1)
    return mean_curve(values, np.linspace(episodes / points, episodes, points))


SHARE = "share of runs that are better"


def embedded(payload: Any) -> str:
    """JSON that can stand in a script element: no text in it can end the element or start another."""
    text = json.dumps(payload, separators=(",", ":"), allow_nan=False)
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def styles_payload(styles: dict[str, LineStyle]) -> list[dict[str, Any]]:
    """How each agent is drawn; panels name agents by their index in this list."""
    return [
        {
            "name": style.name,
            "light": style.light,
            "dark": style.dark,
            "dash": ",".join(f"{2 * d:g}px" for d in style.dashes) or "solid",
            "symbol": MARKERS[style.marker][1],
            "baseline": style.baseline,
        }
        for style in styles.values()
    ]


def section_payload(section: Section, styles: dict[str, LineStyle]) -> dict[str, Any]:
    """The plots of a section, for `page/page.js`."""
    index = {agent: i for i, agent in enumerate(styles)}
    amounts = [s.agent_bytes for s in section.learners]
    unit, size = memory_unit(max(amounts, default=1))
    return {
        "kind": "section",
        "y": {"curves": YS[section.measure], "returns": "return of an episode", "profile": SHARE},
        "end": ENDS[section.measure],
        "less": section.measure == "regret",
        "bands": section.seeds > 1,
        "unit": unit,
        "wide": memory_is_wide(amounts),
        "curves": _curves(section.curves, index, styles),
        "returns": _curves(section.returns, index, styles),
        "profile": _curves(section.profiles, index, styles),
        "points": [
            {"agent": index[s.agent], "x": _digits(s.agent_bytes / size), "y": _interval(section.level(s))}
            for s in section.summaries
        ],
    }


def _curves(
    curves: Mapping[str, Curve], index: Mapping[str, int], styles: Mapping[str, LineStyle]
) -> list[dict[str, Any]]:
    return [
        {
            "agent": index[agent],
            "width": round(styles[agent].width(i), 2),
            "x": [int(x) if x == int(x) else _digits(x) for x in curve.episode.tolist()],
            **{name: [_digits(float(y)) for y in getattr(curve, name)] for name in ("mean", "low", "high")},
        }
        for i, (agent, curve) in enumerate(curves.items())
    ]


def _interval(i: Interval) -> list[float]:
    return [_digits(value) for value in i]


def _digits(value: float) -> float:
    return float(f"{value:.6g}")


def environments(results: Sequence[Ran]) -> list[tuple[str, ...]]:
    """Every environment with its K, its seeds, where regret was evaluated, and the bytes of its features."""
    rows = list[tuple[str, ...]]()
    for env, runs in grouped(results, lambda r: r.env).items():
        every = sorted({r.eval_every for r in runs})
        evaluated = "in every episode" if every == [1] else f"in one of every {' or '.join(map(str, every))} episodes"
        rows.append(
            (
                env,
                ", ".join(f"{K:,}" for K in sorted({r.episodes for r in runs})),
                ", ".join(str(a) if a == b else f"{a} to {b}" for a, b in _spans(r.seed for r in runs)),
                evaluated if any(r.final_regret is not None for r in runs) else "V* is unknown",
                human_bytes(max(r.feature_bytes for r in runs)),
            )
        )
    return rows


def parameters(results: Sequence[Ran]) -> dict[str, dict[str, list[str]]]:
    """The values of each parameter of each agent."""
    found: dict[str, dict[str, dict[str, None]]] = {}
    for agent, params in ((agent, params) for (agent, params), _ in groupby((r.agent, r.params) for r in results)):
        values = found.setdefault(agent, {})
        for key, value in params.items():
            text = "none" if value is None else str(value).lower() if isinstance(value, bool) else str(value)
            values.setdefault(str(key), {})[text] = None
    return {agent: {key: list(texts) for key, texts in values.items()} for agent, values in found.items()}


def equivalent(results: Sequence[Ran]) -> list[str]:
    """A command for each environment and K; several where seeds or `eval_every` differ."""
    groups: dict[tuple[str, int, int, int, int], list[str]] = {}
    same = grouped(results, lambda r: (r.env, r.episodes, r.eval_every, r.agent))
    for (env, K, every, agent), runs in same.items():
        for first, last in _spans(r.seed for r in runs):
            groups.setdefault((env, K, every, first, last), []).append(agent)
    commands = []
    for (env, K, every, first, last), agents in groups.items():
        verb = "compare" if len(agents) > 1 else "run"
        command = ["linmdp", verb, env, *agents, "--episodes", str(K), "--seeds", str(last - first + 1)]
        command += ["--seed", str(first)] * (first > 0) + ["--eval-every", str(every)] * (every > 1)
        commands.append(shlex.join(command))
    return commands


def _spans(seeds: Iterable[int]) -> list[tuple[int, int]]:
    """[0, 1, 2, 5] as [(0, 2), (5, 5)]."""
    ordered = np.unique(list(seeds))
    spans = np.split(ordered, np.flatnonzero(np.diff(ordered) > 1) + 1)
    return [(int(span[0]), int(span[-1])) for span in spans]
