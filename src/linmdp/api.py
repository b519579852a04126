"""In one call what `linmdp compare`, `sweep` and `benchmark` do, for Python and notebooks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import ExitStack, closing
from functools import partial
from itertools import count
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from linmdp.agents.base import Agent
from linmdp.envs.guard import name_of
from linmdp.envs.linear import LinearMDPEnv
from linmdp.errors import InvalidParameter
from linmdp.experiments.benchmark import run_benchmark
from linmdp.experiments.suite import LATEST
from linmdp.io.files import output_folder
from linmdp.report.benchmark import Benchmark
from linmdp.report.comparison import Comparison
from linmdp.report.narrative import decisions
from linmdp.results.store import Store
from linmdp.results.verdict import verdict as verdict_of
from linmdp.runner.batch import jobs_for, run_jobs
from linmdp.runner.execute import AUTO, checked_seeds, run_until_decided
from linmdp.runner.registry import AGENTS, ENVS, with_baselines
from linmdp.runner.spec import written_spec
from linmdp.runner.sweep import check_sweep, plan, read_sweep, run_key, run_sweep

AgentLike = str | type[Agent] | tuple[Any, Mapping[str, Any]] | partial[Any]
_numbers = count(1)


def compare(
    env: Any,
    agents: AgentLike | Sequence[AgentLike],
    *,
    episodes: int = 1000,
    seeds: int | str = 3,
    seed: int = 0,
    eval_every: int = 1,
    jobs: int | None = None,
    progress: bool = False,
    baselines: bool = True,
    verdict: bool = True,
) -> Comparison:
    """Run agents on the same seeds, with the random and (where it is known) the optimal policy beside them.

    Parameters
    ----------
    env : a spec, an environment or a `LinearModel`
    agents : each a spec, a class (registered or not), a pair (class, parameters) or a `functools.partial` of a class
    episodes, seeds, seed : K, how many seeds ("auto": until it is decided who differs), and the first of them
    eval_every : evaluate regret in every n-th episode only, and hold it in between
    jobs : processes; default: all cores
    baselines : False leaves the random and the optimal policy out
    verdict : False leaves out the verdicts, and the random play that they compare with
    """
    with ExitStack() as scope:
        spec = _env_spec(env, scope)
        specs = _agent_specs(agents, scope)
        everyone = with_baselines(spec, specs)
        chosen = everyone if baselines else specs
        how: dict[str, Any] = {"episodes": episodes, "seed": seed, "eval_every": eval_every}
        planned = jobs_for(spec, chosen, seeds=checked_seeds(seeds, specs), **how)
        run = partial(run_jobs, processes=jobs, progress=progress, verdict=verdict)
        if seeds == AUTO:
            results, test = run_until_decided(planned, specs, run)
            said = decisions(test, results[0].regret is not None)
        else:
            results, said = list(run(planned)), []
    if not isinstance(env, str):
        for result in results:
            result.env = name_of(env)
            result.verdict = verdict_of([result])  # which names it
    return Comparison(results, said)


def sweep(
    spec: str | Path | Mapping[str, Any],
    *,
    out: str | Path | None = None,
    jobs: int | None = None,
    progress: bool = False,
) -> Comparison:
    """Every run of a sweep: a TOML file, or its content as a dictionary.

    With `out`, a folder, runs are stored as they finish and those that are stored are not run again; curves are then
    as stored, which may be thinned.
    """
    planned = plan(check_sweep(spec)) if isinstance(spec, Mapping) else plan(read_sweep(Path(spec)), Path(spec))
    if out is None:
        return Comparison(run_jobs(planned, processes=jobs, progress=progress))
    with closing(Store(output_folder(Path(out)))) as store:
        run_sweep(planned, store, processes=jobs, progress=progress)
        return Comparison(store.results({run_key(job) for job in planned}))


def benchmark(
    agents: AgentLike | Sequence[AgentLike],
    *,
    suite: str = LATEST,
    scale: str = "quick",
    out: str | Path | None = None,
    jobs: int | None = None,
    progress: bool = False,
    perturb: str | Sequence[str] = (),
    leave_out: bool = False,
    warm_up: str | None = None,
) -> Benchmark:
    """Scores of agents on a fixed suite, from 0 (random policy) to 1 (best known).

    Parameters
    ----------
    agents : each a spec, a class (registered or not), a pair (class, parameters) or a `functools.partial` of a class
    suite : "1", or "general" for the general suite
    scale : "quick" (minutes, few seeds) or "full" (hours, more seeds)
    out : a folder: runs are stored as they finish and those that are stored are not run again
    jobs : processes; default: all cores
    perturb : of the general suite: names of changes that must not matter, or "all"; what each costs
    leave_out : the agents after the first are variants of it, which are compared with it
    warm_up : whether random play before the first episode is "counted" (in the general suite) or "given" (in suite 1)
    """
    names = [perturb] if isinstance(perturb, str) else perturb
    more: dict[str, Any] = {"perturb": names, "leave_out": leave_out, "warm_up": warm_up}
    with ExitStack() as scope:
        specs = _agent_specs(agents, scope)
        folder = Path(scope.enter_context(TemporaryDirectory()) if out is None else out)
        store = scope.enter_context(closing(Store(output_folder(folder))))
        found = run_benchmark(specs, store, version=suite, scale=scale, processes=jobs, progress=progress, **more)
    assert found is not None  # it is no shard
    return found


def _env_spec(env: Any, scope: ExitStack) -> str:
    """The spec of an environment; an object goes by a name of its own until the comparison is over."""
    if isinstance(env, str):
        return env
    found = env.model if type(env) is LinearMDPEnv else env  # the model alone, so that runs can share products
    name = f"given-{next(_numbers)}"
    scope.enter_context(ENVS.temporarily(name, lambda: found))
    return name


def _agent_specs(agents: Any, scope: ExitStack) -> list[str]:
    """The specs of one agent or of several."""
    pair = isinstance(agents, tuple) and isinstance(agents[-1], Mapping)
    given = [agents] if pair or isinstance(agents, str | type | partial) else agents
    return [_agent_spec(agent, scope) for agent in given]


def _agent_spec(agent: Any, scope: ExitStack) -> str:
    """The spec of an agent; a class that is not registered goes by its name until the comparison is over."""
    parameters: Mapping[str, Any] = {}
    if isinstance(agent, partial) and not agent.args:
        agent, parameters = agent.func, agent.keywords
    elif isinstance(agent, tuple) and len(agent) == 2 and isinstance(agent[1], Mapping):
        agent, parameters = agent
    if isinstance(agent, str) and not parameters:
        return agent
    if not (isinstance(agent, type) and issubclass(agent, Agent)):
        kinds = "a spec, a class, (class, parameters) or a functools.partial with keywords"
        raise InvalidParameter(f"An agent of a comparison must be {kinds}. Got {agent!r:.80}.")
    name = str(getattr(agent, "name", None))
    if AGENTS.get(name) is not agent:
        scope.enter_context(AGENTS.temporarily(name, agent))
    return written_spec(name, parameters)
