"""Names of environments and agents, and how each is made from its spec."""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Any, cast

from linmdp.agents import (
    LSVIUCB,
    ConstantAgent,
    LSVIUCBAdaptive,
    LSVIUCBFixed,
    LSVIUCBFold,
    OptimalAgent,
    RandomAgent,
)
from linmdp.agents.base import Agent
from linmdp.envs.base import LinearModel
from linmdp.envs.catalog import FAMILIES
from linmdp.errors import InvalidParameter, check_int, unknown
from linmdp.runner.spec import check_names, keyword_parameters, parse_spec
from linmdp.types import Task

if TYPE_CHECKING:
    from linmdp.envs.adapter import GymTask
    from linmdp.envs.linear import LinearMDPEnv

    Env = LinearMDPEnv | GymTask

AGENTS: dict[str, type[Agent]] = {
    agent.name: agent
    for agent in (
        LSVIUCB,
        LSVIUCBFixed,
        LSVIUCBAdaptive,
        LSVIUCBFold,
        RandomAgent,
        OptimalAgent,
        ConstantAgent,
    )
}
ENVS = (*FAMILIES, "gym")


def make_env(spec: str) -> Env:
    """The environment of a spec: `"synthetic:S=500,seed=0"` or `"gym:FrozenLake-v1,H=100"`."""
    from linmdp.envs.adapter import GymTask
    from linmdp.envs.linear import LinearMDPEnv

    name, parameters = parse_spec(spec)
    if name == "gym":
        if not isinstance(parameters.get("id"), str):
            raise InvalidParameter("The 'id' parameter of gym must be given, as in gym:FrozenLake-v1.")
        gym_task: Any = GymTask
        try:
            return cast(GymTask, gym_task(**parameters))
        except TypeError as error:
            raise InvalidParameter(f"'{spec}' has a parameter that can not be given: {error}.") from error
    return LinearMDPEnv(make_model(spec))


def make_model(spec: str) -> LinearModel:
    """The model of a built-in family's spec; needs no Gymnasium."""
    name, parameters = parse_spec(spec)
    if name not in FAMILIES:
        unknown("environment", name, ENVS)
    check_names(name, parameters, keyword_parameters(FAMILIES[name]))
    return FAMILIES[name](**parameters)


def make_agent(spec: str, env: Any, episodes: int | None = None) -> Agent:
    """The agent of a spec, for the task of `env`; `episodes` is K, for parameters that depend on it."""
    env = env.unwrapped
    name, parameters = parse_spec(spec)
    if name != OptimalAgent.name:
        return make_learner(spec, env.task, episodes)
    check_names(name, parameters, agent_parameters(name))
    if getattr(env, "model", None) is None:
        raise InvalidParameter("The optimal policy is known only where the model is: not for gym environments.")
    return OptimalAgent(env.task, Q=env.optimum.Q)


def make_learner(spec: str, task: Task, episodes: int | None = None) -> Agent:
    """The agent of a spec that needs to know no more than its task."""
    name, parameters = parse_spec(spec)
    if name not in AGENTS:
        unknown("agent", name, AGENTS)
    known = agent_parameters(name)
    check_names(name, parameters, known)
    if episodes is not None and "episodes" in known:
        parameters.setdefault("episodes", check_int(name, "episodes", episodes, low=1))
    make: Any = AGENTS[name]
    agent: Agent = make(task, **parameters)
    return agent


def env_parameters(name: str) -> dict[str, inspect.Parameter]:
    """Parameters of an environment and their defaults."""
    from linmdp.envs.adapter import GymTask

    return keyword_parameters(GymTask if name == "gym" else FAMILIES[name])


def agent_parameters(name: str) -> dict[str, inspect.Parameter]:
    """Parameters of an agent and their defaults; what planning supplies (Q of the optimal agent) is left out."""
    return {key: p for key, p in AGENTS[name].parameters().items() if key != "Q"}
