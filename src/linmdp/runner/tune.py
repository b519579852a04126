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

from linmdp.errors import InvalidParameter, LinMDPError, LinMDPWarning, check_int, described
from linmdp.io.memory import available_memory
from linmdp.io.units import human_bytes
from linmdp.results.curves import late_return
from linmdp.results.stats import Interval, mean_interval
from linmdp.results.store import Store
from linmdp.runner.batch import LARGE, Job, default_processes
from linmdp.runner.registry import AGENTS, agent_parameters, make_agent, make_env
from linmdp.runner.resources import LESS, predicted_bytes
from linmdp.runner.spec import parse_spec, value_text
from linmdp.runner.sweep import run_key, run_sweep
from linmdp.types import RunResult, Task

FRACTION = 3
"""One setting in this many goes on, with this many times the episodes."""

PART = 0.5
"""Of the memory for one run, what its agent may take in the end: the rest is for Python and for planning."""

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
    "rff": {"dim": (100, 200, 400), "bandwidth": BANDWIDTHS},
    "rbf": {"centres": (50, 100, 200), "bandwidth": BANDWIDTHS},
    "fourier": {"order": (2, 3, 5)},
    "tiles": {"tiles": (4, 8)},
}
"""Feature maps for Gymnasium tasks whose states are not finite."""


class TooLarge(InvalidParameter):
    """A setting would take more memory than there is for it."""


class Setting(NamedTuple):
    """What is run: an environment and an agent, as specs."""

    env: str
    agent: str

    def jobs(self, episodes: int, seed: int, seeds: int) -> list[Job]:
        """Its runs."""
        return [Job(self.env, self.agent, episodes, seed + i, 1) for i in range(seeds)]


class Judged(NamedTuple):
    """A setting and its runs, with seeds that the search has not seen.

    `scores` (n,) are -regret per episode where regret is known, else the return of an episode in the last tenth.
    """

    setting: Setting
    runs: list[RunResult]

    @property
    def scores(self) -> Any:
        return np.array([score(run) for run in self.runs])

    @property
    def end(self) -> Interval:
        """The return of an episode in the last tenth."""
        return mean_interval(np.array([late_return(run) for run in self.runs]))

    @property
    def regret(self) -> Interval:
        """Of an episode, where it is known."""
        return mean_interval(-self.scores)


class Tuned(NamedTuple):
    """The best setting that was found, and the default; they may be the same."""

    best: Judged
    default: Judged

    @property
    def gain(self) -> Interval:
        """By how much the score of the best is higher, over pairs with the same seed."""
        return mean_interval(self.best.scores - self.default.scores)


def score(run: RunResult) -> float:
    """What a setting is to have most of."""
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
    room : bytes that one run may take
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
        self.room = math.inf if available is None else PART * available / max(1, at_once)
        self.episodes = check_int("tune", "episodes", episodes, low=1)
        self.seeds = check_int("tune", "seeds", seeds, low=2)
        budget = 15 * episodes if budget is None else check_int("tune", "budget", budget, low=1)
        lengths = (max(1, episodes // FRACTION**left) for left in reversed(range(ROUNDS)))
        self.lengths: list[int] = list(dict.fromkeys(lengths))
        least = len(self.lengths) * SEARCH_SEEDS * self.lengths[0]
        if budget < 2 * least:
            raise InvalidParameter(f"The 'budget' parameter of tune must be at least {2 * least} here. Got {budget}.")
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
        env = made[setting.env]
        task = env.unwrapped.task
        needed = predicted_bytes(setting.agent, task, 1) or 0  # before it is made, which takes them
        if needed <= self.room:
            if needed > min(LARGE, self.room / 8):
                gc.collect()  # the parts of an agent point at each other, so that the last one may still be there
            try:
                needed = make_agent(setting.agent, env, self.episodes).bytes_after(self.episodes)
            except MemoryError as error:
                raise TooLarge(f"'{setting.agent}' in '{setting.env}' cannot be made: {error}.") from error
        if needed > self.room:
            raise TooLarge(
                f"'{setting.agent}' in '{setting.env}' needs about {human_bytes(needed)} of memory, and a run here may "
                f"take {human_bytes(int(self.room))}: {LESS}."
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
            setting = Setting(_extended(self.default.env, features), _extended(self.default.agent, chosen))
            if setting != self.default:
                yield setting

    def run(self, store: Store, *, processes: int | None = None, progress: bool = False) -> Tuned:
        """Run what the store does not have yet, round by round."""
        left = self.settings
        for length in self.lengths:
            failed = set(store.notes(FAILED))
            left = [setting for setting in left if " ".join(setting) not in failed]
            if len(left) > 1:
                results = _played(left, length, FIRST_SEED, SEARCH_SEEDS, store, processes, progress)
                ranked = sorted(results, key=lambda s: -np.mean([score(run) for run in results[s]]))
                left = ranked[: 1 if length == self.episodes else max(1, len(left) // FRACTION)]
        finalists = list(dict.fromkeys([*left, self.default]))
        judged = _played(finalists, self.episodes, 0, self.seeds, store, processes, progress)
        if self.default not in judged:
            raise InvalidParameter(f"The default '{' '.join(self.default)}' cannot be run to its end here.")
        default = Judged(self.default, judged[self.default])
        best = next((Judged(setting, judged[setting]) for setting in left if setting in judged), default)
        return Tuned(best, default)


def _played(
    settings: Sequence[Setting],
    episodes: int,
    seed: int,
    seeds: int,
    store: Store,
    processes: int | None,
    progress: bool,
) -> dict[Setting, list[RunResult]]:
    """The runs of each setting, in order; one that fails is noted, and left out."""
    jobs = {setting: setting.jobs(episodes, seed, seeds) for setting in settings}
    try:
        run_sweep([job for own in jobs.values() for job in own], store, processes=processes, progress=progress)
    except (LinMDPError, MemoryError):
        for setting, own in jobs.items():  # one by one, to see whose fault it is
            try:
                run_sweep(own, store, processes=processes, progress=progress)
            except (LinMDPError, MemoryError) as error:
                gc.collect()
                store.note(FAILED, " ".join(setting))
                words = f"'{' '.join(setting)}' is left out, since it cannot be run to its end: {described(error)}"
                warnings.warn(words, LinMDPWarning, stacklevel=2)
    stored = {run.key: run.result for run in store.stored()}
    keys = {setting: [run_key(job) for job in own] for setting, own in jobs.items()}
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


def _extended(spec: str, parameters: Parameters) -> str:
    """The spec with more parameters."""
    more = ",".join(f"{name}={value_text(value)}" for name, value in parameters.items())
    return spec if not more else f"{spec}{',' if ':' in spec else ':'}{more}"
