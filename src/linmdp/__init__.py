"""linmdp: online reinforcement learning with regret guarantees, in memory that you choose.

import linmdp
env = linmdp.make_env("synthetic:S=500,A=15,d=30,H=50,seed=0")
agent = linmdp.make_agent("lsvi-ucb:beta=0.05,lam=0.1", env)
result = linmdp.run(env, agent, episodes=1_000, seed=0, progress=True)
"""

from __future__ import annotations

import contextlib
import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from linmdp.agents import (
        LSVIUCB,
        Agent,
        ConstantAgent,
        LSVIUCBAdaptive,
        LSVIUCBFixed,
        LSVIUCBFold,
        OptimalAgent,
        QLearning,
        QLearningGreedy,
        RandomAgent,
    )
    from linmdp.envs.adapter import GymTask
    from linmdp.envs.base import LinearModel
    from linmdp.envs.linear import LinearMDPEnv
    from linmdp.envs.planning import optimum, policy_value
    from linmdp.errors import InvalidData, InvalidParameter, LinMDPError, LinMDPWarning, UnknownName
    from linmdp.features import FeatureMap, TableFeatures, one_hot
    from linmdp.runner.loading import load_agent, load_policy
    from linmdp.runner.loop import run
    from linmdp.runner.registry import make_agent, make_env
    from linmdp.types import EpisodeRecord, RunResult, Task, Transition

__version__ = "0.1.0"

_HOME = {
    "linmdp.agents": (
        "LSVIUCB",
        "Agent",
        "ConstantAgent",
        "LSVIUCBAdaptive",
        "LSVIUCBFixed",
        "LSVIUCBFold",
        "OptimalAgent",
        "QLearning",
        "QLearningGreedy",
        "RandomAgent",
    ),
    "linmdp.envs.adapter": ("GymTask",),
    "linmdp.envs.base": ("LinearModel",),
    "linmdp.envs.linear": ("LinearMDPEnv",),
    "linmdp.envs.planning": ("optimum", "policy_value"),
    "linmdp.errors": ("InvalidData", "InvalidParameter", "LinMDPError", "LinMDPWarning", "UnknownName"),
    "linmdp.features": ("FeatureMap", "TableFeatures", "one_hot"),
    "linmdp.runner.loop": ("run",),
    "linmdp.runner.registry": ("make_agent", "make_env"),
    "linmdp.runner.loading": ("load_agent", "load_policy"),
    "linmdp.types": ("EpisodeRecord", "RunResult", "Task", "Transition"),
}
_MODULE_OF = {name: module for module, names in _HOME.items() for name in names}

__all__ = [
    "LSVIUCB",
    "Agent",
    "ConstantAgent",
    "EpisodeRecord",
    "FeatureMap",
    "GymTask",
    "InvalidData",
    "InvalidParameter",
    "LSVIUCBAdaptive",
    "LSVIUCBFixed",
    "LSVIUCBFold",
    "LinMDPError",
    "LinMDPWarning",
    "LinearMDPEnv",
    "LinearModel",
    "OptimalAgent",
    "QLearning",
    "QLearningGreedy",
    "RandomAgent",
    "RunResult",
    "TableFeatures",
    "Task",
    "Transition",
    "UnknownName",
    "load_agent",
    "load_policy",
    "make_agent",
    "make_env",
    "one_hot",
    "optimum",
    "policy_value",
    "run",
]


def __getattr__(name: str) -> Any:
    """Load a public name on first use: `import linmdp` stays fast, and needs no Gymnasium for what needs none."""
    if name not in _MODULE_OF:
        raise AttributeError(f"module 'linmdp' has no attribute '{name}'")
    value = getattr(importlib.import_module(_MODULE_OF[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])


with contextlib.suppress(ModuleNotFoundError):  # the algorithms need NumPy alone
    from linmdp.envs.registration import register_envs

    register_envs()
