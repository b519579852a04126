"""Names of environments and agents, and how each is made from its spec."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, cast

from linmdp.agents import (
    LSVIPHE,
    LSVIUCB,
    ConstantAgent,
    LSVIUCBAdaptive,
    LSVIUCBFixed,
    LSVIUCBFold,
    LSVIUCBRareSwitch,
    OptimalAgent,
    QLearning,
    QLearningGreedy,
    RandomAgent,
)
from linmdp.agents.base import Agent
from linmdp.agents.sb3 import SB3DQN, SB3PPO, SB3Agent
from linmdp.envs.base import LinearModel
from linmdp.envs.catalog import FAMILIES
from linmdp.envs.linearized import linearized, linearized_model
from linmdp.errors import InvalidParameter, check_int, unknown
from linmdp.runner.guard import task_of
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
        LSVIUCBRareSwitch,
        LSVIPHE,
        QLearning,
        QLearningGreedy,
        RandomAgent,
        OptimalAgent,
        ConstantAgent,
    )
}
SB3_AGENTS: dict[str, type[SB3Agent]] = {agent.name: agent for agent in (SB3DQN, SB3PPO)}
"""Agents of another library, which drives the environment itself; they need the extra `baselines`."""

ENVS = (*FAMILIES, "linearized", "rddl", "gym")


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
    if name in ("linearized", "rddl"):
        check_names(name, parameters, env_parameters(name))
        make: Any = env_maker(name)
        return cast("Env", make(**parameters))
    return LinearMDPEnv(make_model(spec))


def make_model(spec: str) -> LinearModel:
    """The model of a spec, where it is known; needs no Gymnasium."""
    name, parameters = parse_spec(spec)
    if name not in FAMILIES and name != "linearized":
        unknown("environment", name, ENVS)
    make: Any = linearized_model if name == "linearized" else FAMILIES[name]
    check_names(name, parameters, keyword_parameters(make))
    model: LinearModel = make(**parameters)
    return model


def model_known(spec: str) -> bool:
    """Whether the environment of a spec has a linear model, hence V* and exact regret."""
    name, parameters = parse_spec(spec)
    return name in FAMILIES or (name == "linearized" and parameters.get("mode") == "model")


def optimum_known(spec: str) -> bool:
    """Whether V* is known; more often than a model that runs in lockstep can use."""
    return model_known(spec) or parse_spec(spec)[0] == "rddl"


def make_agent(spec: str, env: Any, episodes: int | None = None) -> Agent:
    """The agent of a spec, for the task of `env`; `episodes` is K, for parameters that depend on it."""
    task, env = task_of(env), env.unwrapped
    name, parameters = parse_spec(spec)
    if name in SB3_AGENTS:
        check_names(name, parameters, agent_parameters(name))
        from linmdp.envs.raw import RawEpisodes

        return SB3_AGENTS[name](task, raw=RawEpisodes(env), episodes=episodes, **parameters)
    if name != OptimalAgent.name:
        return make_learner(spec, task, episodes)
    check_names(name, parameters, agent_parameters(name))
    if getattr(env, "model", None) is None:
        raise InvalidParameter(
            "The optimal policy is known only where the model is: not for gym environments and games."
        )
    make: Any = OptimalAgent
    agent: Agent = make(task, Q=env.optimum.Q, **parameters)
    return agent


def make_learner(spec: str, task: Task, episodes: int | None = None) -> Agent:
    """The agent of a spec that needs to know no more than its task."""
    name, parameters = parse_spec(spec)
    if name not in AGENTS:
        unknown("agent", name, (*AGENTS, *SB3_AGENTS))
    known = agent_parameters(name)
    check_names(name, parameters, known)
    if episodes is not None and "episodes" in known:
        parameters.setdefault("episodes", check_int(name, "episodes", episodes, low=1))
    make: Any = AGENTS[name]
    agent: Agent = make(task, **parameters)
    return agent


def env_parameters(name: str) -> dict[str, inspect.Parameter]:
    """Parameters of an environment and their defaults."""
    return keyword_parameters(env_maker(name))


def env_maker(name: str) -> Callable[..., Any]:
    """Whatever makes the environments of that name: it carries their documentation and their parameters."""
    from linmdp.envs.adapter import GymTask
    from linmdp.envs.rddl import RDDLTask

    makers: dict[str, Callable[..., Any]] = {"gym": GymTask, "linearized": linearized, "rddl": RDDLTask, **FAMILIES}
    return makers[name]


def agent_parameters(name: str) -> dict[str, inspect.Parameter]:
    """Parameters of an agent and their defaults; what planning supplies (Q of the optimal agent) is left out."""
    agent: type[Agent] = AGENTS[name] if name in AGENTS else SB3_AGENTS[name]
    return {key: p for key, p in agent.parameters().items() if key != "Q"}
