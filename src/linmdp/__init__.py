"""linmdp: reinforcement learning for few episodes and little memory.

import linmdp
learner = linmdp.Learner("CartPole-v1", seed=0).learn(episodes=40, progress=True)
print(learner.verdict)
"""

from __future__ import annotations

import ast
import contextlib
import importlib
from pathlib import Path
from typing import Any

__version__ = "0.3.0"

_STUB = ast.parse(Path(__file__).with_suffix(".pyi").read_text("utf-8"))
_MODULE_OF = {
    alias.name: node.module
    for node in _STUB.body
    if isinstance(node, ast.ImportFrom) and node.module
    for alias in node.names
}
"""Every public name and the module that defines it, read off the stub, which type checkers read, too."""

__all__ = list(_MODULE_OF)


def __getattr__(name: str) -> Any:
    """Load a public name on first use: `import linmdp` stays fast, and needs no Gymnasium for what needs none."""
    if name not in _MODULE_OF:
        raise AttributeError(f"module 'linmdp' has no attribute '{name}'")
    home = _MODULE_OF[name]
    value = (
        importlib.import_module(f"linmdp.{name}") if home == "linmdp" else getattr(importlib.import_module(home), name)
    )
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted([*__all__, "__version__", "__doc__"])


with contextlib.suppress(ModuleNotFoundError):  # the algorithms need NumPy alone
    from linmdp.envs.registration import register_envs

    register_envs()
