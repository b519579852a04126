"""The measured bound of `insured` on thousands of random small tasks, and how regret grows. Docs: insured.

.venv/bin/python benchmarks/insured.py [RUNS] [EPISODES] [--write]    10,000 runs of 300 episodes: about two minutes

Each run has its own task, width beta_1, lambda 1, p = 0.05. `--write` puts the tables into docs,
`--numbers` makes only that of widths and bounds.
"""

from __future__ import annotations

import itertools
import math
import sys
import time
from collections.abc import Callable
from fractions import Fraction
from functools import partial
from pathlib import Path

import numpy as np

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT / "tests"))

from linmdp.agents.insured import Insured
from linmdp.agents.widths import log_term, optimist_bound, table_width, theorem_width
from linmdp.features.unit import is_unit
from linmdp.report.tables import into_pages, markdown
from linmdp.runner.registry import make_model
from reference_insured import INNER, Tables, insured
from test_insured import played, tables_env

P = 0.05
GROWTH = (100, 300, 1000, 3000, 10_000, 30_000)

RULES = (("mean", Fraction(1, 3)), ("mean", Fraction(1, 2)), ("mean", Fraction(2, 3)), ("balanced", Fraction(1, 3)))


def bounds(runs: int, K: int) -> str:
    """How often U was below V*, and C_A + C_B below what was lost."""
    rows, cases = [], list(itertools.product(INNER, ("mean", "balanced")))
    each, begun = -(-runs // len(cases)), time.perf_counter()
    for i, (inner, mode) in enumerate(cases):
        rng = np.random.default_rng(100 + i)
        H, S, A = (2, 2, 2) if i % 2 else (3, 3, 2)
        starts = ("fixed", "random", "adversarial")[i % 3]
        found = insured(Tables.random(each, H, S, A, rng), inner, K, mode=mode, starts=starts, seed=i)
        rows.append(
            (
                inner,
                mode,
                starts,
                f"{each:,}",
                str(int((found.worst < 0).sum())),
                str(int((found.certified < found.lost).sum())),
                str(int((found.over > 1e-9).sum())),
                f"{found.lost.mean() / K:.3f}",
                f"{found.certified.mean() / K:.3f}",
                f"{found.turns.mean():.0f}",
            )
        )
    rows += [auto(max(10, runs // 500), K, mode) for mode in ("mean", "balanced")]
    print(f"{each * len(cases):,} runs of {K} episodes in {time.perf_counter() - begun:.0f} s")
    heads = ("A", "mode", "starts", "runs", "U < V*", "C_A + C_B < lost", "C_A over its budget", "lost / K")
    return markdown((*heads, "certified / K", "turns of B"), rows)


def auto(runs: int, K: int, mode: str) -> tuple[str, ...]:
    """The row of `auto`, whose runs are those of the agent of the package, one after the other."""
    counts, sums = np.zeros(3, dtype=np.int64), np.zeros(3)
    for seed in range(runs):
        env = tables_env(seed, H=2, S=2, start="fixed")
        agent = Insured(env.task, inner="auto", width="tables", mode=mode, episodes=K)
        log, best = played(env, agent, K, seed), env.optimum.V[0]
        lost = sum(float(best[e.steps[0][1]]) - e.G for e in log)
        certified = sum(agent.certified_regret)
        over = agent.certified_regret[0] - env.task.H - max((e.budget for e in log if not e.plays), default=0.0)
        below = any(best[e.steps[0][1]] - 1e-9 > e.U for e in log)
        counts += (below, certified < lost - 1e-9, over > 1e-9)
        sums += (lost / K, certified / K, agent.turns[1])
    lost, certified, turns = sums / runs
    told = (f"{runs:,}", *map(str, counts), f"{lost:.3f}", f"{certified:.3f}", f"{turns:.0f}")
    return ("auto", mode, "fixed", *told)


def growth(runs: int) -> str:
    """Mean regret so far, and its slope on log axes over the last factor of ten."""
    rows = []
    tasks = Tables.random(runs, 2, 2, 2, np.random.default_rng(7))
    for inner, (mode, alpha) in itertools.product(("random", "optimal"), RULES):
        path = insured(tasks, inner, GROWTH[-1], mode=mode, alpha=alpha, points=GROWTH).path.mean(0)
        slope = np.log10(path[-1] / path[-3])
        rows.append(
            (inner, f"mean, alpha={alpha}" if mode == "mean" else mode, *(f"{x:.1f}" for x in path), f"{slope:.2f}")
        )
    return markdown(("A", "mode", *(f"K={k:,}" for k in GROWTH), "slope"), rows)


def first_K(bound: Callable[[int], float], most: float) -> str:
    """From which K on `bound(K)` is below most K, to two digits."""
    low, high = 0.0, 60.0
    for _ in range(50):
        middle = (low + high) / 2
        low, high = (low, middle) if bound(int(10**middle)) < most * 10**middle else (middle, high)
    return f"{10**high:.1e}"


def numbers() -> str:
    """The widths at K = 1,000, and from which K on each bound is below H K, for tasks here."""
    rows = []
    for spec in ("riverswim", "lock", "hypercube", "inventory", "sensor", "synthetic"):
        model = make_model(spec)
        d, H = model.d, model.H

        def R(n: int, K: int, d: int = d, H: int = H) -> float:
            beta = theorem_width(d=d, H=H, K=K, lam=1.0, p=P)
            return optimist_bound(n, beta, d=d, H=H, lam=1.0, p=P)

        def balanced(K: int, R: Callable[[int, int], float] = R, H: int = H) -> float:
            return H + 2 * R(K, K) + H * math.sqrt(K * log_term(K, P))

        def mean(K: int, alpha: float, R: Callable[[int, int], float] = R, H: int = H) -> float:
            rate = math.sqrt(2) * R(K, K) / math.sqrt(K) + 2 * H * math.sqrt(log_term(K, P))
            return H + rate * K ** (1 - alpha / 2) + R(int(K**alpha), K)

        tables = (
            f"{table_width(np.arange(H, 0, -1.0), d=d, K=1000, lam=1.0, p=P)[0]:.0f}"
            if is_unit(model.features)
            else "-"
        )
        bounds = [lambda K: R(K, K), balanced, *(partial(mean, alpha=a) for a in (1 / 2, 1 / 3))]
        width = f"{theorem_width(d=d, H=H, K=1000, lam=1.0, p=P):,.0f}"
        rows.append((spec, str(d), str(H), width, tables, *(first_K(bound, H) for bound in bounds)))
    heads = ("task", "d", "H", "beta_0", "beta_1", "B alone", "balanced", "mean, alpha=1/2", "mean, alpha=1/3")
    return markdown(heads, rows)


def main() -> None:
    given = [int(x) for x in sys.argv[1:] if x.isdigit()]
    runs, K = (given + [10_000, 300][len(given) :])[:2]
    tables = {"insured_numbers": numbers()}
    if "--numbers" not in sys.argv:
        tables |= {"insured_bound": bounds(runs, K), "insured_growth": growth(max(20, runs // 100))}
    for name, table in tables.items():
        print(table)
        if "--write" in sys.argv:
            into_pages((ROOT / "docs").glob("*.md"), name, table)


if __name__ == "__main__":
    main()
