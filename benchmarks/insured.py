"""The measured bound of `insured` on thousands of random small tasks, and how regret grows. Docs: insured.

.venv/bin/python benchmarks/insured.py [RUNS] [EPISODES] [--write]    10,000 runs of 300 episodes: about two minutes

Each run has its own task, width beta_1, lambda 1, p = 0.05. `--write` puts the tables into docs/generated.
"""

from __future__ import annotations

import itertools
import sys
import time
from fractions import Fraction
from pathlib import Path

import numpy as np

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT / "tests"))

from linmdp.report.tables import markdown
from reference_insured import INNER, Tables, insured

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
    print(f"{each * len(cases):,} runs of {K} episodes in {time.perf_counter() - begun:.0f} s")
    heads = ("A", "mode", "starts", "runs", "U < V*", "C_A + C_B < lost", "C_A over its budget", "lost / K")
    return markdown((*heads, "certified / K", "turns of B"), rows)


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


def main() -> None:
    numbers = [int(x) for x in sys.argv[1:] if x.isdigit()]
    runs, K = (numbers + [10_000, 300][len(numbers) :])[:2]
    tables = {"insured_bound": bounds(runs, K), "insured_growth": growth(max(20, runs // 100))}
    for name, table in tables.items():
        print(table)
        if "--write" in sys.argv:
            (ROOT / f"docs/generated/{name}.md").write_text(table)


if __name__ == "__main__":
    main()
