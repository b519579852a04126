"""`linmdp envs` and `linmdp agents`: what there is, read off the code, so that it is never out of date."""

from __future__ import annotations

import inspect
import re
import textwrap
from collections.abc import Mapping
from typing import Annotated, Any

import typer

from linmdp.cli import options as opt
from linmdp.errors import InvalidParameter, unknown

WIDTH = 100
COMMON = {
    "S": "number of states",
    "A": "number of actions",
    "H": "steps of an episode",
    "seed": "of the model, where it is random; runs have seeds of their own",
    "noise": "standard deviation of the rewards; they are clipped to their range",
    "episodes": "K, where a parameter depends on it",
    "stationary": "one model or table for all steps, for tasks whose dynamics do not depend on h",
    "discount": "of the value of the next state",
    "max_bytes": 'the most memory: a number of bytes, or "2MiB"',
    "start": "where episodes begin: fixed (state 0), uniform, or adversarial (where the policy loses most)",
}
"""What several share, unless they say more."""

Name = Annotated[str | None, typer.Argument(metavar="[NAME]", help="explain this one, parameter by parameter")]


def envs(name: Name = None, modules: opt.Import = None) -> None:
    """List the environments, or explain one."""
    from linmdp.runner.registry import ENVS, env_parameters

    if name is None:
        for each, maker in ENVS.items():
            _list(each, maker, env_parameters(each))
        return
    if name not in ENVS:
        unknown("environment", name, ENVS)
    spec = "gym:FrozenLake-v1" if name == "gym" else name
    _explain(name, ENVS[name], env_parameters(name), f"linmdp run {spec} auto --episodes 500")


def agents(name: Name = None, modules: opt.Import = None) -> None:
    """List the agents, or explain one."""
    from linmdp.runner.registry import AGENTS, SB3_AGENTS, agent_parameters
    from linmdp.runner.spec import written_spec

    everyone: dict[str, Any] = {**AGENTS, **SB3_AGENTS}
    if name is None:
        for each, agent in everyone.items():
            if each != agent.name:
                print(f"{each}\n    An old name of {agent.name}.\n")
                continue
            try:
                _list(each, agent, agent_parameters(each))
            except InvalidParameter as error:  # an extra is missing
                print(f"{each}\n    {error}\n")
        return
    if name not in everyone:
        unknown("agent", name, everyone)
    tried = everyone[name].test_parameters
    given: dict[str, Any] = next((parameters for parameters in tried if parameters), {})
    env = "gym:CartPole-v1" if name in SB3_AGENTS else "lock"
    example = f"linmdp compare {env} {name} {written_spec(name, given)} --episodes 500" if given else ""
    _explain(name, everyone[name], agent_parameters(name), example or f"linmdp run {env} {name} --episodes 500")


def _list(name: str, documented: Any, parameters: Mapping[str, inspect.Parameter]) -> None:
    from linmdp.runner.spec import value_text

    print(name)
    print(f"    {_summary(documented)}")
    for key, parameter in parameters.items():
        print(f"    {key}={value_text(parameter.default)}")
    print()


def _explain(name: str, documented: Any, parameters: Mapping[str, inspect.Parameter], example: str) -> None:
    """What each parameter means, no wider than a terminal."""
    from linmdp.runner.spec import value_text

    print(f"{name}: {_summary(documented)}\n")
    meanings = COMMON | explained(documented)
    given = {key: f"{key}={value_text(parameter.default)}" for key, parameter in parameters.items()}
    indent = 4 + max(map(len, given.values()), default=0)
    for key, words in given.items():
        first, *more = textwrap.wrap(meanings.get(key, ""), WIDTH - indent) or [""]
        print("\n".join([f"  {words:<{indent - 2}}{first}".rstrip(), *(" " * indent + line for line in more)]))
    if given:
        print()
    print(f"example: {example}")


def _summary(documented: Any) -> str:
    return (inspect.getdoc(documented) or "No description.").splitlines()[0]


def explained(documented: Any) -> dict[str, str]:
    """What the docstrings say of parameters, by name: those of a class and of its bases, its own last."""
    from linmdp.agents import LSVIUCB
    from linmdp.agents.lsvi import LSVIAgent

    sources = [*reversed(inspect.getmro(documented))] if isinstance(documented, type) else [documented]
    if LSVIAgent in sources:
        sources.insert(0, LSVIUCB)  # which documents what they all take
    found: dict[str, str] = {}
    for source in sources:
        text = inspect.cleandoc(source.__doc__ or "")
        section = re.search(r"^Parameters\n-+\n(.*?)(?:\n\n|\Z)", text, re.MULTILINE | re.DOTALL)
        for entry in re.split(r"\n(?! )", section[1]) if section else []:
            names, _, words = entry.partition(" : ")
            if not words.startswith("as for "):
                found |= {key.strip(): " ".join(words.split()) for key in names.split(",")}
    return found
