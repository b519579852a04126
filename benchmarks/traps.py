"""Are the agents that people run ever stuck? Small tasks where what is safe pays at once, and what is better seldom.

    .venv/bin/python benchmarks/traps.py [SEEDS] [AGENT...]

By default 60 seeds of auto, lsvi-gp, insured and psrl, which takes an hour or two of one core. A run is stuck where its
policy loses, in the last tenth of the episodes, more than half of what the trap costs.
"""

from __future__ import annotations

import sys
import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np

import linmdp
from linmdp.envs.linear import LinearMDPEnv
from linmdp.features.tabular import TableFeatures
from linmdp.report.tables import markdown

AGENTS = ("auto", "lsvi-gp", "insured", "psrl")


@dataclass(frozen=True)
class Trap:
    """Two actions in each state s: vectors 2s and 2s + 1, unit ones unless `phi` (2S, d) says more; P (d, S), r (d,).

    All is the same at every step. `safe` is what the policy earns that a stuck learner plays.
    """

    P: np.ndarray
    r: np.ndarray
    H: int
    K: int
    safe: float
    phi: np.ndarray | None = None

    def env(self) -> Any:
        """The task."""
        d, S = self.P.shape
        theta, mu = np.tile(self.r, (self.H, 1)), np.tile(self.P, (self.H, 1, 1))
        table = (np.eye(d) if self.phi is None else self.phi).reshape(S, 2, d)
        return LinearMDPEnv(linmdp.LinearModel(name="trap", features=TableFeatures(table), theta=theta, mu=mu))


def one_try(K: int, H: int, safe: float, chance: float, pays: float) -> Trap:
    """Action 0 pays `safe` once; action 1 leads with `chance` to where each later step pays `pays`."""
    P, r = np.zeros((6, 3)), np.array([safe, 0, pays, pays, 0, 0])
    P[0, 2], P[1] = 1, (0, chance, 1 - chance)
    P[2:4, 1] = P[4:, 2] = 1
    return Trap(P, r, H, K, safe)


def doors(K: int, H: int, small: float, chance: float, n: int) -> Trap:
    """A corridor of n doors that open with `chance` at each try; behind the last one every step pays 1.

    Action 0 pays `small` and leads back.
    """
    P, r = np.zeros((2 * n + 2, n + 1)), np.zeros(2 * n + 2)
    P[0 : 2 * n : 2, 0], r[0 : 2 * n : 2] = 1, small
    for s in range(n):
        P[2 * s + 1, s + 1], P[2 * s + 1, s] = chance, 1 - chance
    P[2 * n :, n] = r[2 * n :] = 1
    return Trap(P, r, H, K, small * H)


def mixed(K: int, H: int, safe: float, chance: float, pays: float) -> Trap:
    """Action 0 pays `safe` once; 1 is a mixture of what pays at each step and of what never pays: d = 3."""
    P = np.array([[0.0, 0, 1], [0, 1, 0], [0, 0, 1]])
    phi = np.array([[1, 0, 0], [0, chance, 1 - chance], *[[0, 1, 0]] * 2, *[[0, 0, 1]] * 2])
    return Trap(P, np.array([safe, pays, 0]), H, K, safe, phi)


TRAPS = {
    "safe or risky, 0.5 or 0.6": one_try(1000, 10, 0.5, 0.6, 1 / 9),
    "0.4 or 0.6": one_try(1000, 10, 0.4, 0.6, 1 / 9),
    "door of 5%": one_try(3000, 21, 0.1, 0.05, 1.0),
    "door of 1%": one_try(3000, 21, 0.02, 0.01, 1.0),
    "three doors of 20%": doors(3000, 25, 0.03, 0.2, 3),
    "a mixture": mixed(1000, 10, 0.4, 0.6, 0.1),
}


def played(spec: str, trap: Trap, seeds: int) -> str:
    """Mean regret, and the share of seeds that are stuck."""
    lost, late, part = list[float](), list[float](), trap.K // 10
    for seed in range(seeds):
        env = trap.env()
        regret = linmdp.run(env, linmdp.make_agent(spec, env, trap.K), episodes=trap.K, seed=seed).regret
        assert regret is not None
        lost.append(float(regret[-1]))
        late.append(float(regret[-1] - regret[-1 - part]) / part)
    costs = float(trap.env().optimum.V[0, 0]) - trap.safe
    return f"{np.mean(lost):,.0f}, {np.mean(np.array(late) > costs / 2):.0%}"


def main() -> None:
    given = sys.argv[1:]
    seeds = int(given.pop(0)) if given and given[0].isdigit() else 60
    warnings.simplefilter("ignore", linmdp.LinMDPWarning)
    rows = list[tuple[str, ...]]()
    for spec in given or AGENTS:
        rows.append((spec, *(played(spec, trap, seeds) for trap in TRAPS.values())))
        print(*rows[-1], sep=" | ", flush=True)
    print(markdown(("regret, stuck", *TRAPS), rows))


if __name__ == "__main__":
    main()
