"""`linmdp check`: is it a linear MDP, will this agent ever learn, how many bytes."""

from __future__ import annotations

import math
import re
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from linmdp.agents.base import Agent
from linmdp.agents.lsvi import LSVIAgent
from linmdp.envs.base import Finding, LinearModel, check_linear
from linmdp.envs.drift import DriftingEnv
from linmdp.envs.guard import Guard
from linmdp.envs.planning import policy_value, uniform_policy
from linmdp.errors import LinMDPError, check_int
from linmdp.io.memory import available_memory
from linmdp.io.units import human_bytes
from linmdp.plugins import imports
from linmdp.runner.batch import Job
from linmdp.runner.env_check import check_behaviour, forecast
from linmdp.runner.registry import env_parameters, make_agent, make_env
from linmdp.runner.spec import parse_spec
from linmdp.runner.start import LESS, TRIAL, TooLarge, in_words, job_seconds, made_within

if TYPE_CHECKING:
    from linmdp.runner.registry import Env

TOO_MUCH = f"more than it may take: {LESS}."
WHILE = 600.0
"""Seconds that a suggested run may take."""


def print_check(spec: str, agent: str | None, episodes: int) -> bool:
    """Print the verdicts; False if the environment is not a linear MDP or, where that is not known, misbehaves."""
    check_int("check", "episodes", episodes, low=1)
    env = make_env(spec)
    try:
        learner, least = made_within(agent, env, episodes, available_memory()) if agent else None, 0
    except TooLarge as error:
        learner, least = None, error.needed
    task = env.task
    print(f"{spec}: S={task.S}, A={task.A}, d={task.d}, H={task.H}, features {human_bytes(task.features.nbytes)}")
    ok, findings = True, list[Finding]()
    if env.model is None:
        print("  The model is not known, so neither is V*: rewards can be measured, regret cannot.")
        findings = check_behaviour(env)
        ok = _print_findings(findings)
        print(f"  It {'behaves' if ok else 'does NOT behave'}.")
    elif not isinstance(env.model, LinearModel):
        print("  The model is known, so V* and regret are exact; it is NOT linear in these features.")
        first = int(Guard(env).reset(0, 0))
        _print_values(env, first)
    else:
        ok = _print_findings(check_linear(env.model))
        models = env.models if isinstance(env, DriftingEnv) else ()
        for model in models:  # mixtures of these, too, are linear MDPs if these are
            ok = ok and all(finding.ok for finding in check_linear(model))
        print(f"  It is {'' if ok else 'NOT '}a linear MDP{' in every episode' * bool(models)}.")
        _print_values(env, 0)
        if isinstance(env, DriftingEnv):
            _print_variation(env, episodes)
    _check_linearity(spec)
    if agent:
        print(f"{agent}, {episodes:,} episodes:")
    if learner:
        _check_agent(env, learner, episodes)
    elif agent:
        print(f"  memory: {human_bytes(least)} from the start, {TOO_MUCH}")
    if env.model is None:
        print(f"try: {suggested(spec, agent, env, episodes) if ok else _repaired(spec, findings)}")
    return ok


def suggested(spec: str, agent: str | None, env: Env, episodes: int) -> str:
    """A command that can be run here: within memory, and in ten minutes or so."""
    usual = "lsvi-ucb" if env.task.S is not None else "auto"
    available = available_memory() or math.inf
    for name in filter(None, (agent, usual, "auto", "lsvi-ucb:max_bytes=64MiB")):
        with suppress(LinMDPError):  # 64 MiB may be too few, and what goes wrong in a run is for the run to say
            learner = made_within(name, env, episodes, available)
            if (
                size := learner.bytes_after(episodes)
            ) > available:  # before a trial run, after which it may know better
                continue
            seconds = job_seconds(Job(spec, name, episodes, 0, 1), env, learner, seconds=TRIAL)
            if seconds > WHILE:
                episodes = max(1, int(float(f"{episodes * WHILE / seconds:.0e}")))
                size = make_agent(name, env, episodes).bytes_after(episodes)
            words = f"{in_words(min(seconds, WHILE))}, at most {human_bytes(size)}"
            return f"linmdp run {spec} {name} --episodes {episodes}{imports()}  # {words}"
    return f"linmdp run {spec} {agent or usual} --episodes {episodes}{imports()}"


def _repaired(spec: str, findings: list[Finding]) -> str:
    """The next check, with what the findings say is to be given."""
    texts = " ".join(finding.text for finding in findings if not finding.ok)
    given = re.search(r"Give ((reward_\w+)=[-+.\de]+\d)", texts)
    if not given:
        return f"linmdp check {spec}{imports()} again when that is mended"
    return f"linmdp check {re.sub(rf',{given[2]}=[^,]*', '', spec)},{given[1]}{imports()}"


def _print_findings(findings: list[Finding]) -> bool:
    for finding in findings:
        print(f"  {'yes' if finding.ok else 'NO '}  {finding.text}")
    return all(finding.ok for finding in findings)


def _print_values(env: Any, state: int) -> None:
    best = env.unwrapped.optimum.V[0, state]
    lost = best - policy_value(env.model, uniform_policy(env.model))[0, state]
    print(f"  From state {state} the optimal policy earns {best:.4g} per episode; a random one loses {lost:.4g} of it.")


def _print_variation(env: DriftingEnv, episodes: int) -> None:
    """Of a model that drifts: how much, and the window that the theory of restarts would take."""
    theta, mu = env.variation(episodes)
    changes, moved = len(env.changes(episodes)), theta + mu
    words = "; the theory of restarts has a window of sqrt(dK/B)"
    window = f"{words} = {(env.task.d * episodes / moved) ** 0.5:.3g}" if moved else ""
    print(f"  In {episodes:,} episodes it changes {changes:,} times: B = {theta:.4g} + {mu:.4g} (theta, mu){window}.")


def _check_linearity(spec: str) -> None:
    """Of a linearized environment: how linear is the game in these features?"""
    name, parameters = parse_spec(spec)
    if name != "linearized":
        return
    from linmdp.features.learned import read_model
    from linmdp.linearize.measure import linearity, sentences

    learned = read_model(str(parameters.get("model", env_parameters(name)["model"].default)))
    print(f"  How linear is '{learned.env_id}' in these features, on transitions that training did not see?")
    for line in sentences(linearity(learned)):
        print(f"    {line}")


def _check_agent(env: Env, agent: Agent, episodes: int) -> None:
    then, available = agent.bytes_after(episodes), available_memory()
    too_much = f", {TOO_MUCH}" if available is not None and then > available else ""
    print(f"  memory: {human_bytes(agent.nbytes)} now, at most {human_bytes(then)} then{too_much}")
    if isinstance(agent, LSVIAgent) and isinstance(env.model, LinearModel):
        print("  " + forecast(agent, env.model, episodes))
