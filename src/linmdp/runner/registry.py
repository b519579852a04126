"""Names of environments and agents, and how each is made from its spec.

Gymnasium is imported where an environment is made: agents and models need NumPy alone.
"""

from __future__ import annotations

import difflib
import inspect
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import lru_cache, partial
from operator import attrgetter
from typing import TYPE_CHECKING, Any, TypeVar, cast, overload

import linmdp.agents as built_in
from linmdp.agents.base import Agent
from linmdp.agents.sb3 import SB3DQN, SB3PPO, SB3Agent, SB3DQNFew, SB3PPOFew
from linmdp.envs.base import LinearModel
from linmdp.envs.guard import task_of
from linmdp.envs.linear_mdps import LINEAR_MDPS
from linmdp.envs.linearized import linearized, linearized_model
from linmdp.envs.planning import optimum
from linmdp.errors import (
    FAULTS,
    InvalidData,
    InvalidParameter,
    LinMDPError,
    check_int,
    described,
    invalid,
    shown,
    unknown,
)
from linmdp.plugins import Decorator, Maker, Names, check_maker, settable
from linmdp.runner.spec import Value, check_names, extended_spec, parse_spec
from linmdp.types import Task

if TYPE_CHECKING:
    from linmdp.envs.adapter import GymTask
    from linmdp.envs.linear import LinearMDPEnv

    Env = LinearMDPEnv | GymTask

AgentClass = TypeVar("AgentClass", bound=type[Agent])
SB3_AGENTS: dict[str, type[SB3Agent]] = {agent.name: agent for agent in (SB3DQN, SB3DQNFew, SB3PPO, SB3PPOFew)}
"""Agents of another library, which drives the environment itself; they need the extra `baselines`."""


def _check_agent(name: str, cls: type[Agent]) -> None:
    if not (isinstance(cls, type) and issubclass(cls, Agent)) or inspect.isabstract(cls):
        missing = ", ".join(sorted(getattr(cls, "__abstractmethods__", ())))
        rule = f"define {missing}." if missing else f"be a class derived from linmdp.Agent. Got {cls!r:.80}."
        raise InvalidParameter(f"The agent '{name}' must {rule}")
    if getattr(cls, "name", None) != name or name in SB3_AGENTS:
        raise InvalidParameter(
            f"The agent '{name}' must have that name and no built-in one. Got name={getattr(cls, 'name', None)!r}."
        )
    given = [p for p in inspect.signature(cls).parameters.values() if p.kind is not p.VAR_KEYWORD]
    if not given or given[0].name != "task":
        raise InvalidParameter(f"The first parameter of {name} must be 'task'. Got {[p.name for p in given[:1]]}.")
    for p in given[1:]:
        if p.kind is not p.KEYWORD_ONLY or p.default is p.empty:
            raise InvalidParameter(f"The '{p.name}' parameter of {name} must be keyword-only and have a default.")


_BUILT_IN: list[type[Agent]] = [
    found for found in vars(built_in).values() if isinstance(found, type) and found != Agent
]
AGENTS: Names[type[Agent]] = Names(
    "agent",
    "linmdp.agents",
    {agent.name: agent for agent in sorted(_BUILT_IN, key=attrgetter("name"))}
    | {"lsvi-ucb-fold": built_in.Auto},  # its old name
    _check_agent,
)
BUILT_IN = (*LINEAR_MDPS, "drift", "linearized", "general", "bsuite", "gym")
ENVS: Names[Callable[..., Any]] = Names(
    "environment",
    "linmdp.envs",
    {
        **LINEAR_MDPS,
        "drift": "linmdp.envs.drift:drift",
        "linearized": linearized,
        "general": "linmdp.envs.general:general",
        "bsuite": "linmdp.envs.bsuite:bsuite",
        "gym": "linmdp.envs.adapter:GymTask",
    },
    partial(check_maker, "environment", positional=0),
)
"""What makes each environment, with its parameters and their defaults."""


def register_agent(cls: AgentClass) -> AgentClass:
    """Make an agent available by its `name`, in `make_agent` and on the command line; also a decorator of the class."""
    name = getattr(cls, "name", None)
    if not isinstance(name, str):
        raise InvalidParameter(f"An agent must be a class derived from linmdp.Agent, with a 'name'. Got {cls!r:.80}.")
    AGENTS.register(name, cls)
    return cls


@overload
def register_env(name: str, maker: Maker) -> Maker: ...
@overload
def register_env(name: str) -> Decorator[Any]: ...
def register_env(name: str, maker: Any = None) -> Any:
    """Make an environment available by name; without `maker`, a decorator of the function that makes it.

    `maker` takes keyword parameters, each with a default, and returns a `LinearModel`, a Gymnasium environment with a
    `task` (and a `model`, where regret is to be exact), or any Gymnasium environment with discrete actions: that is
    wrapped by `GymTask`, whose parameters (`H`, `features`, ...) can then be given beside its own.
    """
    return ENVS.register(name, maker)


def make_env(spec: Any, **options: Any) -> Env:
    """The environment of a spec, `"synthetic:S=500,seed=0"` or `"gym:FrozenLake-v1,H=100"`, or around an object.

    `options` are further parameters, such as `history=3` of what a `GymTask` is put around.

    A model becomes its environment, a raw Gymnasium environment a `GymTask` around it, and so does a vector
    environment, of which the first stream is played. An environment that has a task is returned as it is.
    """
    if not isinstance(spec, str):
        return cast("Env", with_task(spec, **options))
    spec = extended_spec(spec, options)
    env = _env_of(spec)
    with suppress(AttributeError):  # of a class of someone else's
        env.made_from = spec
    return env


def with_task(env: Any, **options: Any) -> Any:
    """`env` with what agents need to know of it; `options` are those of the `GymTask` that is put around it."""
    import gymnasium

    from linmdp.envs.adapter import GymTask
    from linmdp.envs.linear import LinearMDPEnv
    from linmdp.envs.streams import FirstStream

    known = env if isinstance(env, LinearModel) else getattr(getattr(env, "unwrapped", env), "task", None)
    if isinstance(known, Task | LinearModel):
        for name, value in options.items():
            invalid(type(env).__name__, name, "left out of what has a task already", value)
        return env if isinstance(known, Task) else LinearMDPEnv(known)
    if isinstance(env, gymnasium.vector.VectorEnv):
        env = FirstStream(env)
    if not isinstance(env, gymnasium.Env):
        rule = "text such as 'gym:CartPole-v1', a Gymnasium environment, or a model"
        raise InvalidParameter(f"An environment must be {rule}. Got {shown(env)}.")
    return GymTask(env, **options)


def _env_of(spec: str) -> Env:
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
            raise InvalidParameter(f"'{spec}' has a parameter that cannot be given: {error}.") from error
    if name in ("linearized", "drift"):
        if name != "drift":  # which also takes those of its base, and checks them itself
            check_names(name, parameters, env_parameters(name))
        return cast("Env", ENVS[name](**parameters))
    if name in LINEAR_MDPS or name not in ENVS:
        return LinearMDPEnv(make_model(spec))
    return _registered_env(name, parameters)


def _registered_env(name: str, parameters: dict[str, Value]) -> Env:
    """Whatever the maker returns, as an environment with a task, a model (or None) and, with a model, its optimum."""
    from linmdp.envs.adapter import GymTask
    from linmdp.envs.linear import LinearMDPEnv
    from linmdp.envs.mapping import map_parameters

    own = env_parameters(name)
    mine = {key: value for key, value in parameters.items() if key in own}
    rest = {key: value for key, value in parameters.items() if key not in own}
    made = _made(name, mine)
    inner = getattr(made, "unwrapped", None)
    if isinstance(made, LinearModel) or isinstance(getattr(inner, "task", None), Task):
        check_names(name, rest, own)
    if isinstance(made, LinearModel):
        return LinearMDPEnv(made)
    if inner is None:
        raise InvalidData(
            f"The maker of '{name}' must return a Gymnasium environment or a LinearModel. Got {made!r:.80}."
        )
    if not isinstance(getattr(inner, "task", None), Task):
        check_names(name, rest, own | settable(GymTask) | map_parameters(rest.get("features")))
        return cast(GymTask, with_task(made, **rest))
    if getattr(inner, "model", None) is None:
        inner.model = None
    elif not hasattr(inner, "optimum"):
        inner.optimum = optimum(inner.model)
    made.task, made.model = inner.task, inner.model  # of a wrapper, which does not pass them on
    return cast("Env", made)


def _made(name: str, parameters: dict[str, Value]) -> Any:
    try:
        return ENVS[name](**parameters)
    except LinMDPError:
        raise
    except FAULTS as error:
        words = f"The environment '{name}' cannot be made with {parameters}: {described(error, 300)}."
        raise InvalidParameter(words) from error


def _meant(name: str) -> str | None:
    """The Gymnasium environment whose id is nearly this, as a spec."""
    import gymnasium

    ids = {id.lower(): f"gym:{id}" for id in gymnasium.registry}
    near = difflib.get_close_matches(name.lower(), ids, n=1, cutoff=0.8)
    return ids[near[0]] if near else None


def make_model(spec: str) -> LinearModel:
    """The model of a spec, where it is known; needs no Gymnasium."""
    name, parameters = parse_spec(spec)
    if name not in ENVS or name in ("drift", "general", "bsuite", "gym"):
        unknown("environment", name, ENVS, _meant(name))
    make: Any = linearized_model if name == "linearized" else ENVS[name]
    check_names(name, parameters, settable(make))
    model: LinearModel = make(**parameters) if name in BUILT_IN else _made(name, parameters)
    return model


def model_known(spec: str) -> bool:
    """Whether the environment of a spec is a linear model and nothing else, so that runs in it can share products."""
    name, parameters = parse_spec(spec)
    if name in BUILT_IN or name not in ENVS:
        return name in LINEAR_MDPS or (name == "linearized" and parameters.get("mode") == "model")
    return _makes_a_model(name, ENVS[name], tuple(parameters.items()))


@lru_cache(maxsize=1)  # what it holds may be large
def _makes_a_model(name: str, maker: Callable[..., Any], parameters: tuple[tuple[str, Value], ...]) -> bool:
    own = settable(maker)
    return isinstance(_made(name, {key: value for key, value in parameters if key in own}), LinearModel)


def optimum_known(spec: str) -> bool:
    """Whether V* is known; more often than a model that runs in lockstep can use."""
    name = parse_spec(spec)[0]
    if name in BUILT_IN or name not in ENVS:
        return model_known(spec) or name == "drift"
    env: Any = make_env(spec)
    return env.unwrapped.model is not None


def with_baselines(env: str, agents: Sequence[str]) -> list[str]:
    """The agents, each once, and the baselines to compare them with: random and, where it is known, optimal."""
    for agent in agents:
        if list(agents).count(agent) > 1:
            raise InvalidParameter(f"Each agent of a comparison must be given once. Got '{agent}' twice.")
    names = [parse_spec(agent)[0] for agent in agents]
    baselines = ["random", "optimal"] if optimum_known(env) else ["random"]
    return [*agents, *(name for name in baselines if name not in names)]


def make_agent(spec: str, env: Any, episodes: int | None = None) -> Agent:
    """The agent of a spec, for the task of `env`; `episodes` is K, for parameters that depend on it."""
    env = make_env(env)
    agent = _agent_of(spec, env, episodes)
    made_from = getattr(env, "made_from", None)
    agent.made_from = {"agent": spec} | ({"env": made_from} if isinstance(made_from, str) else {})
    return agent


def _agent_of(spec: str, env: Any, episodes: int | None) -> Agent:
    task, env = task_of(env), env.unwrapped
    name, parameters = parse_spec(spec)
    if name in SB3_AGENTS:
        check_names(name, parameters, agent_parameters(name))
        from linmdp.envs.raw import RawEpisodes

        return SB3_AGENTS[name](task, raw=RawEpisodes(env), episodes=episodes, **parameters)
    if name != built_in.OptimalAgent.name:
        return make_learner(spec, task, episodes)
    check_names(name, parameters, agent_parameters(name))
    if getattr(env, "model", None) is None:
        raise InvalidParameter(
            "The optimal policy is known only where the model is: not for gym environments and games."
        )
    make: Any = built_in.OptimalAgent
    agent: Agent = make(task, Q=q_star(env), **parameters)
    return agent


def q_star(env: Any) -> Any:
    """What the optimal agent is told: Q* or, where the model drifts, a function of the episode."""
    from linmdp.envs.drift import DriftingEnv

    return env.q_of if isinstance(env, DriftingEnv) else env.optimum.Q


def make_learner(spec: str, task: Task, episodes: int | None = None) -> Agent:
    """The agent of a spec that needs to know no more than its task."""
    name, parameters = parse_spec(spec)
    if name not in AGENTS:
        unknown("agent", name, (*AGENTS, *SB3_AGENTS))
    return construct(AGENTS[name], parameters, task, episodes)


def construct(cls: type[Agent], parameters: Mapping[str, Any], task: Task, episodes: int | None = None) -> Agent:
    """An agent of a class, which hears of `episodes` if it has a parameter of that name."""
    known = cls.parameters()
    check_names(cls.name, parameters, known)
    if episodes is not None and "episodes" in known:
        parameters = {"episodes": check_int(cls.name, "episodes", episodes, low=1), **parameters}
    make: Any = cls
    agent: Agent = make(task, **parameters)
    return agent


def env_parameters(name: str) -> dict[str, inspect.Parameter]:
    """Parameters of an environment and their defaults."""
    return settable(ENVS[name])


def agent_parameters(name: str) -> dict[str, inspect.Parameter]:
    """Parameters of an agent and their defaults; what planning supplies (Q of the optimal agent) is left out."""
    agent: type[Agent] = AGENTS[name] if name in AGENTS else SB3_AGENTS[name]
    return {key: p for key, p in agent.parameters().items() if key not in agent.supplied}
