"""`linmdp check`: is it a linear MDP, will this agent ever learn, how many bytes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from linmdp.agents.base import Agent
from linmdp.agents.lsvi import LSVIAgent
from linmdp.envs.base import LinearModel
from linmdp.envs.checks import Finding, check_linear
from linmdp.envs.planning import policy_value, uniform_policy
from linmdp.errors import check_int
from linmdp.io.units import human_bytes
from linmdp.runner.env_check import check_behaviour
from linmdp.runner.forecast import forecast
from linmdp.runner.registry import env_parameters, make_agent, make_env
from linmdp.runner.spec import parse_spec

if TYPE_CHECKING:
    from linmdp.runner.registry import Env


def check_env(spec: str, agent: str | None, episodes: int) -> bool:
    """Print the verdicts; False if the environment is not a linear MDP or, where that is not known, misbehaves."""
    check_int("check", "episodes", episodes, low=1)
    env = make_env(spec)
    learner = make_agent(agent, env, episodes) if agent else None
    task = env.task
    print(f"{spec}: S={task.S}, A={task.A}, d={task.d}, H={task.H}, features {human_bytes(task.features.nbytes)}")
    ok = True
    if env.model is None:
        print("  The model is not known, so neither is V*: rewards can be measured, regret cannot.")
        ok = _print_findings(check_behaviour(env))
        print(f"  It {'behaves' if ok else 'does NOT behave'}.")
    elif not isinstance(env.model, LinearModel):
        print("  The model is known, so V* and regret are exact; it is NOT linear in these features.")
        first = int(env.reset(seed=0)[0])
        _print_values(env, first)
    else:
        ok = _print_findings(check_linear(env.model))
        for model in getattr(env, "models", ()):  # mixtures of these, too, are linear MDPs if these are
            ok = ok and all(finding.ok for finding in check_linear(model))
        print(f"  It is {'' if ok else 'NOT '}a linear MDP{' in every episode' * hasattr(env, 'models')}.")
        _print_values(env, 0)
        _print_variation(env, episodes)
    _check_linearity(spec)
    if learner:
        print(f"{agent}, {episodes:,} episodes:")
        _check_agent(env, learner, episodes)
    return ok


def _print_findings(findings: list[Finding]) -> bool:
    for finding in findings:
        print(f"  {'yes' if finding.ok else 'NO '}  {finding.text}")
    return all(finding.ok for finding in findings)


def _print_values(env: Any, state: int) -> None:
    best = env.unwrapped.optimum.V[0, state]
    lost = best - policy_value(env.model, uniform_policy(env.model))[0, state]
    print(f"  From state {state} the optimal policy earns {best:.4g} per episode; a random one loses {lost:.4g} of it.")


def _print_variation(env: Any, episodes: int) -> None:
    """Of a model that drifts: how much, and the window that the theory of restarts would take."""
    if not hasattr(env, "variation"):
        return
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
    print(f"  memory: {human_bytes(agent.nbytes)} now, at most {human_bytes(agent.bytes_after(episodes))} then")
    if isinstance(agent, LSVIAgent) and isinstance(env.model, LinearModel):
        print("  " + forecast(agent, env.model, episodes))
