"""What a report shows of each environment and K: curves, and the trade-off of memory and regret."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from linmdp.report.plots import Curve, mean_curve
from linmdp.report.style import is_baseline
from linmdp.results.aggregate import FEW, profile
from linmdp.results.curves import curve_at, returns
from linmdp.results.run_folder import Ran, Reader
from linmdp.results.stats import Interval
from linmdp.results.summary import Summary, summarize
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
    read : reads runs again, with their curves; the summaries have the ends of theirs alone
    left_out : how many agents are not shown
    """

    env: str
    episodes: int
    measure: str
    summaries: list[Summary]
    curves: dict[str, Curve]
    runs: list[Ran] = field(default_factory=list)
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
    groups: dict[tuple[str, int], list[Ran]] = {}
    for r in results:
        groups.setdefault((r.env, r.episodes), []).append(r)
    envs = list(dict.fromkeys(env for env, _ in groups))
    keys = sorted(groups, key=lambda key: (envs.index(key[0]), -key[1]))[:most]
    return [_section(number, env, K, groups[env, K], read) for number, (env, K) in enumerate(keys, start=1)]


def _section(number: int, env: str, episodes: int, runs: list[Ran], read: Reader) -> Section:
    """At most `MOST_AGENTS`, the baselines among them, in the order in which they come; the curves of one at a time."""
    own: dict[str, list[Ran]] = {r.agent: [] for r in runs}
    for r in sorted(runs, key=lambda r: r.seed):
        own[r.agent].append(r)
    measure = "regret" if all(r.final_regret is not None for r in runs) else "reward"
    best = sorted(own, key=lambda agent: (not is_baseline(agent), _loss(own[agent], measure)))[:MOST_AGENTS]
    names = set(best)
    summaries, curves, earned = list[Summary](), dict[str, Curve](), dict[str, Curve]()
    for agent in (agent for agent in own if agent in names):
        whole = read(own[agent])
        s = summarize(whole)
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
