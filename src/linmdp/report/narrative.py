"""What results say, in sentences."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from linmdp.io.units import human_bytes
from linmdp.report.plots import is_baseline, short_name
from linmdp.report.section_data import Section
from linmdp.results.run_folder import Ran
from linmdp.results.stats import FEW, WRONG, AdaStop, Interval, aggregate, improvement, paired_ratio
from linmdp.results.summary import Summary, grouped
from linmdp.results.verdict import number
from linmdp.types import RunResult


def paired_comparisons(summaries: Sequence[Summary], names: Mapping[str, str] | None = None) -> list[str]:
    """One sentence per learner after the first: what it costs and loses against the first, over the same seeds."""
    learners = [s for s in summaries if not is_baseline(s.agent) and s.curve is not None]
    names = names or {s.agent: short_name(s.agent) for s in learners}
    return [_paired_sentence(learners[0], other, names) for other in learners[1:] if other.seeds == learners[0].seeds]


def _paired_sentence(base: Summary, other: Summary, names: Mapping[str, str]) -> str:
    assert base.curve is not None
    assert other.curve is not None
    memory = other.agent_bytes / base.agent_bytes if base.agent_bytes else float("inf")
    first = base.curve[:, -1]
    if not np.all(first > 0):
        return f"{names[other.agent]} uses {memory:.2f}x the memory of {names[base.agent]}, which has no regret."
    ratio = paired_ratio(other.curve[:, -1], first)
    spread = f", 95% interval {ratio.low:.2f} to {ratio.high:.2f}" if other.seeds > 1 else ""
    verb = "loses" if ratio.mean >= 1 else "has only"
    seeds = f"{other.seeds} seed{'s' * (other.seeds > 1)}, paired"
    return (
        f"{names[other.agent]} uses {memory:.2f}x the memory of {names[base.agent]} "
        f"and {verb} {ratio.mean:.2f}x its regret{spread} ({seeds})."
    )


def distributions(summaries: Sequence[Summary]) -> list[str]:
    """Of learners with a few seeds: the mean of the middle half of their runs, and how often one beats the first."""
    enough = (s for s in summaries if s.seeds >= FEW and not is_baseline(s.agent))
    learners = {short_name(s.agent): s.scores[:, None] for s in enough}
    if len(learners) < 2:
        return []
    (base, first), *others = learners.items()
    middles, what = {name: aggregate(x) for name, x in learners.items()}, "return of an episode"
    if all(s.regret for s in summaries):
        middles, what = {name: Interval(-i.mean, -i.high, -i.low) for name, i in middles.items()}, "regret"
    found = [f"IQM of the {what}: " + ", ".join(f"{name} {i.text(number)}" for name, i in middles.items()) + "."]
    for name, x in others:
        often = improvement(x, first).text(lambda p: f"{p:.2f}")
        found.append(f"{name} is better than {base} in {often} of all pairs of their runs.")
    return found


def decisions(test: AdaStop, regret: bool) -> list[str]:
    """Who differs from whom, after how many seeds."""
    verb = "has less regret than" if regret else "earns more than"
    found = [f"{short_name(a)} {verb} {short_name(b)}: decided by {n} seeds." for (a, b), n in test.decided.items()]
    found += [f"{short_name(a)} and {short_name(b)} are not told apart by {test.seeds} seeds." for a, b in test.open]
    return [*found, f"Any of the decisions is wrong with a probability of at most {WRONG:g} (AdaStop)."]


def headlines(section: Section) -> list[str]:
    """Who is best, who is smallest, and what the front is."""
    learners = section.learners
    if not learners:
        return ["No agent here learns: there are only fixed policies."]
    best = min(learners, key=section.loss)
    found = [_best(section, best)]
    small = min(learners, key=lambda s: s.agent_bytes)
    if small.agent_bytes < best.agent_bytes:
        level = section.level(small).mean
        found.append(
            f"{short_name(small.agent)} needs the least memory: {human_bytes(small.agent_bytes)}, against "
            f"{human_bytes(best.agent_bytes)} of {short_name(best.agent)}, at a {_unit(section)} of {number(level)}."
        )
    return found


def comparisons(section: Section) -> list[str]:
    """Each learner against the first, over the seeds that both have run."""
    if len(section.learners) < 2:
        return []
    runs: dict[str, dict[int, Ran]] = {}
    for r in sorted(section.runs, key=lambda r: r.seed):
        runs.setdefault(r.agent, {})[r.seed] = r
    base, *others = section.learners
    found = distributions(section.learners)
    for other in others:
        common = [seed for seed in runs[base.agent] if seed in runs[other.agent]]
        if common:
            found += paired_comparisons([_over([runs[s.agent][seed] for seed in common], s) for s in (base, other)])
    return found


def _over(runs: Sequence[Ran], s: Summary) -> Summary:
    """What a paired comparison needs, over these runs."""
    ends = [[r.final_regret] for r in runs if r.final_regret is not None]
    curve = np.array(ends) if len(ends) == len(runs) else None
    return s._replace(seeds=len(runs), agent_bytes=max(r.peak_bytes for r in runs), curve=curve)


def flagged(runs: Sequence[Ran]) -> dict[str, list[Ran]]:
    """Every distinct warning with the runs that it was given for."""
    found: dict[str, list[Ran]] = {}
    for r in runs:
        for warning in dict.fromkeys(r.warnings):
            found.setdefault(warning, []).append(r)
    return found


def of_random(section: Section, s: Summary) -> float | None:
    """Regret as a fraction of the random policy's."""
    random = next((each for each in section.summaries if each.agent == "random"), None)
    if random is None or s.regret is None or random.regret is None or random.regret.mean <= 0:
        return None
    return s.regret.mean / random.regret.mean


def _best(section: Section, best: Summary) -> str:
    spread = section.level(best)
    interval = f" (95% interval {number(spread.low)} to {number(spread.high)})" if best.seeds > 1 else ""
    if section.measure == "reward":
        return f"{short_name(best.agent)} earns the most: {number(spread.mean)} per episode{interval}."
    ratio = of_random(section, best)
    beside = "" if ratio is None else f", {ratio:.2f} of the random policy's"
    return f"{short_name(best.agent)} has the least regret: {number(spread.mean)}{interval}{beside}."


def _unit(section: Section) -> str:
    return "regret" if section.measure == "regret" else "reward per episode"


def extent(results: Sequence[Ran]) -> str:
    """How much there is, in a sentence."""
    agents, envs = len({r.agent for r in results}), len({r.env for r in results})
    seeds, sizes = len({r.seed for r in results}), sorted({r.episodes for r in results})
    K = f"{sizes[0]:,}" if len(sizes) == 1 else f"{sizes[0]:,} to {sizes[-1]:,}"
    return (
        f"{count(len(results), 'run')} of {count(agents, 'agent')} in {count(envs, 'environment')}, "
        f"{K} episode{'s' * (sizes[-1] > 1)}, {count(seeds, 'seed')}."
    )


def count(n: int, noun: str) -> str:
    """3 and "run" as "3 runs"."""
    return f"{n:,} {noun}{'s' * (n != 1)}"


def others_of(agents: Sequence[str], main: Sequence[str]) -> dict[str, list[str]]:
    """The agents that are not in the main comparison, by algorithm."""
    return grouped((agent for agent in agents if agent not in main), lambda agent: short_name(agent.partition(":")[0]))


def best_of(section: Section) -> Summary:
    """Who is best: a learner, where there is one."""
    return min(section.learners or section.summaries, key=section.loss)


def verdict_lines(section: Section) -> list[str]:
    """Whether each agent of the main comparison has learned."""
    return [f"{short_name(a)}: {section.verdicts[a]}" for a in section.main if section.verdicts[a]]


def first_findings(section: Section) -> list[str]:
    """The headlines, and what was left out or not evaluated."""
    found, shown = headlines(section), len(section.summaries)
    if section.left_out:
        best = f"the {shown} with the best {section.measure} are shown"
        found.append(f"{shown + section.left_out} agents have run here; {best}.")
    every = max(r.eval_every for r in section.runs)
    if every > 1 and section.measure == "regret":
        found.append(f"Regret was evaluated in one of every {every} episodes and held in between.")
    return found


def warning_numbers(run: RunResult, found: Sequence[str]) -> str:
    """Where the warnings of a run stand in a list."""
    return ", ".join(str(1 + list(found).index(words)) for words in dict.fromkeys(run.warnings)) or "none"


def origin(runs: Sequence[Ran]) -> str:
    """Which agents and seeds these are."""
    agents = dict.fromkeys(short_name(r.agent) for r in runs)
    seeds = sorted({r.seed for r in runs})
    listed = ", ".join(map(str, seeds[:20])) + ", …" * (len(seeds) > 20)
    return f"{', '.join(agents)}, seed{'s' * (len(seeds) > 1)} {listed}"
