"""Sweeps: environments x agents x parameter grids x K x seeds, described in a TOML file.

name = "phases"
[[runs]]
env = "synthetic"
agents = ["lsvi-ucb:beta=0.05", "lsvi-ucb-fixed:beta=0.05"]
grid.rho = [0.5, 0.75]            # for the agents that have it
episodes = [500, 1000]
seeds = 3
"""

from __future__ import annotations

import math
import tomllib
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import closing
from functools import partial
from itertools import product
from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from linmdp.agents.backend import backend_for
from linmdp.errors import InvalidParameter, LinMDPError, described, invalid, one_line, ruled, without_warnings
from linmdp.plugins import carried
from linmdp.results.store import Store
from linmdp.runner.batch import (
    Job,
    beside_random_play,
    check_device,
    local_pool,
    run_counted,
    run_units,
    units,
)
from linmdp.runner.measured import MOST_EPISODES
from linmdp.runner.pool import Pool
from linmdp.runner.progress import Advance, Meter, progress_bar
from linmdp.runner.random_play import RandomPlay
from linmdp.runner.registry import agent_parameters, make_agent, make_env
from linmdp.runner.spec import check_no_import, parse_spec, written_spec
from linmdp.runner.start import check_fits, made_to_stay
from linmdp.types import RunResult

Count = Annotated[int, Field(ge=1, le=MOST_EPISODES)]
Value = bool | int | float | str
Shard = tuple[int, int]
"""Part i of n, counted from 1."""

LARGEST_FILE = 1 << 20
"""Bytes of a sweep file; one that a person wrote has a few thousand."""

MOST_RUNS = 1_000_000
"""Runs of one block: the plan is made as a whole, before anything runs."""

WORTH_SHOWING = 10_000
"""Runs from which on it is shown how far planning is."""


class Block(BaseModel):
    """One [[runs]] of a sweep: everything in it with everything else in it."""

    model_config = ConfigDict(extra="forbid")

    env: str | list[str]
    agents: Annotated[list[str], Field(min_length=1)]
    episodes: Count | list[Count]
    seeds: Annotated[int, Field(ge=1, le=MOST_RUNS)] = 1
    seed: Annotated[int, Field(ge=0, le=2**62)] = 0
    eval_every: Count = 1
    grid: dict[str, list[Value]] = {}


class Sweep(BaseModel):
    """A sweep file: blocks of runs, where a run that is in two of them runs once."""

    model_config = ConfigDict(extra="forbid")

    name: str
    runs: Annotated[list[Block], Field(min_length=1)]


class InvalidSweep(InvalidParameter):
    """A sweep file with errors: all of them, each with its path; several have a line each."""

    def __init__(self, words: str = "") -> None:
        super().__init__(words)
        first, *more = words.splitlines() or [""]
        self.args = ("\n".join([one_line(first), *("  " + one_line(line.strip()) for line in more)]),)


def read_sweep(path: Path) -> Sweep:
    """The sweep of a file, or all that is wrong with it."""
    try:
        if path.exists() and not path.is_file():
            raise InvalidSweep(f"The sweep file '{path}' must be a file.")
        if path.stat().st_size > LARGEST_FILE:
            raise InvalidSweep(f"The sweep file '{path}' must have at most {LARGEST_FILE} bytes.")
        data = tomllib.loads(path.read_text("utf-8"))
    except OSError as error:
        raise InvalidSweep(f"The sweep file '{path}' cannot be read. {error.strerror}.") from error
    except (ValueError, RecursionError) as error:  # TOML, UTF-8, or a whole number with too many digits
        if isinstance(error, InvalidSweep):
            raise
        raise InvalidSweep(f"The sweep file '{path}' is not TOML: {one_line(str(error), 300)}.") from error
    return check_sweep(data, path)


def check_sweep(data: Mapping[str, Any], path: Path = Path("sweep")) -> Sweep:
    """The sweep that plain data describe, or all that is wrong with them."""
    try:
        return Sweep.model_validate(data)
    except ValidationError as error:
        found = dict[str, str]()  # of the forms that a value may have, what is wrong with the one that fits best
        for e in sorted(error.errors(), key=lambda e: -len(e["loc"])):
            depth = 3 if e["loc"][2:3] in (("env",), ("episodes",)) else 4
            found.setdefault(".".join(map(str, e["loc"][:depth])), ruled(e))
        raise InvalidSweep(_together(path, [f"{where}: {words}" for where, words in found.items()])) from None


def plan(sweep: Sweep, path: Path = Path("sweep"), device: str = "cpu", *, progress: bool = False) -> list[Job]:
    """Every run of the sweep, once; all bad specs are reported at once, before anything runs.

    Every spec is tried, which takes half a minute for a million of them: `progress` shows how far it is.
    """
    backend_for(device)
    total = sum(map(_most_runs, sweep.runs))
    with progress_bar("planned", total, progress and total > WORTH_SHOWING) as advance:
        return _planned(sweep, path, device, advance)


def _most_runs(block: Block) -> int:
    """Runs of a block where every agent has all parameters of its grid."""
    runs = len(_listed(block.env)) * len(_listed(block.episodes)) * len(block.agents) * block.seeds
    return runs * math.prod(len(values) for values in block.grid.values())


def _planned(sweep: Sweep, path: Path, device: str, advance: Meter) -> list[Job]:
    jobs: dict[Job, None] = {}
    wrong: list[str] = []
    for index, block in enumerate(sweep.runs):
        unused = set(block.grid) - {p for a in block.agents for p in _parameters(a)}
        wrong += [f"runs.{index}.grid.{name}: no agent of this block has that parameter" for name in sorted(unused)]
        envs = _listed(block.env)
        if _most_runs(block) > MOST_RUNS:
            wrong.append(f"runs.{index}: a block must have at most {MOST_RUNS} runs")
            continue
        for env in envs:
            try:
                check_no_import(env)
                jobs |= dict.fromkeys(_jobs(block, env, wrong, f"runs.{index}", device, advance))
            except LinMDPError as error:
                wrong.append(f"runs.{index}.env: {error}")
    if wrong:
        raise InvalidSweep(_together(path, list(dict.fromkeys(wrong))))
    return list(jobs)


def _jobs(block: Block, env: str, wrong: list[str], where: str, device: str, advance: Meter) -> Iterator[Job]:
    environment = make_env(env)
    for agent, K in product(block.agents, _listed(block.episodes)):
        for spec in _expand(agent, block.grid):
            job = Job(env, spec, K, block.seed, block.eval_every, device)
            try:
                check_device(job, make_agent(spec, environment, K))
            except LinMDPError as error:
                wrong.append(f"{where}.agents: {error}")
                continue
            yield from (job._replace(seed=block.seed + i) for i in range(block.seeds))
            advance(block.seeds)


def _expand(agent: str, grid: dict[str, list[Value]]) -> Iterator[str]:
    """The agent with every combination of the grid's values for parameters that it has."""
    name, given = parse_spec(agent)
    own = {key: values for key, values in grid.items() if key in _parameters(agent)}
    for values in product(*own.values()):
        yield written_spec(name, {**given, **dict(zip(own, values, strict=True))})


def run_sweep(
    jobs: Sequence[Job], store: Store, *, on_run: Callable[[RunResult], None] | None = None, **how: Any
) -> None:
    """Run what the store does not have yet, and store each unit of work as one transaction when it is finished.

    `on_run` is called with each run once it is stored; `how` are the options of `run_missing`.
    """
    for _, result in run_missing(jobs, store, **how):
        if on_run:
            on_run(result)


def run_missing(
    jobs: Sequence[Job],
    store: Store,
    *,
    processes: int | None = None,
    pool: Pool | None = None,
    progress: bool = False,
    verdict: bool = True,
    shard: Shard = (1, 1),
) -> Generator[tuple[int, RunResult], None, None]:
    """The same, run by run, as they finish: each with its place in `jobs`, when it is stored.

    It runs on `processes` of this machine or on another pool.

    Units are cut from the whole plan, not from what is left of it or from a shard, so that a resumed sweep, and one
    that several machines share, computes the same products in the same batches: its curves are the same, bit for bit.
    """
    keys, done = {job: run_key(job) for job in jobs}, store.keys()
    place_of = {job: place for place, job in enumerate(jobs)}
    left = [unit for unit in shard_of(units(jobs), shard) if not all(keys[job] in done for job in unit)]
    if not left:
        return
    pool = pool or local_pool(left, processes)
    check_fits(left, pool.processes, store.path.parent)
    with closing(run_units(left, pool, progress=progress, verdict=verdict)) as finished:
        for number, results, where in finished:
            fresh = {j: r for j, r in zip(left[number], results, strict=True) if keys[j] not in done}
            store.add([(keys[j], r) for j, r in fresh.items()], where, [place_of[j] + 1 for j in fresh])
            yield from ((place_of[j], r) for j, r in fresh.items())


def run_tried(
    jobs: Sequence[Job],
    store: Store,
    *,
    processes: int | None = None,
    progress: bool = False,
    limit: int | None = None,
) -> dict[Job, str]:
    """Run what the store lacks, each run for itself, and store what comes of it; why some have failed.

    An agent that needs more than `limit` bytes in its largest form has failed.
    """
    done = store.keys()
    left, failed, known = [job for job in jobs if run_key(job) not in done], dict[Job, str](), dict[str, RandomPlay]()
    if not left:
        return failed
    work = [[job] for job in left]
    pool = local_pool(work, processes)
    with (
        progress_bar("episodes", sum(job.episodes for job in left), progress) as advance,
        closing(pool.run(carried(partial(_tried, limit)), work, advance)) as finished,
    ):
        for place, found, where in finished:
            job = left[place]
            if isinstance(found, str):
                failed[job] = found
                continue
            played = found.interactions
            beside_random_play(job, found, known)
            found.interactions = played  # without those of the judge
            store.add([(run_key(job), found)], where)
    return failed


def _tried(limit: int | None, unit: Sequence[Job], advance: Advance) -> RunResult | str:
    """A run, or why it has failed."""
    (job,) = unit
    try:
        with without_warnings():
            if limit is not None:
                made_to_stay(job.agent, make_env(job.env), job.episodes, limit)
        return run_counted(unit, advance)[0]
    except Exception as error:  # of an agent that someone else wrote, anything
        return described(error)


def run_key(job: Job) -> str:
    """The hash of a run's full configuration: all that its numbers depend on."""
    kept_beside = ("checkpoint", "every", "save")
    return Store.key({name: value for name, value in job._asdict().items() if name not in kept_beside})


def shard_of(work: Sequence[Any], shard: Shard) -> Sequence[Any]:
    """Every n-th piece of work, from the i-th on."""
    return work[shard[0] - 1 :: shard[1]]


def parsed_shard(command: str, text: str) -> Shard:
    """ "2/8" as (2, 8)."""
    place, slash, count = text.partition("/")
    if not (slash and place.isdecimal() and count.isdecimal() and 1 <= int(place) <= int(count)):
        invalid(command, "shard", "i/n with 1 <= i <= n, as in 2/8", text)
    return int(place), int(count)


def _listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


def _parameters(agent: str) -> set[str]:
    try:
        return set(agent_parameters(parse_spec(agent)[0]))
    except (KeyError, LinMDPError):
        return set()  # an unknown agent is reported where it is made


def _together(path: Path, found: Sequence[str]) -> str:
    """One error in one line; several in a line each."""
    lines = [one_line(words, 400) for words in found]
    if len(lines) == 1:
        return f"The sweep file '{path}' has 1 error: {lines[0]}"
    return "\n  ".join([f"The sweep file '{path}' has {len(lines)} errors:", *lines])
