"""The policy of an agent as it is now, as C."""

from __future__ import annotations

import numpy as np

from linmdp.agents.base import Agent
from linmdp.agents.exploration.bonus import Bonus
from linmdp.agents.lsvi import LSVIAgent
from linmdp.errors import InvalidParameter
from linmdp.export.numbers import filled, real, reals, rows, wholes
from linmdp.types import Array, IntArray


def policy_code(agent: Agent, kind: str, blocks: int) -> tuple[str, int]:
    """linmdp_policy.c, and the bytes of its table."""
    task = agent.task
    if task.S is not None:
        actions = np.array([_actions(agent, h) for h in range(task.H)])
        text = filled("policy_table.c", {"rows": "\n".join(_row(wholes(line)) for line in actions)})
        return text, actions.size * (1 if task.A <= 256 else 2)
    if not isinstance(agent, LSVIAgent) or not isinstance(agent._planner.exploration, Bonus):
        raise InvalidParameter(f"The policy to export must be on finite states, or of LSVI-UCB. Got '{agent.name}'.")
    weights, inverses = agent._planner.w, agent._planner.ridge.Lambda_inv  # (levels, d) and (groups, d, d)
    values = {
        "beta": real(agent.beta_value, "double"),
        "weights": "\n".join(_row(reals(w, "double")) for w in weights),
        "factors": "\n".join(_row(reals(packed_factor(inverse, blocks), kind)) for inverse in inverses),
    }
    p = task.d // blocks
    size = weights.size * 8 + len(inverses) * blocks * p * (p + 1) // 2 * (4 if kind == "float" else 8)
    return filled("policy_weights.c", values), size


def _row(items: list[str]) -> str:
    return f"    {{\n{rows(items, 8)}\n    }},"


def _actions(agent: Agent, h: int) -> IntArray:
    """The action in each state, (S,); of several the first."""
    policy = agent.policy(h)
    if policy.ndim == 1:
        return policy.astype(np.int64)
    if agent.name == "random":
        raise InvalidParameter("The policy to export must choose an action. The random policy chooses none.")
    first: IntArray = (policy > 0).argmax(axis=1)
    return first


def packed_factor(inverse: Array, blocks: int) -> Array:
    """The Cholesky factor of Lambda from Lambda^-1 as linmdp_algebra.h keeps it: the lower triangle of each block."""
    factor = np.linalg.cholesky(np.linalg.inv(inverse))
    diagonal, p = np.arange(len(factor)), len(factor) // blocks
    factor[diagonal, diagonal] = 1 / factor[diagonal, diagonal]
    parts = [factor[i : i + p, i : i + p][np.tril_indices(p)] for i in range(0, len(factor), p)]
    return np.concatenate(parts)
