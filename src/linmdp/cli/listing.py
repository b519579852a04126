"""`linmdp envs` and `linmdp agents`: read off the code, so they are never out of date."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from typing import Any

from linmdp.errors import InvalidParameter
from linmdp.runner.registry import AGENTS, ENVS, SB3_AGENTS, agent_parameters, env_parameters
from linmdp.runner.spec import value_text


def list_envs() -> None:
    """Every environment with its parameters and defaults."""
    for name in ENVS:
        _entry(name, ENVS[name], env_parameters(name))


def list_agents() -> None:
    """Every agent with its parameters and defaults."""
    for name, agent in AGENTS.items():
        _entry(name, agent, agent_parameters(name))
    for name, other in SB3_AGENTS.items():
        try:
            _entry(name, other, agent_parameters(name))
        except InvalidParameter as error:
            print(f"{name}\n    {error}\n")


def _entry(name: str, documented: Any, parameters: Mapping[str, inspect.Parameter]) -> None:
    print(name)
    print(f"    {(inspect.getdoc(documented) or 'No description.').splitlines()[0]}")
    for key, parameter in parameters.items():
        print(f"    {key}={value_text(parameter.default)}")
    print()
