"""Names of environments and agents, and how each is made from its spec."""

from __future__ import annotations

import inspect
from typing import Any, cast

from linmdp.agents import LSVIUCB, ConstantAgent, LSVIUCBAdaptive, LSVIUCBFixed, OptimalAgent, RandomAgent
from linmdp.agents.base import Agent
from linmdp.envs.adapter import GymTask
from linmdp.envs.linear import FAMILIES, LinearMDPEnv
from linmdp.errors import InvalidParameter, check_int, unknown
from linmdp.runner.spec import check_names, keyword_parameters, parse_spec

Env = LinearMDPEnv | GymTask

AGENTS: dict[str, type[Agent]] = {
    agent.name: agent for agent in (LSVIUCB, LSVIUCBFixed, LSVIUCBAdaptive, RandomAgent, OptimalAgent, ConstantAgent)
}
ENVS = (*FAMILIES, "gym")


def make_env(spec: str) -> Env:
    """The environment of a spec: `"synthetic:S=500,seed=0"` or `"gym:FrozenLake-v1,H=100"`."""
    name, parameters = parse_spec(spec)
    if name not in ENVS:
        unknown("environment", name, ENVS)
    if name == "gym":
        if not isinstance(parameters.get("id"), str):
            raise InvalidParameter("The 'id' parameter of gym must be given, as in gym:FrozenLake-v1.")
        gym_task: Any = GymTask
        return cast(GymTask, gym_task(**parameters))
    check_names(name, parameters, env_parameters(name))
    return LinearMDPEnv(FAMILIES[name](**parameters))


def make_agent(spec: str, env: Any, episodes: int | None = None) -> Agent:
    """The agent of a spec, for the task of `env`; `episodes` is K, for parameters that depend on it."""
    name, parameters = parse_spec(spec)
    if name not in AGENTS:
        unknown("agent", name, AGENTS)
    known = agent_parameters(name)
    check_names(name, parameters, known)
    if episodes is not None and "episodes" in known:
        parameters.setdefault("episodes", check_int(name, "episodes", episodes, low=1))
    env = env.unwrapped
    if name == OptimalAgent.name:
        if getattr(env, "model", None) is None:
            raise InvalidParameter("The optimal policy is known only where the model is: not for gym environments.")
        return OptimalAgent(env.task, Q=env.optimum.Q)
    make: Any = AGENTS[name]
    agent: Agent = make(env.task, **parameters)
    return agent


def env_parameters(name: str) -> dict[str, inspect.Parameter]:
    """Parameters of an environment and their defaults."""
    return keyword_parameters(GymTask if name == "gym" else FAMILIES[name])


def agent_parameters(name: str) -> dict[str, inspect.Parameter]:
    """Parameters of an agent and their defaults; what planning supplies (Q of the optimal agent) is left out."""
    return {key: p for key, p in AGENTS[name].parameters().items() if key != "Q"}
