"""The policy of an agent as it is now, as C."""

from __future__ import annotations

import numpy as np

from linmdp.agents.base import Agent
from linmdp.agents.fold import LSVIUCBFold
from linmdp.agents.lsvi import LSVIUCB
from linmdp.errors import InvalidParameter
from linmdp.export.numbers import reals, rows, wholes
from linmdp.types import Array, IntArray

TABLE = """/* linmdp_policy.c: see linmdp_policy.h. Written by `linmdp export`. */
#include "linmdp_policy.h"

static const linmdp_index_a action[LINMDP_H][LINMDP_S] = {{
{rows}
}};

int linmdp_policy(unsigned h, linmdp_state state)
{{
    return h < LINMDP_H && linmdp_is_state(state) ? (int)action[h][state] : -1;
}}
"""

WEIGHTS = """/* linmdp_policy.c: see linmdp_policy.h. Written by `linmdp export`. */
#include "linmdp_policy.h"

#include "linmdp_value.h"

static const linmdp_weights weights[LINMDP_H] = {{
{rows}
}};

int linmdp_policy(unsigned h, linmdp_state state)
{{
    linmdp_seen seen;
    linmdp_wide q[LINMDP_A];
    if (h >= LINMDP_H || !linmdp_is_state(state))
        return -1;
    linmdp_look(state, &seen);
    return linmdp_quick_optimistic(&weights[h], h, &seen, q) == 0 ? (int)linmdp_first_best(q, LINMDP_TIE_ACT) : -1;
}}
"""


def policy_code(agent: Agent, kind: str, blocks: int) -> tuple[str, int]:
    """linmdp_policy.c, and the bytes of its table."""
    task = agent.task
    if task.S is not None:
        actions = np.array([_actions(agent, h) for h in range(task.H)])
        lines = [f"    {{\n{rows(wholes(line), 8)}\n    }}," for line in actions]
        return TABLE.format(rows="\n".join(lines)), actions.size * (1 if task.A <= 256 else 2)
    weights, inverses = _weights(agent)
    lines = []
    for w, inverse in zip(weights, inverses, strict=True):
        parts = (reals(w, "double"), reals(packed_factor(inverse, blocks), kind))
        lines.append("    {\n" + ",\n".join(f"        {{\n{rows(part, 12)}\n        }}" for part in parts) + "\n    },")
    d, p = task.d, task.d // blocks
    size = task.H * (8 * d + (4 if kind == "float" else 8) * blocks * p * (p + 1) // 2)
    return WEIGHTS.format(rows="\n".join(lines)), size


def _actions(agent: Agent, h: int) -> IntArray:
    """The action in each state, (S,); of several the first."""
    policy = agent.policy(h)
    if policy.ndim == 1:
        return policy.astype(np.int64)
    if agent.name == "random":
        raise InvalidParameter("The policy to export must choose an action. The random policy chooses none.")
    first: IntArray = (policy > 0).argmax(axis=1)
    return first


def _weights(agent: Agent) -> tuple[Array, Array]:
    """w (H, d) and Lambda^-1 (H, d, d), as of the last planning."""
    if isinstance(agent, LSVIUCBFold):
        return agent._w, agent._Lambda_inv
    if isinstance(agent, LSVIUCB):
        return agent._core.w, agent._core.ridge.Lambda_inv
    raise InvalidParameter(f"The policy to export must be on finite states, or of LSVI. Got '{agent.name}'.")


def packed_factor(inverse: Array, blocks: int) -> Array:
    """The Cholesky factor of Lambda from Lambda^-1 as linmdp_algebra.h keeps it: the lower triangle of each block."""
    factor = np.linalg.cholesky(np.linalg.inv(inverse))
    diagonal, p = np.arange(len(factor)), len(factor) // blocks
    factor[diagonal, diagonal] = 1 / factor[diagonal, diagonal]
    parts = [factor[i : i + p, i : i + p][np.tril_indices(p)] for i in range(0, len(factor), p)]
    return np.concatenate(parts)
