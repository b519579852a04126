"""The policy of an agent as it is now, as C."""

from __future__ import annotations

import numpy as np

from linmdp.agents.base import Agent
from linmdp.agents.exploration.bonus import Bonus, Inflated
from linmdp.agents.exploration.evidence import Evidence
from linmdp.agents.held import solvable
from linmdp.agents.lsvi import LSVIAgent
from linmdp.errors import InvalidParameter, invalid
from linmdp.export.numbers import filled, reals, rows, wholes
from linmdp.types import Array, IntArray

LARGEST = 1e300
"""More than any value is, in C."""


def policy_code(agent: Agent, kind: str, blocks: int) -> tuple[str, int]:
    """linmdp_policy.c, and the bytes of its table."""
    task = agent.task
    if task.S is not None:
        actions = np.array([_actions(agent, h) for h in range(task.H)])
        text = filled("policy_table.c", {"rows": "\n".join(_row(wholes(line)) for line in actions)})
        return text, actions.size * (1 if task.A <= 256 else 2)
    if not isinstance(agent, LSVIAgent) or not isinstance(explore := agent._planner.exploration, Bonus):
        raise InvalidParameter(f"The policy to export must be on finite states, or of LSVI-UCB. Got '{agent.name}'.")
    horizon, weights = agent.horizon, agent._planner.w  # (levels, d)
    metrics = [explore.metric(g) for g in range(horizon.groups)]
    if not all(isinstance(metric, np.ndarray) for metric in metrics):
        invalid("a policy to export", "storage", "one that has the inverse of Lambda", agent._storing.name)
    first = slice(0, None, horizon.stride) if len(weights) > 1 else slice(0, 1)  # the steps whose Q is kept
    with solvable(agent.name):
        packed = [packed_factor(metric, blocks) for metric in metrics]
    values = {
        "stride": horizon.stride,
        "weights": "\n".join(_row(reals(w, "double")) for w in weights),
        "factors": "\n".join(_row(reals(factor, kind)) for factor in packed),
        "betas": rows(reals(explore.beta[first], "double")),
        "least": rows(reals(_lows(explore)[first], "double")),
        "most": rows(reals(explore.caps[first], "double")),
    }
    p = task.d // blocks
    factor_bytes = len(metrics) * blocks * p * (p + 1) // 2 * (4 if kind == "float" else 8)
    return filled("policy_weights.c", values), 8 * (weights.size + 3 * len(weights)) + factor_bytes


def _lows(explore: Bonus) -> Array:
    """The least value of each planned step, (H,)."""
    if isinstance(explore, Evidence):
        return np.asarray(explore.floors)
    return explore.lows if isinstance(explore, Inflated) else np.full(explore.horizon.H, -LARGEST)


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
    """The Cholesky factor of Lambda from Lambda^-1 as linmdp_algebra.h keeps it: the lower triangle of each block.

    The inverse is (d, d), or (blocks, p, p) where it is kept so.
    """
    p = inverse.shape[-1] if inverse.ndim == 3 else len(inverse) // blocks
    parts = list(inverse) if inverse.ndim == 3 else [inverse[i : i + p, i : i + p] for i in range(0, len(inverse), p)]
    packed, each = [], np.arange(p)
    for part in parts:
        factor = np.linalg.cholesky(np.linalg.inv(part))
        factor[each, each] = 1 / factor[each, each]
        packed.append(factor[np.tril_indices(p)])
    return np.concatenate(packed)
