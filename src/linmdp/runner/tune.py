"""A small search for better parameters than those that are chosen by themselves, by successive halving.

All settings run for a few episodes, the better third of them for three times as many, and so on up to K. What is best
in the end is judged beside the default with seeds that the search has not seen. Every run goes into a store, and what
is stored is not run again: which settings go on follows from the stored results alone.
"""

from __future__ import annotations

import gc
import math
import warnings
from collections.abc import Iterator, Mapping, Sequence
from itertools import product
from typing import Any, NamedTuple

import numpy as np

from linmdp.errors import InvalidParameter, LinMDPError, LinMDPWarning, check_int
from linmdp.io.memory import available_memory
from linmdp.io.units import human_bytes
from linmdp.results.curves import late_return
from linmdp.results.stats import Interval, mean_interval
from linmdp.results.store import Store
from linmdp.runner.batch import Job, default_processes
from linmdp.runner.registry import AGENTS, agent_parameters, make_env
from linmdp.runner.spec import extended_spec, parse_spec
from linmdp.runner.start import LESS, TooLarge, made_within
from linmdp.runner.sweep import run_key, run_tried
from linmdp.types import RunResult, Task

FRACTION = 3
"""One setting in this many goes on, with this many times the episodes."""

PART = 0.5
"""Of the memory for one run, what its agent may take in the end: the rest is for Python and for planning."""

SMALL = 1 << 20
"""Bytes of an agent that may stay a while beside the next one: to collect it takes longer than to make another."""

ROUNDS = 3
SEARCH_SEEDS = 2
FIRST_SEED = 1_000_000
"""Of the search; the judgement has those from 0 on, as `linmdp run` has."""

FAILED = "failed settings"
"""A note in the store: what cannot be run is not tried again."""

Parameters = dict[str, Any]
AGENT: dict[str, tuple[Any, ...]] = {
    "beta": (0.01, 0.03, 0.1, 0.3, 1.0),
    "lam": (1e-4, 1e-2, 0.1, 1.0),
    "stationary": (True, False),
}
"""Values to try beside the default; beta is in units of the largest reward."""

BANDWIDTHS = (0.1, 0.3, 1.0)
MAPS: dict[str, dict[str, tuple[Any, ...]]] = {
    "auto": {"dim": (100, 200, 400), "bandwidth": BANDWIDTHS},
    "fourier": {"order": (2, 3, 5)},
}
"""Feature maps for Gymnasium tasks whose states are not finite."""


class Setting(NamedTuple):
    """What is run: an environment and an agent, as specs."""

    env: str
    agent: str

    def jobs(self, episodes: int, seed: int, seeds: int) -> list[Job]:
        """Its runs."""
        return [Job(self.env, self.agent, episodes, seed + i, 1) for i in range(seeds)]


class Tuned(NamedTuple):
    """The best setting that was found, and the default, which may be the same; the runs that judge them."""

    best: Setting
    default: Setting
    runs: dict[Setting, list[RunResult]]

    @property
    def gain(self) -> Interval:
        """By how much the score of the best is higher, over pairs with the same seed."""
        best, default = (np.array([score(run) for run in self.runs[s]]) for s in (self.best, self.default))
        return mean_interval(best - default)


def score(run: RunResult) -> float:
    """What a setting is to have most of: less regret an episode where it is known, else the return at the end."""
    if run.regret is not None:
        return -float(run.regret[-1]) / run.episodes
    return late_return(run)


class Search:
    """The search for one environment and one agent; parameters that their specs have stay as they are.

    Parameters
    ----------
    env, agent : specs
    episodes : K, of the last round and of the judgement
    seeds : of the judgement
    budget : episodes of the search, over all runs; default: 15 K
    processes : that run at once, each with as much memory

    Attributes
    ----------
    available : bytes that one run may take
    left_out : settings that would take more
    """

    def __init__(
        self,
        env: str,
        agent: str,
        *,
        episodes: int,
        seeds: int,
        budget: int | None = None,
        processes: int | None = None,
    ) -> None:
        self.default, self.left_out = Setting(env, agent), 0
        available = available_memory()
        at_once = default_processes(SEARCH_SEEDS) if processes is None else processes
        self.available = math.inf if available is None else PART * available / max(1, at_once)
        self.episodes = check_int("tune", "episodes", episodes, low=1)
        self.seeds = check_int("tune", "seeds", seeds, low=2)
        budget = 15 * episodes if budget is None else check_int("tune", "budget", budget, low=1)
        lengths = (max(1, episodes // FRACTION**left) for left in reversed(range(ROUNDS)))
        self.lengths: list[int] = list(dict.fromkeys(lengths))
        least = len(self.lengths) * SEARCH_SEEDS * self.lengths[0]
        if budget < 2 * least:
            raise InvalidParameter(f"The 'budget' parameter of tune must be at least {2 * least} here. Got {budget}.")
        self._behind = 0  # bytes of the agent that was made last
        self.settings = self._some(budget // least)

    @property
    def total_episodes(self) -> int:
        """Of everything, about."""
        rounds = len(self.settings) * self.lengths[0] * SEARCH_SEEDS * len(self.lengths)
        return rounds + 2 * self.seeds * self.episodes

    def _some(self, count: int) -> list[Setting]:
        """The default, and as many others as make `count`: an even choice of all that can be made."""
        made: dict[str, Any] = {self.default.env: make_env(self.default.env)}
        self._try(self.default, made)  # what is wrong with it is said at once
        everything = list(self._all(made[self.default.env].unwrapped.task))
        if not everything:
            name = parse_spec(self.default.agent)[0]
            raise InvalidParameter(f"'{name}' has nothing to tune: none of {', '.join(AGENT)} is left open in it.")
        found = [self.default]
        for place in np.random.default_rng(0).permutation(len(everything)):
            if len(found) == count:
                break
            setting = everything[place]
            try:
                self._try(setting, made)
            except TooLarge:
                self.left_out += 1
                continue
            except LinMDPError:
                continue
            found.append(setting)
        return found

    def _try(self, setting: Setting, made: dict[str, Any]) -> None:
        """Raise if it cannot be made, or would take too much memory in the end."""
        if setting.env not in made:
            made[setting.env] = make_env(setting.env)
        if self._behind > SMALL:
            gc.collect()  # the parts of an agent point at each other, so that the last one may still be there
        try:
            agent = made_within(setting.agent, made[setting.env], self.episodes, self.available)
        except MemoryError as error:
            raise TooLarge(f"'{setting.agent}' in '{setting.env}' cannot be made: {error}.") from error
        self._behind = agent.nbytes
        if (needed := agent.bytes_after(self.episodes)) > self.available:
            raise TooLarge(
                f"'{setting.agent}' in '{setting.env}' needs about {human_bytes(needed)} of memory, and a run here may "
                f"take {human_bytes(int(self.available))}: {LESS}."
            )

    def _all(self, task: Task) -> Iterator[Setting]:
        """Every setting but the default; none for an agent without a width."""
        (env, env_given), (agent, given) = parse_spec(self.default.env), parse_spec(self.default.agent)
        grid = {name: values for name, values in AGENT.items() if name in agent_parameters(agent)}
        if "beta" not in grid:
            return
        scale = max(map(abs, task.reward_range)) or 1.0
        grid["beta"] = tuple(float(f"{scale * value:.3g}") for value in grid["beta"])
        if not task.stationary:
            grid.pop("stationary", None)
        asked = agent in AGENTS and AGENTS[agent].needs_features
        maps = list(_feature_maps(env_given)) if env == "gym" and task.S is None and asked else [{}]
        for features, chosen in product(maps, _combinations(grid, given)):
            setting = Setting(extended_spec(self.default.env, features), extended_spec(self.default.agent, chosen))
            if setting != self.default:
                yield setting

    def run(self, store: Store, *, processes: int | None = None, progress: bool = False) -> Tuned:
        """Run what the store does not have yet, round by round."""

        def played(settings: Sequence[Setting], episodes: int, seed: int, seeds: int) -> dict[Setting, list[RunResult]]:
            return _played({s: s.jobs(episodes, seed, seeds) for s in settings}, store, processes, progress)

        left = self.settings
        for length in self.lengths:
            if len(left) > 1:
                found = played(left, length, FIRST_SEED, SEARCH_SEEDS)
                ranked = sorted(found, key=lambda s: -np.mean([score(run) for run in found[s]]))
                left = ranked[: 1 if length == self.episodes else max(1, len(left) // FRACTION)]
        judged = played(list(dict.fromkeys([*left, self.default])), self.episodes, 0, self.seeds)
        if self.default not in judged:
            raise InvalidParameter(f"The default '{' '.join(self.default)}' cannot be run to its end here.")
        return Tuned(next((s for s in left if s in judged), self.default), self.default, judged)


def _played(
    jobs: dict[Setting, list[Job]], store: Store, processes: int | None, progress: bool
) -> dict[Setting, list[RunResult]]:
    """The runs of each setting, in order; what fails, or has failed before, is noted and left out."""
    before = set(store.notes(FAILED))
    wanted = {s: own for s, own in jobs.items() if " ".join(s) not in before}
    failed = run_tried([job for own in wanted.values() for job in own], store, processes=processes, progress=progress)
    for setting, own in wanted.items():
        if reasons := [failed[job] for job in own if job in failed]:
            store.note(FAILED, " ".join(setting))
            words = f"'{' '.join(setting)}' is left out, since it cannot be run to its end: {reasons[0]}"
            warnings.warn(words, LinMDPWarning, stacklevel=2)
    stored = {run.key: run.result for run in store.stored()}
    keys = {setting: [run_key(job) for job in own] for setting, own in wanted.items()}
    return {s: [stored[key] for key in own] for s, own in keys.items() if all(key in stored for key in own)}


def _combinations(grid: Mapping[str, tuple[Any, ...]], given: Mapping[str, Any]) -> Iterator[Parameters]:
    """Every choice of values for the parameters that are not given; each may also stay as it is by default."""
    free = {name: (None, *values) for name, values in grid.items() if name not in given}
    for values in product(*free.values()):
        yield {name: value for name, value in zip(free, values, strict=True) if value is not None}


def _feature_maps(given: Mapping[str, Any]) -> Iterator[Parameters]:
    """The maps to try, or the sizes of the one that is given."""
    named = given.get("features")
    if named is None:
        yield {}
    for name, sizes in MAPS.items():
        if named in (None, name):
            for chosen in _combinations(sizes, given):
                yield ({"features": name} if named is None else {}) | chosen
    if named is not None and named not in MAPS:
        yield {}
